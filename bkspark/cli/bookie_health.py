"""Problems of a cluster's bookies, for the commands that check a cluster."""

from collections.abc import Collection, Iterable, Iterator

from bkspark.cli.findings import Finding, Level
from bkspark.cluster.admission import require_apart
from bkspark.cluster.bookie_status import BookieStatus
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError
from bkspark.log.continuing import may_be_smaller
from bkspark.protocol.bookies.placement import Candidate, shared_domains
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM
from bkspark.quantities import plural

_NAMES_SHOWN_MAX = 5


def risk_findings(cluster: Cluster, statuses: list[BookieStatus]) -> Iterator[Finding]:
    """Storage accepted although acknowledged entries may get lost, or shared between places."""
    risks = {status.record.bookie_id: status.record.storage_risk for status in statuses}
    for subject, risk in {"metadata": cluster.storage_risk, **risks}.items():
        if risk:
            yield Finding(
                Level.WARN,
                subject,
                f"its data could be lost, and this risk was accepted: {risk}",
                "replace it by a bookie on a local disk or in a bucket",
            )
    try:
        require_apart([cluster.store.uri, *(status.record.url for status in statuses)])
    except InvalidRequestError as error:
        yield Finding(Level.WARN, "places", error.args[0], error.hint)


def named_members(
    cluster: Cluster, ledgers: Iterable[LedgerMetadata], lost: Collection[Member]
) -> set[Member]:
    """Return the members of ``lost`` in ensembles of undeleted ledgers.

    All of ``lost`` if a record is unreadable: the record may name any bookie.
    """
    if cluster.unreadable:
        return set(lost)
    return {
        member
        for ledger in ledgers
        if ledger.state is not LedgerState.DELETING
        for fragment in ledger.fragments
        for member in fragment.ensemble
        if member in lost
    }


def bookie_findings(
    statuses: list[BookieStatus], lost: Collection[Member], named: Collection[Member]
) -> Iterator[Finding]:
    """Whether every bookie is usable, and enough bookies exist; lost bookies are listed separately.

    Args:
        named: members of ``lost`` still named by ledgers; other lost bookies are left out.
    """
    alive = [status for status in statuses if status.member not in lost]
    usable = [status for status in alive if not (status.problem or status.write_problem)]
    level = Level.OK if usable and len(usable) == len(alive) else Level.FAIL
    yield Finding(level, "bookies", f"{len(usable)} of {len(alive)} can be used")
    for status in alive:
        if status.write_problem:
            yield Finding(
                Level.FAIL,
                status.record.bookie_id,
                f"it can be read, but nothing new can be written: {status.write_problem}",
                "make it writable again, or free some space; until then other bookies take "
                "its place",
            )
        if status.problem:
            yield Finding(
                Level.FAIL,
                status.record.bookie_id,
                status.problem,
                "bring it back; if it will never come back: `bkspark bookie lost "
                f"{status.record.bookie_id}`",
            )
    for status in alive:
        yield from _closed_findings(status)
    for status in statuses:
        if status.member in named:
            yield _lost_finding(status)
    writable = _writable(statuses, lost)
    if len(writable) < DEFAULT_QUORUM.ensemble_size:
        yield Finding(
            Level.WARN,
            "writes",
            f"{plural(len(writable), 'bookie')} for new ledgers, fewer than the default "
            f"ensembleSize {DEFAULT_QUORUM.ensemble_size}",
            "bring back the bookies that are away, or add bookies (`bkspark bookie add URL`)",
        )


