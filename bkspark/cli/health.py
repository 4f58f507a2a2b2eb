"""``bkspark status``: what is wrong with a cluster now."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from bkspark.admin import views
from bkspark.admin.auditing.findings import CHECKED, VERB
from bkspark.admin.listed_ledgers import gone_from_lists
from bkspark.admin.survey import Survey
from bkspark.cli import bookie_health
from bkspark.cli.findings import Finding, Level
from bkspark.cli.output import plural
from bkspark.cluster.bookie_status import BookieStatus
from bkspark.cluster.cluster import Cluster
from bkspark.protocol.ledger.metadata import LedgerState, Member

_PROBLEMS_SHOWN_MAX = 5
_NOT_CLOSED = (LedgerState.OPEN.value, LedgerState.IN_RECOVERY.value)


@dataclass(frozen=True, slots=True)
class Health:
    """Findings, and the rows they were made of."""

    findings: list[Finding]
    details: dict[str, Any]


def examine(cluster: Survey, shown_uri: str) -> Health:
    """Look at everything once."""
    cluster.read_all()
    statuses = cluster.probe()
    lost = cluster.lost_members()
    named = bookie_health.named_members(cluster, lost)
    away = {s.record.bookie_id for s in statuses if s.problem and s.member not in lost}
    ledgers = views.ledgers(cluster, None)
    missing = views.underreplicated(cluster, None)
    found = [
        Finding(Level.OK, "cluster", f"{cluster.cluster_id} at {shown_uri}"),
        *bookie_health.bookie_findings(statuses, lost, named),
        *bookie_health.log_findings(cluster, statuses, lost),
        *bookie_health.risk_findings(cluster, statuses),
        *bookie_health.domain_findings(statuses),
        *_replication(ledgers, missing, away),
    ]
    unclosed = _unclosed(cluster, statuses)
    found += _unclosed_findings(unclosed)
    found += _leftovers(ledgers, {ledger["ledger_id"] for ledger in unclosed})
    found += deletion_findings(cluster)
    found += _missing_ledgers(cluster, ledgers)
    found += _last_audit(cluster)
    found += unreadable_findings(cluster)
    return Health(
        found,
        {
            "bookies": views.bookies(cluster, None),
            "underreplicated": missing,
            "unclosed": unclosed,
        },
    )


def unreadable_findings(cluster: Cluster) -> Iterator[Finding]:
    """Metadata records that were stepped over."""
    for key, reason in list(cluster.unreadable.items())[:_PROBLEMS_SHOWN_MAX]:
        yield Finding(
            Level.FAIL,
            "metadata",
            f"record {key} cannot be read: {reason}",
            "bring it back from a copy of the metadata store; until then what needs it fails",
        )
    more = len(cluster.unreadable) - _PROBLEMS_SHOWN_MAX
    if more > 0:
        yield Finding(Level.FAIL, "metadata", f"and {plural(more, 'more record')}")


def _last_audit(cluster: Cluster) -> Iterator[Finding]:
    """When the last audit of all was, and what it found: one record, however many ledgers."""
    seen = cluster.reports.get(VERB)
    if seen is None:
        now = "`bkspark audit` looks at every copy"
        yield Finding(Level.OK, "audit", "there was none yet", now)
        return
    report = seen.value
    shown = views.timestamp(report.ended_ms)
    when = "at an unknown time" if shown is None else f"{shown:%Y-%m-%d %H:%M}Z"
    counts = {name: count for name, count in report.counters.items() if count and name != CHECKED}
    found = ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "all was well"
    checked = plural(report.counters.get(CHECKED, 0), "ledger")
    yield Finding(
        Level.WARN if report.left else Level.OK,
        "audit",
        f"{when}, {checked}: {found}",
        "`bkspark audit` looks again" if report.left else "",
    )


def _missing_ledgers(cluster: Cluster, ledgers: list[views.Row]) -> Iterator[Finding]:
    """Ledgers on the list of a log that have no record any more."""
    deleting = LedgerState.DELETING.value
    known = {ledger["ledger_id"] for ledger in ledgers if ledger["state"] != deleting}
    for name, gone in gone_from_lists(cluster, cluster.log_names(), known):
        more = " …" if len(gone) > _PROBLEMS_SHOWN_MAX else ""
        shown = ", ".join(map(str, gone[:_PROBLEMS_SHOWN_MAX])) + more
        yield Finding(
            Level.FAIL,
            f"log {name}",
            f"{plural(len(gone), 'ledger')} on its list cannot be read, for want of a metadata "
            f"record: {shown}",
            "bring the metadata store back as it was",
        )


def deletion_findings(cluster: Cluster) -> Iterator[Finding]:
    """Ledgers that a log has let go of and that could not be deleted yet."""
    for name in cluster.log_names():
        seen = cluster.logs.get(name)
        if seen is None or not seen.value.to_delete_count:
            continue
        command = "delete" if seen.value.is_vacant else "retain"
        now = f"`bkspark log {command} {name}` goes on with it"
        yield Finding(
            Level.WARN,
            f"log {name}",
            f"{plural(seen.value.to_delete_count, 'ledger')} hidden and not deleted yet",
            now if seen.value.is_vacant else f"{now}; so does its writer's next roll",
        )


def _replication(
    ledgers: list[views.Row], missing: list[views.Row], away: Collection[str]
) -> Iterator[Finding]:
    kept = [ledger for ledger in ledgers if ledger["place"] != views.DROPPED]
    closed = [ledger for ledger in kept if ledger["state"] == LedgerState.CLOSED.value]
    secret = [ledger for ledger in closed if ledger["digest_type"] != "CRC32C"]
    if not missing:
        count = plural(len(closed) - len(secret), "closed ledger")
        yield Finding(Level.OK, "copies", f"nothing is missing of {count}")
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
    if secret:
        yield Finding(
            Level.OK,
            "passwords",
            f"of {plural(len(secret), 'ledger')} with a password only the bookies were looked at",
        )
    unclosed = [ledger for ledger in kept if ledger["state"] in _NOT_CLOSED]
    if unclosed:
        yield Finding(
            Level.OK,
            "open",
            f"of {plural(len(unclosed), 'open ledger')} only the bookies were looked at",
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
    found = [_unclosed_finding(row) for row in unclosed]
    found.sort(key=lambda finding: finding.level is not Level.FAIL)
    yield from found[:_PROBLEMS_SHOWN_MAX]
    left = found[_PROBLEMS_SHOWN_MAX:]
    if left:  # the first of them is of the worst
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
