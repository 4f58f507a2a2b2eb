"""Metadata as tables, for the ``view`` option of a read and for the command line.

Every view is a schema and a function that makes its rows. Views are small: their rows grow with
ledgers and bookies, not with entries. All are for people: times come from clocks that nothing else
looks at.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from bkspark.bookie.checks import without_credentials
from bkspark.client.cluster import Cluster
from bkspark.client.upkeep.replication_check import missing_replicas
from bkspark.client.upkeep.stuck_recoveries import STUCK_SCHEMA, unfinished_recoveries
from bkspark.format import arrow_schema
from bkspark.protocol.ledger import LedgerMetadata, LedgerState
from bkspark.protocol.log import LogRecord

Row = dict[str, Any]

LOG_KEY = "log"
"""Custom metadata in which a DataFrame write notes the log that its ledger is meant for."""

LISTED = "listed"
DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class View:
    """A table of metadata.

    Attributes:
        rows: (cluster, name of a log or None for all) -> rows that fit ``schema``.
    """

    schema: pa.Schema
    rows: Callable[[Cluster, str | None], list[Row]]


def table(view: str, cluster: Cluster, log_name: str | None) -> pa.Table:
    """The rows of the view with this name.

    Raises:
        NoSuchLedgerError: there is no log ``log_name``.
    """
    found = VIEWS[view]
    return pa.Table.from_pylist(found.rows(cluster, log_name), schema=found.schema)


def logs(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per log; entries and bytes are those of its closed ledgers."""
    return [
        {
            "log": log.name,
            "entries": log.end_offset - log.first_offset,
            "first_offset": log.first_offset,
            "end_offset": log.end_offset,
            "bytes": log.length_bytes,
            "ledgers": len(log.listed_ids),
            "tail": list(log.tail),
            "is_sealed": log.is_sealed,
            "generation": log.generation,
            **_sizes(log),
            "digest_type": log.digest.digest_type,
            "columns": columns_of(log.schema),
            "created": timestamp(log.created_ms),
            "changed": timestamp(log.changed_ms),
        }
        for log in _logs(cluster, log_name)
    ]


