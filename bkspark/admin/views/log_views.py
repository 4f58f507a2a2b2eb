"""Views of logs: their state, and their ledgers in order."""

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from bkspark.admin.views.sharing import (
    QUORUM_FIELDS,
    TIME,
    Row,
    all_logs,
    columns_of,
    quorum_of,
    timestamp,
)
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.cluster.records import UNREAD
from bkspark.ledger.creating import OPERATION_KEY
from bkspark.log.reading.data_loss import was_set_aside
from bkspark.log.reading.log_view import LogView, views_of
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.log.ledger_list import LOST_ENTRIES, LoggedLedger, versions_of
from bkspark.protocol.log.record import LogRecord

LOGS = pa.schema(
    [
        ("log", pa.string()),
        ("entries", pa.int64()),
        ("first_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("bytes", pa.int64()),
        ("is_end_known", pa.bool_()),
        ("ledgers", pa.int32()),
        ("tail", pa.list_(pa.int64())),
        ("tail_confirmed", pa.list_(pa.int64())),
        ("is_sealed", pa.bool_()),
        ("generation", pa.int32()),
        *QUORUM_FIELDS,
        ("is_unbounded", pa.bool_()),
        ("retention_bytes", pa.int64()),
        ("retention_seconds", pa.float64()),
        ("digest_type", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("created", TIME),
        ("changed", TIME),
    ]
)

HISTORY = pa.schema(
    [
        ("log", pa.string()),
        ("generation", pa.int32()),
        ("version", pa.int64()),
        ("timestamp", TIME),
        ("operation", pa.string()),
        ("ledger_id", pa.int64()),
        ("first_offset", pa.int64()),
        ("entries", pa.int64()),
        ("bytes", pa.int64()),
        (
            "transactions",
            pa.list_(pa.struct([("app_id", pa.string()), ("version", pa.int64())])),
        ),
    ]
)


LOST = "lost"
"""The operation of a ledger whose metadata record an operator set aside."""


def logs(cluster: Cluster, log_name: str | None, password: Password | None = None) -> list[Row]:
    """One row per log, up to the current readable end.

    If the readable end of an open tail is unknown, ``is_end_known`` is false: the row describes the
    closed ledgers, and further entries may exist.
    """
    records = list(all_logs(cluster, log_name))
    seen = views_of(cluster, records, password or Password())
    return [_log_row(log, seen.get(log.name)) for log in records]


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
        "columns": columns_of(log.schema),
        "created": timestamp(log.times.created_ms),
        "changed": timestamp(log.times.changed_ms),
    }


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
        "transactions": _transactions(ledger),
    }


def _transactions(ledger: LedgerMetadata | None) -> list[Row]:
    done = {} if ledger is None else ledger.transactions
    return [{"app_id": app_id, "version": version} for app_id, version in sorted(done.items())]
