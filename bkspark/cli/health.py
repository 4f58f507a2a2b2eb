"""``bkspark status``: what is wrong with a cluster now."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from bkspark.cli.findings import Finding, Level
from bkspark.cli.output import plural
from bkspark.client.batch.plan import DEFAULT_QUORUM
from bkspark.client.cluster import BookieStatus, Cluster
from bkspark.client.upkeep import views
from bkspark.protocol.ledger import LedgerState, Member
from bkspark.protocol.placement import Candidate, shared_domains

_PROBLEMS_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Health:
    """Findings, and the rows they were made of."""

    findings: list[Finding]
    details: dict[str, Any]


def examine(cluster: Cluster, shown_uri: str) -> Health:
    """Look at everything once."""
    statuses = cluster.probe()
    lost = cluster.lost_members()
    away = {s.record.bookie_id for s in statuses if s.problem and s.member not in lost}
    ledgers = views.ledgers(cluster, None)
    missing = views.underreplicated(cluster, None)
    found = [
        Finding(Level.OK, "cluster", f"{cluster.cluster_id} at {shown_uri}"),
        *bookie_findings(statuses, lost),
        *_domains(statuses),
        *_replication(ledgers, missing, away),
    ]
    unclosed = _unclosed(cluster, statuses)
    found += _unclosed_findings(unclosed)
    found += _leftovers(ledgers, {ledger["ledger_id"] for ledger in unclosed})
    found += deletion_findings(cluster)
    return Health(
        found,
        {
            "bookies": views.bookies(cluster, None),
            "underreplicated": missing,
            "unclosed": unclosed,
        },
    )


def bookie_findings(statuses: list[BookieStatus], lost: Collection[Member]) -> Iterator[Finding]:
    """Whether every bookie can be used, and enough of them; those declared lost are told apart."""
    alive = [status for status in statuses if status.member not in lost]
    usable = [status for status in alive if not status.problem]
    level = Level.OK if len(usable) == len(alive) else Level.FAIL
    yield Finding(level, "bookies", f"{len(usable)} of {len(alive)} can be used")
    for status in alive:
        if status.problem:
            yield Finding(
                Level.FAIL,
                status.record.bookie_id,
                status.problem,
                "bring it back, or, if it will never come back, say so: "
                f"`bkspark bookie lost {status.record.bookie_id}`",
            )
    for status in statuses:
        if status.member in lost:
            yield _lost_finding(status)
    writable = [status for status in usable if not status.record.is_read_only]
    if len(writable) < DEFAULT_QUORUM.ensemble_size:
        yield Finding(
            Level.WARN,
            "writes",
            f"{plural(len(writable), 'bookie')} for new ledgers, fewer than the default "
            f"ensembleSize {DEFAULT_QUORUM.ensemble_size}",
            "add bookies (`bkspark bookie add URL`), or write with a smaller ensembleSize",
        )


def _lost_finding(status: BookieStatus) -> Finding:
    if status.problem:
        return Finding(
            Level.WARN,
            status.record.bookie_id,
            "declared lost: no recovery waits for it, and nothing new is placed on it",
            "put another in its place (`bkspark bookie add URL`); copies that only it had are "
            "listed as missing",
        )
    return Finding(
        Level.WARN,
        status.record.bookie_id,
        "declared lost, and came back: what it has is read, what it lacks proves nothing, and "
        "nothing new is placed on it",
        "leave it there to be read, and put another in its place (`bkspark bookie add URL`); the "
        "word cannot be taken back",
    )


def deletion_findings(cluster: Cluster) -> Iterator[Finding]:
    """Ledgers that a log has let go of and that could not be deleted yet."""
    for name in cluster.log_names():
        seen = cluster.logs.get(name)
        if seen is None or not seen.value.to_delete:
            continue
        command = "delete" if seen.value.is_vacant else "retain"
        now = f"`bkspark log {command} {name}` goes on with it"
        yield Finding(
            Level.WARN,
            f"log {name}",
            f"{plural(len(seen.value.to_delete), 'ledger')} hidden and not deleted yet",
            now if seen.value.is_vacant else f"{now}; so does its writer's next roll",
        )


def _domains(statuses: list[BookieStatus]) -> Iterator[Finding]:
    records = [status.record for status in statuses if not status.problem]
    candidates = [Candidate(Member(r.bookie_id, r.incarnation), r.domain) for r in records]
    for domain, ids in shared_domains(candidates).items():
        yield Finding(
            Level.WARN,
            "domains",
            f"{', '.join(ids)} are all on {domain} and will be lost together",
            "give every bookie a disk of its own",
        )


def _replication(
    ledgers: list[views.Row], missing: list[views.Row], away: Collection[str]
) -> Iterator[Finding]:
    listed = [ledger for ledger in ledgers if ledger["state"] == LedgerState.CLOSED.value]
    if not missing:
        yield Finding(
            Level.OK, "copies", f"nothing is missing of {plural(len(listed), 'closed ledger')}"
        )
    else:
        by_ledger = Counter(row["ledger_id"] for row in missing)
        is_away = any(row["bookie_id"] in away for row in missing)
        yield Finding(
            Level.FAIL,
            "copies",
            f"copies are missing of {plural(len(by_ledger), 'ledger')}",
            "reads step over what is missing while one good copy is left"
            + ("; bring back the bookies that are away" if is_away else ""),
        )
        for ledger_id in sorted(by_ledger)[:_PROBLEMS_SHOWN_MAX]:
            rows = [row for row in missing if row["ledger_id"] == ledger_id]
            where = ", ".join(sorted({row["bookie_id"] for row in rows}))
            yield Finding(Level.FAIL, f"ledger {ledger_id}", f"lacks copies on {where}")
        if len(by_ledger) > _PROBLEMS_SHOWN_MAX:
            more = plural(len(by_ledger) - _PROBLEMS_SHOWN_MAX, "more ledger")
            yield Finding(Level.FAIL, "copies", f"and {more}", "--json lists them all")
    secret = [ledger for ledger in listed if ledger["digest_type"] != "CRC32C"]
    if secret:
        yield Finding(
            Level.OK,
            "passwords",
            f"of {plural(len(secret), 'ledger')} with a password only the bookies were looked at",
        )


def _unclosed(cluster: Cluster, statuses: list[BookieStatus]) -> list[views.Row]:
    """Ledgers that are IN_RECOVERY, or OPEN with a bookie that cannot be used."""
    usable = {
        Member(status.record.bookie_id, status.record.incarnation)
        for status in statuses
        if not status.problem
    }
    stuck = {row["ledger_id"]: row for row in views.recoveries(cluster, None)}
    rows: list[views.Row] = []
    for ledger_id in cluster.ledger_ids():
        seen = cluster.ledgers.get(str(ledger_id))
        if seen is None or seen.value.state in (LedgerState.CLOSED, LedgerState.DELETING):
            continue
        ledger = seen.value
        away = [m.bookie_id for m in ledger.last_fragment.ensemble if m not in usable]
        if away or ledger.state is LedgerState.IN_RECOVERY:
            rows.append(
                {
                    "ledger_id": ledger_id,
                    "state": ledger.state.value,
                    "term": ledger.term,
                    "missing_bookies": away,
                    "recovery": stuck.get(ledger_id),
                }
            )
    return rows


def _unclosed_findings(unclosed: list[views.Row]) -> Iterator[Finding]:
    for row in unclosed[:_PROBLEMS_SHOWN_MAX]:
        recovery = row["recovery"]
        if recovery is not None and recovery["reason"]:
            yield Finding(
                Level.FAIL,
                f"ledger {row['ledger_id']}",
                f"{row['state']} in term {row['term']}: {recovery['reason']}",
                recovery["hint"],
            )
        else:
            yield _unclosed_finding(row)
    if len(unclosed) > _PROBLEMS_SHOWN_MAX:
        more = plural(len(unclosed) - _PROBLEMS_SHOWN_MAX, "more ledger")
        yield Finding(Level.WARN, "not closed", f"and {more}", "--json lists them all")


def _unclosed_finding(row: views.Row) -> Finding:
    recover = f"`bkspark ledger recover {row['ledger_id']}`"
    away = ", ".join(row["missing_bookies"])
    is_recovering = row["state"] == LedgerState.IN_RECOVERY.value
    return Finding(
        Level.FAIL if is_recovering and away else Level.WARN,
        f"ledger {row['ledger_id']}",
        f"{row['state']} in term {row['term']}" + (f", and {away} cannot be used" if away else ""),
        f"{recover} goes on with it, or says which bookie it waits for"
        if is_recovering
        else f"its writer, if it runs, replaces the bookie; else {recover} closes it",
    )


def _leftovers(ledgers: list[views.Row], told: set[int]) -> Iterator[Finding]:
    in_no_log = [
        ledger
        for ledger in ledgers
        if ledger["place"] is None
        and ledger["state"] != LedgerState.DELETING.value
        and ledger["ledger_id"] not in told
    ]
    alone = [
        ledger
        for ledger in in_no_log
        if ledger["log"] is None and ledger["state"] == LedgerState.OPEN.value
    ]
    if alone:
        yield Finding(
            Level.OK,
            "open",
            f"{plural(len(alone), 'ledger')} in no log: {_ids(alone)}",
            "being written now, or its writer ended; `bkspark ledger recover ID` closes one",
        )
    unfinished = [ledger for ledger in in_no_log if ledger["log"] is not None]
    if unfinished:
        yield Finding(
            Level.WARN,
            "unfinished",
            f"{plural(len(unfinished), 'ledger')} in no log: {_ids(unfinished)}",
            "being written now, or left behind by a job that was killed; "
            "`bkspark ledger delete ID` removes one for good",
        )
    deleted = sum(ledger["state"] == LedgerState.DELETING.value for ledger in ledgers)
    dropped = sum(
        ledger["place"] == views.DROPPED and ledger["state"] != LedgerState.DELETING.value
        for ledger in ledgers
    )
    if dropped or deleted:
        yield Finding(
            Level.OK,
            "leftovers",
            f"{plural(dropped, 'ledger')} dropped from logs, {deleted:,} deleted; "
            "their data is still on the bookies",
        )


def _ids(ledgers: list[views.Row]) -> str:
    shown = ", ".join(str(ledger["ledger_id"]) for ledger in ledgers[:_PROBLEMS_SHOWN_MAX])
    return shown + (" …" if len(ledgers) > _PROBLEMS_SHOWN_MAX else "")