def ledgers(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per ledger, tombstones included."""
    places = _places(cluster)
    return [
        {
            "ledger_id": ledger.ledger_id,
            "log": log_of(ledger),
            "place": places.get(ledger.ledger_id),
            "state": ledger.state.value,
            "entries": None if ledger.last_entry_id is None else ledger.last_entry_id + 1,
            "bytes": ledger.length_bytes,
            "term": ledger.term,
            "fragments": len(ledger.fragments),
            **_sizes(ledger),
            "digest_type": ledger.digest.digest_type,
            "created": timestamp(ledger.created_ms),
        }
        for ledger in _ledgers(cluster, log_name)
    ]


def fragments(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per fragment: a range of entries and the bookies that hold them."""
    return [
        row
        for ledger in _ledgers(cluster, log_name)
        if ledger.state is not LedgerState.DELETING
        for row in fragments_of(ledger)
    ]


def fragments_of(ledger: LedgerMetadata) -> list[Row]:
    """The rows of ``fragments`` for one ledger."""
    firsts = [fragment.first_entry_id for fragment in ledger.fragments]
    lasts = [*(first - 1 for first in firsts[1:]), ledger.last_entry_id]
    return [
        {
            "ledger_id": ledger.ledger_id,
            "log": log_of(ledger),
            "first_entry_id": fragment.first_entry_id,
            "last_entry_id": last,
            "term": fragment.term,
            "ensemble": [member.bookie_id for member in fragment.ensemble],
        }
        for fragment, last in zip(ledger.fragments, lasts)
    ]


def bookies(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per registered bookie, each looked at now; with a log those that serve it."""
    serving = None if log_name is None else _serving(cluster, log_name)
    return [
        {
            "bookie_id": status.record.bookie_id,
            "url": without_credentials(status.record.url),
            "domain": status.record.domain,
            "is_usable": not status.problem,
            "is_read_only": status.record.is_read_only,
            "free_bytes": None if status.problem else status.free_bytes,
            "incarnation": status.record.incarnation,
            "problem": status.problem or None,
        }
        for status in cluster.probe()
        if serving is None or status.record.bookie_id in serving
    ]


def history(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per ledger on a log's list, in order; an open one has no entries and bytes yet."""
    rows = []
    for log in _logs(cluster, log_name):
        places = {ledger.ledger_id: ledger for ledger in log.ledgers}
        for number, ledger_id in enumerate(log.listed_ids):
            place = places.get(ledger_id)
            seen = cluster.ledgers.get(str(ledger_id))
            rows.append(
                {
                    "log": log.name,
                    "generation": log.generation,
                    "version": number,
                    "timestamp": None if seen is None else timestamp(seen.value.created_ms),
                    "operation": "append",
                    "ledger_id": ledger_id,
                    "first_offset": place and place.first_offset,
                    "entries": place and place.entry_count,
                    "bytes": place and place.length_bytes,
                    "transactions": _transactions(None if seen is None else seen.value),
                }
            )
    return rows


def _transactions(ledger: LedgerMetadata | None) -> list[Row]:
    done = {} if ledger is None else ledger.transactions
    return [{"app_id": app_id, "version": version} for app_id, version in sorted(done.items())]


def underreplicated(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per missing copy, of all ledgers but those dropped from their log or deleted."""
    places = _places(cluster)
    looked_at = {
        ledger.ledger_id: ledger
        for ledger in _ledgers(cluster, log_name)
        if ledger.state is not LedgerState.DELETING and places.get(ledger.ledger_id) != DROPPED
    }
    return [
        {
            "ledger_id": found.ledger_id,
            "log": log_of(looked_at[found.ledger_id]),
            "first_entry_id": found.first_entry_id,
            "bookie_id": found.bookie_id,
            "missing": found.missing,
            "reason": found.reason,
        }
        for found in missing_replicas(cluster, looked_at.values())
    ]


def recoveries(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per ledger that is IN_RECOVERY, and why it cannot be closed."""
    return [
        {
            "ledger_id": found.ledger.ledger_id,
            "log": log_of(found.ledger),
            "term": found.ledger.term,
            "entry_id": found.stuck and found.stuck.entry_id,
            "waiting_for": list(found.stuck.waiting_for) if found.stuck else [],
            "reason": found.stuck and found.stuck.reason,
            "hint": found.stuck and found.stuck.hint,
            "told": found.stuck and timestamp(found.stuck.told_ms),
        }
        for found in unfinished_recoveries(cluster, _ledgers(cluster, log_name))
    ]


def log_of(ledger: LedgerMetadata) -> str | None:
    """The log that ``ledger`` is in or was made for."""
    return ledger.custom_metadata.get(LOG_KEY)


def columns_of(schema: bytes) -> list[str]:
    """``name: type`` of every column of a stored schema."""
    if not schema:
        return []
    return [f"{field.name}: {field.type}" for field in arrow_schema.decode(schema)]


def sizes_of(row: Mapping[str, Any]) -> str:
    """The quorum sizes in a row of ``logs`` or ``ledgers``, as ``E/Qw/Qa``."""
    return f"{row['ensemble_size']}/{row['write_quorum_size']}/{row['ack_quorum_size']}"


def timestamp(milliseconds: int) -> datetime | None:
    """None if the time was not recorded."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None


def _logs(cluster: Cluster, log_name: str | None) -> Iterator[LogRecord]:
    if log_name is not None:
        yield cluster.log(log_name).value
        return
    for name in cluster.log_names():
        seen = cluster.logs.get(name)
        if seen is not None and not seen.value.is_vacant:
            yield seen.value


def _ledgers(cluster: Cluster, log_name: str | None) -> Iterator[LedgerMetadata]:
    if log_name is not None:
        cluster.log(log_name)
    for ledger_id in cluster.ledger_ids():
        seen = cluster.ledgers.get(str(ledger_id))
        if seen is not None and log_name in (None, log_of(seen.value)):
            yield seen.value


def _places(cluster: Cluster) -> dict[int, str]:
    """Ledgers that are on the list of their log, or dropped from it."""
    places: dict[int, str] = {}
    for name in cluster.log_names():
        seen = cluster.logs.get(name)
        if seen is not None:
            places |= dict.fromkeys(seen.value.listed_ids, LISTED)
            places |= dict.fromkeys(seen.value.dropped, DROPPED)
    return places


def _serving(cluster: Cluster, log_name: str) -> set[str]:
    return {
        member.bookie_id
        for ledger in _ledgers(cluster, log_name)
        for fragment in ledger.fragments
        for member in fragment.ensemble
    }


def _sizes(record: LogRecord | LedgerMetadata) -> Row:
    return {
        "ensemble_size": record.quorum.ensemble_size,
        "write_quorum_size": record.quorum.write_quorum_size,
        "ack_quorum_size": record.quorum.ack_quorum_size,
    }


_TIME = pa.timestamp("us", tz="UTC")
_QUORUM = [
    ("ensemble_size", pa.int32()),
    ("write_quorum_size", pa.int32()),
    ("ack_quorum_size", pa.int32()),
]

VIEWS: dict[str, View] = {
    "logs": View(
        pa.schema(
            [
                ("log", pa.string()),
                ("entries", pa.int64()),
                ("first_offset", pa.int64()),
                ("end_offset", pa.int64()),
                ("bytes", pa.int64()),
                ("ledgers", pa.int32()),
                ("tail", pa.list_(pa.int64())),
                ("is_sealed", pa.bool_()),
                ("generation", pa.int32()),
                *_QUORUM,
                ("digest_type", pa.string()),
                ("columns", pa.list_(pa.string())),
                ("created", _TIME),
                ("changed", _TIME),
            ]
        ),
        logs,
    ),
    "ledgers": View(
        pa.schema(
            [
                ("ledger_id", pa.int64()),
                ("log", pa.string()),
                ("place", pa.string()),
                ("state", pa.string()),
                ("entries", pa.int64()),
                ("bytes", pa.int64()),
                ("term", pa.int64()),
                ("fragments", pa.int32()),
                *_QUORUM,
                ("digest_type", pa.string()),
                ("created", _TIME),
            ]
        ),
        ledgers,
    ),
    "fragments": View(
        pa.schema(
            [
                ("ledger_id", pa.int64()),
                ("log", pa.string()),
                ("first_entry_id", pa.int64()),
                ("last_entry_id", pa.int64()),
                ("term", pa.int64()),
                ("ensemble", pa.list_(pa.string())),
            ]
        ),
        fragments,
    ),
    "bookies": View(
        pa.schema(
            [
                ("bookie_id", pa.string()),
                ("url", pa.string()),
                ("domain", pa.string()),
                ("is_usable", pa.bool_()),
                ("is_read_only", pa.bool_()),
                ("free_bytes", pa.int64()),
                ("incarnation", pa.string()),
                ("problem", pa.string()),
            ]
        ),
        bookies,
    ),
    "history": View(
        pa.schema(
            [
                ("log", pa.string()),
                ("generation", pa.int32()),
                ("version", pa.int64()),
                ("timestamp", _TIME),
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
        ),
        history,
    ),
    "underreplicated": View(
        pa.schema(
            [
                ("ledger_id", pa.int64()),
                ("log", pa.string()),
                ("first_entry_id", pa.int64()),
                ("bookie_id", pa.string()),
                ("missing", pa.string()),
                ("reason", pa.string()),
            ]
        ),
        underreplicated,
    ),
    "recoveries": View(STUCK_SCHEMA, recoveries),
}