def _closed_findings(status: BookieStatus) -> Iterator[Finding]:
    """A healthy bookie without new ledgers."""
    bookie_name = status.record.bookie_id
    if status.record.is_leaving:
        yield Finding(
            Level.WARN,
            bookie_name,
            "it is being removed, or its removal was interrupted: it gets no new ledgers",
            f"`bkspark bookie remove {bookie_name}` continues the removal; `bkspark bookie "
            f"readonly {bookie_name} --off` cancels it",
        )
    elif status.record.is_read_only:
        yield Finding(
            Level.OK,
            bookie_name,
            "read-only: it can be read, and gets no new ledgers",
            f"`bkspark bookie readonly {bookie_name} --off` makes it writable",
        )
    if status.is_full and not (status.problem or status.write_problem):
        yield Finding(
            Level.WARN,
            bookie_name,
            status.full_note,
            "free some space, add bookies (`bkspark bookie add URL`), or set its marks "
            f"(`bkspark bookie marks {bookie_name}`)",
        )


def _writable(statuses: list[BookieStatus], lost: Collection[Member]) -> list[BookieStatus]:
    """Bookies able to join the ensemble of a new ledger."""
    return [status for status in statuses if status.may_join and status.member not in lost]


def log_findings(
    cluster: Cluster, statuses: list[BookieStatus], lost: Collection[Member]
) -> Iterator[Finding]:
    """Logs whose new ledgers need more bookies than available: one line for each kind of log."""
    count = len(_writable(statuses, lost))
    stopped: list[str] = []
    smaller: list[str] = []
    for name in cluster.log_names():
        seen = cluster.logs.get(name)
        if seen is None or seen.value.is_tombstone or seen.value.is_sealed:
            continue
        log = seen.value
        if log.quorum.ensemble_size > count:
            goes_on = may_be_smaller(log) and count >= log.quorum.ack_quorum_size
            (smaller if goes_on else stopped).append(name)
    how = "bring back the bookies that are away, or add bookies (`bkspark bookie add URL`)"
    there = f"{plural(count, 'bookie')} can be written to"
    if stopped:
        said = f"{_named(stopped)} cannot be written to: new ledgers need more, and {there}"
        yield Finding(Level.FAIL, "logs", said, how)
    if smaller:
        said = f"{there}, so new ledgers of {_named(smaller)} are smaller than wanted"
        yield Finding(Level.WARN, "logs", said, f"{how}; `bkspark repair` makes the other copies")


def short_findings(ledgers: Iterable[LedgerMetadata]) -> Iterator[Finding]:
    """Ledgers created with too few copies, in one line."""
    count = sum(map(sizes.is_short, ledgers))
    if count:
        yield Finding(
            Level.WARN,
            "copies",
            f"{plural(count, 'ledger')} made with fewer copies than wanted, while too few bookies "
            "could be used",
            "`bkspark repair` makes the other copies of closed ledgers",
        )


def _named(logs: list[str]) -> str:
    """The number of logs and the names of the first logs."""
    more = " …" if len(logs) > _NAMES_SHOWN_MAX else ""
    return f"{plural(len(logs), 'log')} ({', '.join(logs[:_NAMES_SHOWN_MAX])}{more})"


def _lost_finding(status: BookieStatus) -> Finding:
    if status.problem:
        return Finding(
            Level.WARN,
            status.record.bookie_id,
            "declared lost: recoveries do not wait for it, and it gets no new ledgers",
            "add another bookie (`bkspark bookie add URL`); copies that only this bookie had "
            "are listed as missing",
        )
    return Finding(
        Level.WARN,
        status.record.bookie_id,
        "declared lost, but it came back: its data can be read, its missing data is not "
        "evidence, and it gets no new ledgers",
        "keep it to be read, and add another bookie (`bkspark bookie add URL`); the "
        "declaration cannot be taken back",
    )


def domain_findings(statuses: list[BookieStatus]) -> Iterator[Finding]:
    records = [status.record for status in statuses if not status.problem]
    candidates = [Candidate(Member(r.bookie_id, r.incarnation), r.domain) for r in records]
    for domain, ids in shared_domains(candidates).items():
        yield Finding(
            Level.WARN,
            "domains",
            f"{', '.join(ids)} are all on {domain} and will be lost together",
            "give every bookie a disk of its own",
        )
