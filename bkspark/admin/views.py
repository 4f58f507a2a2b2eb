"""Metadata as tables, for the ``view`` option of a read and for the command line.

Every view is a schema and a function making its rows. Views are small: their rows grow with ledgers
and bookies, not with entries. Views are for people: no decision uses the times they show.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bkspark.admin.survey import UnfinishedRecovery, every_log, unfinished_recoveries
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.cluster.records import UNREAD
from bkspark.format import layout
from bkspark.ledger.creating import OPERATION_KEY, log_of
from bkspark.log.reading.log_view import LogView, views_of, was_set_aside
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.ledger_list import LOST_ENTRIES, LoggedLedger, versions_of
from bkspark.protocol.log.record import LogRecord
from bkspark.quantities import timestamp
from bkspark.storage.address import shown_url

# Arrow is imported by the functions for tables and columns: most commands need neither.
if TYPE_CHECKING:
    import pyarrow as pa

# --- sharing -------------------------------------------------------------------------------------
# Shared parts of all views: reading logs and ledgers, and formatting facts.


Row = dict[str, Any]

LISTED = "listed"
DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class View:
    """A table of metadata.

    Attributes:
        rows: (cluster, name of a log or None for all) -> rows that fit ``schema``.
    """

    name: str
    rows: Callable[[Cluster, str | None], list[Row]]

    @property
    def schema(self) -> "pa.Schema":
        from bkspark.admin.view_schemas import SCHEMAS

        return SCHEMAS[self.name]


def columns_of(schema: bytes) -> list[str]:
    """``name: type`` of every column of a stored schema."""
    if not schema:
        return []
    from bkspark.format import arrow_schema

    return [f"{field.name}: {field.type}" for field in arrow_schema.decode(schema)]


def quorum_of(record: LogRecord | LedgerMetadata) -> Row:
    """The columns of the quorum."""
    return {
        "ensemble_size": record.quorum.ensemble_size,
        "write_quorum_size": record.quorum.write_quorum_size,
        "ack_quorum_size": record.quorum.ack_quorum_size,
        "guarantees_write_quorum": record.settings.guarantees_write_quorum,
        "min_distinct": dict(record.settings.min_distinct),
    }


def all_logs(cluster: Cluster, log_name: str | None) -> Iterator[LogRecord]:
    """Yield the named log, or all logs not deleted.

    Raises:
        NoSuchLedgerError: there is no log ``log_name``.
    """
    if log_name is not None:
        yield cluster.log(log_name).value
        return
    for seen in cluster.logs.present(cluster.log_names()):
        if not seen.value.is_tombstone:
            yield seen.value


def all_ledgers(cluster: Cluster, log_name: str | None) -> Iterator[LedgerMetadata]:
    """Yield a log's ledgers, or all ledgers, with tombstones; raise the errors of ``all_logs``."""
    if log_name is not None:
        cluster.log(log_name)
    for seen in cluster.ledgers.present(map(str, cluster.ledger_ids())):
        if log_name in (None, log_of(seen.value)):
            yield seen.value


def places_of_ledgers(logs: Iterable[LogRecord]) -> dict[int, str]:
    """Return ``LISTED`` or ``DROPPED`` by ledger id, for ledgers known to their logs."""
    places: dict[int, str] = {}
    for log in logs:
        places |= dict.fromkeys(log.listed_ids, LISTED)
        places |= dict.fromkeys(log.every_dropped_id(), DROPPED)
        places |= dict.fromkeys(log.every_waiting_id(), DROPPED)
    return places


# --- bookie views --------------------------------------------------------------------------------
# The view of bookies, each probed now.


