"""``bkspark status``: the current problems of a cluster."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bkspark import environment
from bkspark.admin import views
from bkspark.admin.agents import living_agents, with_agents
from bkspark.admin.auditing.findings import CHECKED, LOSSES, VERB, in_words
from bkspark.admin.collecting import collection as collecting
from bkspark.admin.scrubbing import scrub as scrubbing
from bkspark.admin.survey import Survey, gone_from_lists
from bkspark.cli.output import Finding, Level
from bkspark.cluster.admission import require_apart
from bkspark.cluster.bookie_status import BookieStatus
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.election import Contender
from bkspark.errors import InvalidRequestError
from bkspark.format import layout
from bkspark.format.upkeep_records import ReportRecord
from bkspark.protocol.bookies import Candidate, shared_domains
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM
from bkspark.protocol.log.record import LogRecord
from bkspark.quantities import plural, timestamp

# --- bookie health -------------------------------------------------------------------------------
# Problems of a cluster's bookies, for the commands that check a cluster.


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
        require_apart([cluster.store.uri, *(status.record.place for status in statuses)])
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
        for member in Locations(ledger).members
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
    logs: Iterable[LogRecord], statuses: list[BookieStatus], lost: Collection[Member]
) -> Iterator[Finding]:
    """Logs whose new ledgers need more bookies than available: one line for each kind of log."""
    count = len(_writable(statuses, lost))
    stopped: list[str] = []
    smaller: list[str] = []
    for log in logs:
        if log.is_tombstone or log.is_sealed:
            continue
        if log.quorum.ensemble_size > count:
            goes_on = log.settings.permits_smaller and count >= log.quorum.ack_quorum_size
            (smaller if goes_on else stopped).append(log.name)
    how = "bring back the bookies that are away, or add bookies (`bkspark bookie add URL`)"
    there = f"{plural(count, 'bookie')} can be written to"
    if stopped:
        said = f"{_named(stopped)} cannot be written to: new ledgers need more, and {there}"
        yield Finding(Level.FAIL, "logs", said, how)
    if smaller:
        said = f"{there}, so new ledgers of {_named(smaller)} are smaller than wanted"
        yield Finding(Level.WARN, "logs", said, f"{how}; `bkspark repair` makes the other copies")


def table_findings(logs: Iterable[LogRecord]) -> Iterator[Finding]:
    """Logs with rows in a table, in one line; the last audit says whether the tables are whole."""
    tiers = {log.name: log.tier for log in logs if log.tier is not None}
    if not tiers:
        return
    copied = sum(tier.copied_bytes for tier in tiers.values())
    freed = sum(tier.length_bytes for tier in tiers.values())
    unfinished = [name for name, tier in tiers.items() if tier.intent is not None]
    said = f"{_named(list(tiers))} in tables: {copied:,} bytes copied, {freed:,} of them freed"
    begun = f"; a copy of {_named(unfinished)} has begun" if unfinished else ""
    fix = "`bkspark offload LOG` finishes it, unless an offload is running" if unfinished else ""
    yield Finding(Level.OK, "tables", said + begun, fix)


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


# --- health --------------------------------------------------------------------------------------


_PROBLEMS_SHOWN_MAX = 5

AUDIT_DAYS_MAX = 7
"""An older audit counts as outdated."""

DAY_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Health:
    """Findings and their basis."""

    findings: list[Finding]
    details: dict[str, Any]


def examine(cluster: Survey, shown_uri: str) -> Health:
    """Examine the whole cluster once."""
    everything = cluster.read_all()
    read, logs = everything.ledgers, everything.logs
    statuses = cluster.probe()
    lost = cluster.lost_members()
    usable = {status.member for status in statuses if not status.problem}
    ledgers = views.ledger_rows(read, views.places_of_ledgers(logs))
    kept = _kept(read, ledgers)
    found = [
        Finding(Level.OK, "cluster", f"{cluster.cluster_id} at {shown_uri}"),
        *bookie_findings(statuses, lost, named_members(cluster, read, lost)),
        *log_findings(logs, statuses, lost),
        *table_findings(logs),
        *risk_findings(cluster, statuses),
        *domain_findings(statuses),
        *short_findings(kept),
        *_copies(kept, usable, {s.member for s in statuses if s.member not in lost}),
    ]
    unclosed = _unclosed(cluster, read, usable)
    found += _unclosed_findings(unclosed)
    told = {ledger["ledger_id"] for ledger in unclosed}
    found += _leftovers(ledgers, told, cluster.unreadable)
    found += deletion_findings(logs)
    agents = living_agents(cluster)
    found += agent_findings(cluster, [status.record.bookie_id for status in statuses], agents)
    found += _missing_ledgers(cluster, logs, ledgers)
    found += _last_audit(cluster)
    found += _last_scrub(cluster)
    found += _last_collection(cluster)
    found += unreadable_findings(cluster)
    return Health(
        found,
        {
            "bookies": with_agents(views.bookies(cluster, None), agents),
            "unclosed": unclosed,
            "tables": views.tier_rows(logs),
        },
    )


def agent_findings(
    cluster: Cluster, bookie_ids: Collection[str], agents: Mapping[str, Contender]
) -> Iterator[Finding]:
    """Which bookies have a living agent, and what the agents found; nothing without agents."""
    if not agents:
        return
    without = [bookie_id for bookie_id in bookie_ids if bookie_id not in agents]
    shown = "; ".join(f"{bookie}: {agent}" for bookie, agent in sorted(agents.items()))
    missing = f"; {', '.join(without[:_NAMES_SHOWN_MAX])} without one" if without else ""
    yield Finding(
        Level.WARN if without else Level.OK,
        "agents",
        f"{len(bookie_ids) - len(without)} of {plural(len(bookie_ids), 'bookie')} have a living "
        f"agent: {shown}{missing}",
        "start `bkspark agent --bookie ID` on the host of each" if without else "",
    )
    for bookie_id in sorted(agents):
        seen = cluster.upkeep.reports.get(f"agent.{bookie_id}")
        if seen is not None and seen.value.left:
            yield Finding(
                Level.WARN,
                bookie_id,
                f"its agent found something wrong: {_ended(seen.value)}",
                "the output of the agent says what",
            )


def unreadable_findings(cluster: Cluster) -> Iterator[Finding]:
    """Metadata records skipped as unreadable."""
    for key, reason in list(cluster.unreadable.items())[:_PROBLEMS_SHOWN_MAX]:
        yield Finding(
            Level.FAIL,
            "metadata",
            f"record {key} cannot be read: {reason}",
            _how_to_mend(key),
        )
    more = len(cluster.unreadable) - _PROBLEMS_SHOWN_MAX
    if more > 0:
        yield Finding(Level.FAIL, "metadata", f"and {plural(more, 'more record')}")


def _how_to_mend(key: str) -> str:
    verb = key.removeprefix(f"{layout.REPORTS_PREFIX}/")
    if verb != key:
        return f"`bkspark {verb}` writes it again"
    return (
        "bring it back from a copy of the metadata store; commands that need it fail until "
        "then; `bkspark metadata damaged` names other ways"
    )


def _last_audit(cluster: Cluster) -> Iterator[Finding]:
    """Time and result of the last full audit: one record, however many ledgers."""
    seen = cluster.upkeep.reports.get(VERB)
    if seen is None:
        now = "`bkspark audit` looks at every copy"
        yield Finding(Level.WARN, "audit", "there was no audit yet: no copy was checked", now)
        return
    report, when = seen.value, _ended(seen.value)
    is_old = environment.now_ms() - report.ended_ms > AUDIT_DAYS_MAX * DAY_MS
    age = f", more than {AUDIT_DAYS_MAX} days ago" if is_old else ""
    found = in_words(report.counters)
    if report.left and not found:
        found = f"{plural(report.left, 'finding')}"
    elif not report.left:
        found = f"all was well ({found})" if found else "all was well"
    is_loss = any(report.counters.get(name) for name in LOSSES)
    checked = plural(report.counters.get(CHECKED, 0), "ledger")
    is_to_be_told = bool(report.left) or is_old
    yield Finding(
        Level.FAIL if is_loss else Level.WARN if is_to_be_told else Level.OK,
        "audit",
        f"{when}{age}, {checked}: {found}",
        "`bkspark audit` looks again" if is_to_be_told else "",
    )


def _last_scrub(cluster: Cluster) -> Iterator[Finding]:
    """Time and result of the last scrub; damage found then may have been repaired since."""
    seen = cluster.upkeep.reports.get(scrubbing.VERB)
    if seen is None:
        now = "`bkspark scrub` reads every copy"
        yield Finding(Level.OK, "scrub", "there was no scrub yet: no byte was checked", now)
        return
    report, count = seen.value, seen.value.counters.get
    files, copies = count(scrubbing.DAMAGED_FILES, 0), count(scrubbing.DAMAGED, 0)
    windows = count(scrubbing.CHANGED_WINDOWS, 0)
    found = "all data read is good"
    if files:
        found = scrubbing.damage_in_words(files, copies, count(scrubbing.DAMAGED_LEDGERS, 0))
    elif windows:
        found = scrubbing.changed_in_words(windows)
    elif report.left:
        found = f"{plural(report.left, 'thing')} left"
    read = plural(count(scrubbing.FILES, 0), "file")
    again = "`bkspark repair` makes the copies again; then run an audit, and check the disk"
    if windows and not copies:
        again = "`bkspark scrub` names the rows: RESTORE the table, or accept the change"
    elif report.left and not copies:
        again = "`bkspark scrub` says which data could not be read"
    yield Finding(
        Level.WARN if report.left else Level.OK,
        "scrub",
        f"{_ended(report)}, {read}: {found}",
        again if report.left else "",
    )


def _last_collection(cluster: Cluster) -> Iterator[Finding]:
    """Time and result of the last collection; none before the first collection."""
    seen = cluster.upkeep.reports.get(collecting.VERB)
    if seen is None:
        return
    report = seen.value
    deleted, size = (report.counters.get(c, 0) for c in (collecting.DELETED, collecting.RECLAIMED))
    left = f"; {plural(report.left, 'thing')} left" if report.left else ""
    yield Finding(
        Level.WARN if report.left else Level.OK,
        "collect",
        f"{_ended(report)}, {plural(deleted, 'ledger')}, {size:,} bytes freed{left}",
        "`bkspark collect` continues" if report.left else "",
    )


def _ended(report: ReportRecord) -> str:
    shown = timestamp(report.ended_ms)
    return "at an unknown time" if shown is None else f"{shown:%Y-%m-%d %H:%M}Z"


def _missing_ledgers(
    cluster: Cluster, logs: Iterable[LogRecord], ledgers: list[views.Row]
) -> Iterator[Finding]:
    """Ledgers listed by a log but without a record."""
    deleting = LedgerState.DELETING.value
    known = {ledger["ledger_id"] for ledger in ledgers if ledger["state"] != deleting}
    for gone in gone_from_lists(cluster, logs, known):
        for reason, hint in gone.reasons:
            yield Finding(Level.FAIL, f"log {gone.log}", reason, hint)


def deletion_findings(logs: Iterable[LogRecord]) -> Iterator[Finding]:
    """Ledgers dropped by a log but not deleted yet."""
    for log in logs:
        if not log.to_delete_count:
            continue
        command = "delete" if log.is_tombstone else "retain"
        now = f"`bkspark log {command} {log.name}` continues"
        yield Finding(
            Level.WARN,
            f"log {log.name}",
            f"{plural(log.to_delete_count, 'ledger')} hidden and not deleted yet",
            now if log.is_tombstone else f"{now}; its writer's next roll does so too",
        )


def _kept(read: list[LedgerMetadata], rows: list[views.Row]) -> list[LedgerMetadata]:
    """Ledgers neither deleted nor dropped from their log."""
    dropped = {row["ledger_id"] for row in rows if row["place"] == views.DROPPED}
    return [
        ledger
        for ledger in read
        if ledger.state is not LedgerState.DELETING and ledger.ledger_id not in dropped
    ]


def _copies(
    kept: list[LedgerMetadata], usable: Collection[Member], expected: Collection[Member]
) -> Iterator[Finding]:
    """Ledgers naming unreadable bookies, by their records alone.

    Args:
        expected: members that may come back.
    """
    away: dict[int, set[Member]] = {}
    for ledger in kept:
        members = {m for location in Locations(ledger).known for m in location.members}
        if not members <= set(usable):
            away[ledger.ledger_id] = members - set(usable)
    if not away:
        yield Finding(Level.OK, "copies", "no ledger names a bookie that cannot be read")
        return
    is_away = any(member in expected for members in away.values() for member in members)
    yield Finding(
        Level.FAIL,
        "copies",
        f"copies of {plural(len(away), 'ledger')} are missing: their bookies cannot be read",
        "readers skip a missing copy while another good copy exists"
        + ("; bring back the bookies that are away" if is_away else ""),
    )
    for ledger_id in sorted(away)[:_PROBLEMS_SHOWN_MAX]:
        where = ", ".join(sorted({member.bookie_id for member in away[ledger_id]}))
        yield Finding(Level.FAIL, f"ledger {ledger_id}", f"lacks copies on {where}")
    if len(away) > _PROBLEMS_SHOWN_MAX:
        more = plural(len(away) - _PROBLEMS_SHOWN_MAX, "more ledger")
        yield Finding(Level.FAIL, "copies", f"and {more}", "`bkspark audit --json` lists them all")


def _unclosed(
    cluster: Cluster, read: list[LedgerMetadata], usable: Collection[Member]
) -> list[views.Row]:
    """Ledgers IN_RECOVERY, or OPEN with an unusable bookie."""
    stuck = {row["ledger_id"]: row for row in views.recovery_rows(cluster, read)}
    rows: list[views.Row] = []
    for ledger in read:
        if ledger.state in (LedgerState.CLOSED, LedgerState.DELETING):
            continue
        away = [m.bookie_id for m in Locations(ledger).last.members if m not in usable]
        if away or ledger.state is LedgerState.IN_RECOVERY:
            rows.append(
                {
                    "ledger_id": ledger.ledger_id,
                    "state": ledger.state.value,
                    "term": ledger.term,
                    "missing_bookies": away,
                    "recovery": stuck.get(ledger.ledger_id),
                }
            )
    return rows


def _unclosed_findings(unclosed: list[views.Row]) -> Iterator[Finding]:
    found = [_unclosed_finding(row) for row in unclosed]
    found.sort(key=lambda finding: finding.level is not Level.FAIL)
    yield from found[:_PROBLEMS_SHOWN_MAX]
    left = found[_PROBLEMS_SHOWN_MAX:]
    if left:  # sorted: the first has the worst level
        more = plural(len(left), "more ledger")
        yield Finding(left[0].level, "not closed", f"and {more}", "--json lists them all")


def _unclosed_finding(row: views.Row) -> Finding:
    recovery = row["recovery"]
    if recovery is not None and recovery["reason"]:
        return Finding(
            Level.FAIL,
            f"ledger {row['ledger_id']}",
            f"{row['state']} in term {row['term']}: {recovery['reason']}",
            recovery["hint"],
        )
    recover = f"`bkspark ledger recover {row['ledger_id']}`"
    away = ", ".join(row["missing_bookies"])
    is_recovering = row["state"] == LedgerState.IN_RECOVERY.value
    return Finding(
        Level.FAIL if is_recovering and away else Level.WARN,
        f"ledger {row['ledger_id']}",
        f"{row['state']} in term {row['term']}" + (f", and {away} cannot be used" if away else ""),
        f"{recover} continues it, or says which bookie it waits for"
        if is_recovering
        else (f"its writer replaces the bookie if the writer is alive; else {recover} recovers it"),
    )


def _leftovers(
    ledgers: list[views.Row], told: set[int], unreadable: Collection[str]
) -> Iterator[Finding]:
    """Ledgers in no log, and remains of deleted ledgers.

    Args:
        unreadable: keys of unreadable records: ledgers of an unreadable log may be listed there.
    """
    deleting = [x for x in ledgers if x["state"] == LedgerState.DELETING.value]
    kept = [x for x in ledgers if x["state"] != LedgerState.DELETING.value]
    yield from _in_no_log(
        [x for x in kept if x["place"] is None and x["ledger_id"] not in told], unreadable
    )
    dropped = sum(ledger["place"] == views.DROPPED for ledger in kept)
    if dropped or deleting:
        yield Finding(
            Level.OK,
            "leftovers",
            f"{plural(dropped, 'ledger')} dropped from logs, {len(deleting):,} deleted; "
            "their data is still on the bookies",
        )


def _in_no_log(ledgers: list[views.Row], unreadable: Collection[str]) -> Iterator[Finding]:
    """Ledgers made for no log, and ledgers missing from their log's list."""
    open_state = LedgerState.OPEN.value
    alone = [x for x in ledgers if x["log"] is None and x["state"] == open_state]
    if alone:
        yield Finding(
            Level.OK,
            "open",
            f"{plural(len(alone), 'ledger')} in no log: {_ids(alone)}",
            "they are being written now, or their writers have ended; `bkspark ledger "
            "recover ID` closes one",
        )
    made_for_logs = [x for x in ledgers if x["log"] is not None]
    unfinished = [x for x in made_for_logs if layout.log_key(x["log"]) not in unreadable]
    if unfinished:
        yield Finding(
            Level.WARN,
            "unfinished",
            f"{plural(len(unfinished), 'ledger')} in no log: {_ids(unfinished)}",
            "they are being written now, or were left by killed jobs; `bkspark collect` "
            "frees these after a week, and `bkspark ledger delete ID` deletes one now",
        )


def _ids(ledgers: list[views.Row]) -> str:
    shown = ", ".join(str(ledger["ledger_id"]) for ledger in ledgers[:_PROBLEMS_SHOWN_MAX])
    return shown + (" …" if len(ledgers) > _PROBLEMS_SHOWN_MAX else "")