def bookies(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per registered bookie, probed now; with a log only bookies of its ledgers.

    ``free_bytes`` is null if unknown, as for object stores and silent bookies.
    """
    lost = cluster.lost_members()
    serving = None if log_name is None else _serving(cluster, log_name)
    return [
        {
            "bookie_id": status.record.bookie_id,
            "url": shown_url(status.record.url),
            "store": status.record.store or None,
            "domain": status.record.domain,
            "labels": dict(status.record.labels),
            "is_usable": not status.problem,
            "is_writable": not (status.problem or status.write_problem),
            "is_lost": status.member in lost,
            "is_read_only": status.record.is_read_only,
            "is_full": status.is_full,
            "is_leaving": status.record.is_leaving,
            "free_bytes": status.free_bytes if status.tells_space else None,
            "incarnation": status.record.incarnation,
            "problem": status.problem or status.write_problem or status.full_note or None,
        }
        for status in cluster.probe()
        if serving is None or status.record.bookie_id in serving
    ]


def _serving(cluster: Cluster, log_name: str) -> set[str]:
    return {
        member.bookie_id
        for ledger in all_ledgers(cluster, log_name)
        for member in Locations(ledger).members
    }


# --- ledger views --------------------------------------------------------------------------------
# Views of ledgers: their places, missing copies, and stuck recoveries.


UNREADABLE = "UNREADABLE"
"""Shown in place of the state of a ledger with an unreadable record."""


def ledgers(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per ledger, including tombstones; without a log also unreadable ledgers."""
    found = list(all_ledgers(cluster, log_name))
    places = places_of_ledgers(every_log(cluster, cluster.log_names()))
    rows = ledger_rows(found, places)
    if log_name is None and cluster.unreadable:
        rows += _unreadable_rows(cluster, places)
    return sorted(rows, key=lambda row: int(row["ledger_id"]))


def ledger_rows(found: Iterable[LedgerMetadata], places: Mapping[int, str]) -> list[Row]:
    """The rows of ``ledgers`` for readable records."""
    return [
        {
            "ledger_id": ledger.ledger_id,
            "log": log_of(ledger),
            "place": places.get(ledger.ledger_id),
            "state": ledger.state.value,
            "entries": None if ledger.last_entry_id is None else ledger.last_entry_id + 1,
            "bytes": ledger.length_bytes,
            "term": ledger.term,
            "fragments": len(Locations(ledger)),
            **quorum_of(ledger),
            "digest_type": ledger.settings.digest.digest_type,
            "created": timestamp(ledger.settings.created_ms),
        }
        for ledger in found
    ]


def _unreadable_rows(cluster: Cluster, places: Mapping[int, str]) -> Iterator[Row]:
    from bkspark.admin.view_schemas import LEDGERS

    nothing: Row = dict.fromkeys(LEDGERS.names)
    for ledger_id in cluster.ledger_ids():
        if layout.ledger_key(ledger_id) in cluster.unreadable:
            place = places.get(ledger_id)
            yield {**nothing, "ledger_id": ledger_id, "place": place, "state": UNREADABLE}


def fragments(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per fragment: a range of entries and its bookies."""
    return [
        row
        for ledger in all_ledgers(cluster, log_name)
        if ledger.state is not LedgerState.DELETING
        for row in fragments_of(ledger)
    ]


def fragments_of(ledger: LedgerMetadata) -> list[Row]:
    """The rows of ``fragments`` for one ledger."""
    return [
        {
            "ledger_id": ledger.ledger_id,
            "log": log_of(ledger),
            "first_entry_id": location.first_entry_id,
            "last_entry_id": location.last_entry_id,
            "term": location.term,
            "ensemble": location.bookie_ids,
        }
        for location in Locations(ledger)
    ]


def underreplicated(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per missing or possibly missing copy, as an audit finds them.

    A ledger created with too few copies gets a further row without a bookie.
    """
    from bkspark.admin.auditing.audit import gaps_of  # lists of logs and ledgers need no audit
    from bkspark.admin.auditing.findings import gap_row

    ledgers = {ledger.ledger_id: ledger for ledger in all_ledgers(cluster, log_name)}
    found = [gap_row(gap) for gap in gaps_of(cluster, sorted(ledgers))]
    found += [_row_of_short(ledger) for ledger in ledgers.values() if sizes.is_short(ledger)]
    return [{"log": log_of(ledgers[row["ledger_id"]]), **row} for row in found]


def _row_of_short(ledger: LedgerMetadata) -> Row:
    from bkspark.admin.auditing.copies import EVERYTHING, Copies
    from bkspark.admin.auditing.findings import Short

    last = ledger.last_entry_id
    return {
        "ledger_id": ledger.ledger_id,
        "fragment": ledger.first_available,
        "first_entry_id": ledger.first_available,
        "last_entry_id": last,
        "bookie_id": None,
        "copies": Copies.BELOW_WRITE_QUORUM.value,
        "is_unknown": False,
        "missing": EVERYTHING,
        "reason": Short.of(ledger).reason,
    }


def recoveries(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per ledger IN_RECOVERY, with the reason it cannot be closed."""
    return recovery_rows(cluster, all_ledgers(cluster, log_name))


def recovery_rows(cluster: Cluster, found: Iterable[LedgerMetadata]) -> list[Row]:
    """The rows of ``recoveries`` for readable records."""
    return [_recovery(unfinished) for unfinished in unfinished_recoveries(cluster, found)]


def recovery_of(cluster: Cluster, ledger: LedgerMetadata) -> Row | None:
    """The row of ``recoveries`` for one ledger; None if not IN_RECOVERY."""
    return next(iter(recovery_rows(cluster, [ledger])), None)


def _recovery(found: UnfinishedRecovery) -> Row:
    stuck = found.stuck
    return {
        "ledger_id": found.ledger.ledger_id,
        "log": log_of(found.ledger),
        "term": found.ledger.term,
        "entry_id": stuck and stuck.entry_id,
        "waiting_for": list(stuck.waiting_for) if stuck else [],
        "reason": stuck and stuck.reason,
        "hint": stuck and stuck.hint,
        "told": stuck and timestamp(stuck.told_ms),
    }


# --- log views -----------------------------------------------------------------------------------
# Views of logs: their state, and their ledgers in order.


LOST = "lost"
"""The operation of a ledger whose metadata record an operator set aside."""


def logs(
    cluster: Cluster,
    log_name: str | None,
    password: Password | None = None,
    *,
    with_columns: bool = True,
) -> list[Row]:
    """One row per log, up to the current readable end.

    If the readable end of an open tail is unknown, ``is_end_known`` is false: the row describes the
    closed ledgers, and further entries may exist.

    Args:
        with_columns: whether to name the columns, which takes loading Arrow.
    """
    records = list(all_logs(cluster, log_name))
    seen = views_of(cluster, records, password or Password())
    rows = [_log_row(log, seen.get(log.name)) for log in records]
    if with_columns:
        for log, row in zip(records, rows):
            row["columns"] = columns_of(log.schema)
    return rows


def _log_row(log: LogRecord, view: LogView | None) -> Row:
    shown = view or LogView(log)
    return {
        "log": log.name,
        "entries": shown.end_offset - shown.first_offset - _lost_count(log),
        "first_offset": shown.first_offset,
        "end_offset": shown.end_offset,
        "bytes": shown.length_bytes,
        "is_end_known": view is not None,
        "ledgers": log.ledger_count + len(log.tail),
        "tail": list(log.tail),
        "tail_confirmed": [_confirmed(shown, ledger_id) for ledger_id in log.tail],
        "is_sealed": log.is_sealed,
        "generation": log.generation,
        **quorum_of(log),
        "is_unbounded": log.is_unbounded,
        "retention_bytes": log.retention.byte_count,
        "retention_seconds": _seconds(log.retention.milliseconds),
        "digest_type": log.digest.digest_type,
        "columns": [],
        "created": timestamp(log.times.created_ms),
        "changed": timestamp(log.times.changed_ms),
    }


def tier_of(log: LogRecord) -> Row | None:
    """Return which offsets of a log its table has; None for a log without a table."""
    tier = log.tier
    if tier is None:
        return None
    return {
        "table": tier.table_url,
        "table_id": tier.table_id,
        "begin": tier.begin,
        "freed": tier.freed,
        "copied": tier.copied,
        "freed_bytes": tier.length_bytes,
        "copied_bytes": tier.copied_bytes,
        "last_copied": timestamp(tier.segments[-1].copied_ms) if tier.segments else None,
        "verified_version": tier.verified_version,
        "segments": len(tier.segments),
        "copying": None if tier.intent is None else [tier.intent.begin, tier.intent.end],
        "missing": [list(gap) for gap in tier.missing],
    }


def tiers(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per log with rows in a table: which offsets the table has."""
    return tier_rows(all_logs(cluster, log_name))


def tier_rows(logs: Iterable[LogRecord]) -> list[Row]:
    """The rows of ``tiers`` for readable records."""
    found = ((log.name, tier_of(log)) for log in logs)
    return [{"log": name, **row} for name, row in found if row is not None]


def _lost_count(log: LogRecord) -> int:
    """Return how many offsets of the log belong to no entry; 0 if a page is unreadable."""
    with suppress(*UNREAD):
        return log.lost_count(log.first_offset, log.end_offset)
    return 0


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _confirmed(view: LogView, ledger_id: int) -> int | None:
    """Return the number of readable entries of a tail ledger; None if not looked up."""
    counts = {place.ledger_id: place.entry_count for place in view.tail}
    return counts.get(ledger_id, 0) if ledger_id in view.metadata else None


def history(cluster: Cluster, log_name: str | None, password: Password | None = None) -> list[Row]:
    """The origin of each log's content: its newest truncation, then each listed ledger.

    A closed ledger keeps its version for ever. An open ledger has no version yet, but the entries
    and bytes readable now, if known. A ledger made by a compaction has the version of the last
    replaced ledger. A ledger whose record was set aside has the operation "lost"; without entries
    if not even their number is known.
    """
    records = list(all_logs(cluster, log_name))
    open_ended = [log for log in records if log.tail]
    seen = views_of(cluster, open_ended, password or Password())
    views = [seen.get(log.name) or LogView(log) for log in records]
    return [row for view in views for row in (*_truncation(view.record), *_writes(cluster, view))]


def _truncation(log: LogRecord) -> Iterator[Row]:
    """Yield the log's new beginning; a truncation removes entries and is no version of its own."""
    if log.first_offset:
        from bkspark.admin.view_schemas import HISTORY

        yield {
            **dict.fromkeys(HISTORY.names),
            "log": log.name,
            "generation": log.generation,
            "timestamp": timestamp(log.times.truncated_ms or 0),
            "operation": "truncate",
            "first_offset": log.first_offset,
        }


def _writes(cluster: Cluster, view: LogView) -> Iterator[Row]:
    log = view.record
    behind = log.listed.first_version
    for place in log.every_ledger():
        behind += versions_of([place])
        yield _write(cluster, log, place.ledger_id, behind - 1, place)
    places = {place.ledger_id: place for place in view.tail}
    for ledger_id in log.tail:
        yield _write(cluster, log, ledger_id, None, places.get(ledger_id))


def _write(
    cluster: Cluster,
    log: LogRecord,
    ledger_id: int,
    version: int | None,
    place: LoggedLedger | None,
) -> Row:
    seen = cluster.ledgers.get(str(ledger_id))
    ledger = None if seen is None else seen.value
    is_lost = ledger is None and was_set_aside(cluster, ledger_id)
    has_unknown_end = place is not None and place.entry_count >= LOST_ENTRIES
    began_ms = ledger.settings.created_ms if ledger else 0
    noted = ledger.settings.custom_metadata if ledger else {}
    return {
        "log": log.name,
        "generation": log.generation,
        "version": version,
        "timestamp": timestamp(place.closed_ms if place and place.closed_ms else began_ms),
        "operation": LOST if is_lost else noted.get(OPERATION_KEY),
        "ledger_id": ledger_id,
        "first_offset": place and place.first_offset,
        "entries": None if has_unknown_end else place and place.entry_count,
        "bytes": place and place.length_bytes,
        "first_committed": timestamp(place.first_ms) if place else None,
        "last_committed": timestamp(place.last_ms) if place else None,
        "transactions": _transactions(ledger),
    }


def _transactions(ledger: LedgerMetadata | None) -> list[Row]:
    done = {} if ledger is None else ledger.transactions
    return [{"app_id": app_id, "version": version} for app_id, version in sorted(done.items())]


# --- views ---------------------------------------------------------------------------------------


__all__ = [
    "DROPPED",
    "LISTED",
    "LOST",
    "VIEWS",
    "Row",
    "View",
    "bookies",
    "columns_of",
    "fragments",
    "fragments_of",
    "history",
    "ledger_rows",
    "ledgers",
    "logs",
    "recoveries",
    "recovery_of",
    "recovery_rows",
    "table",
    "tier_rows",
    "tiers",
    "timestamp",
    "underreplicated",
]

VIEWS = {
    name: View(name, rows)
    for name, rows in {
        "logs": logs,
        "ledgers": ledgers,
        "fragments": fragments,
        "bookies": bookies,
        "history": history,
        "underreplicated": underreplicated,
        "recoveries": recoveries,
        "tier": tiers,
    }.items()
}


def table(view: str, cluster: Cluster, log_name: str | None) -> "pa.Table":
    """Return the rows of the named view.

    Raises:
        NoSuchLedgerError: there is no log ``log_name``.
    """
    import pyarrow as pa

    found = VIEWS[view]
    return pa.Table.from_pylist(found.rows(cluster, log_name), schema=found.schema)
