"""Views of ledgers: where they are, what is missing of them, and which recoveries are stuck."""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from bkspark.admin.replication_check import missing_replicas
from bkspark.admin.stuck_recoveries import UnfinishedRecovery, unfinished_recoveries
from bkspark.admin.views.sharing import (
    DROPPED,
    QUORUM_FIELDS,
    TIME,
    Row,
    all_ledgers,
    places_of_ledgers,
    quorum_of,
    timestamp,
)
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout
from bkspark.ledger.creating import log_of
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState

LEDGERS = pa.schema(
    [
        ("ledger_id", pa.int64()),
        ("log", pa.string()),
        ("place", pa.string()),
        ("state", pa.string()),
        ("entries", pa.int64()),
        ("bytes", pa.int64()),
        ("term", pa.int64()),
        ("fragments", pa.int32()),
        *QUORUM_FIELDS,
        ("digest_type", pa.string()),
        ("created", TIME),
    ]
)

FRAGMENTS = pa.schema(
    [
        ("ledger_id", pa.int64()),
        ("log", pa.string()),
        ("first_entry_id", pa.int64()),
        ("last_entry_id", pa.int64()),
        ("term", pa.int64()),
        ("ensemble", pa.list_(pa.string())),
    ]
)

UNDERREPLICATED = pa.schema(
    [
        ("ledger_id", pa.int64()),
        ("log", pa.string()),
        ("first_entry_id", pa.int64()),
        ("bookie_id", pa.string()),
        ("missing", pa.string()),
        ("reason", pa.string()),
    ]
)


UNREADABLE = "UNREADABLE"
"""In place of the state of a ledger whose record cannot be read."""


def ledgers(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per ledger, tombstones included; without a log also those that cannot be read."""
    places = places_of_ledgers(cluster)
    rows: list[Row] = [
        {
            "ledger_id": ledger.ledger_id,
            "log": log_of(ledger),
            "place": places.get(ledger.ledger_id),
            "state": ledger.state.value,
            "entries": None if ledger.last_entry_id is None else ledger.last_entry_id + 1,
            "bytes": ledger.length_bytes,
            "term": ledger.term,
            "fragments": len(ledger.fragments),
            **quorum_of(ledger),
            "digest_type": ledger.digest.digest_type,
            "created": timestamp(ledger.created_ms),
        }
        for ledger in all_ledgers(cluster, log_name)
    ]
    if log_name is None:
        rows += _unreadable_rows(cluster, places)
    return sorted(rows, key=lambda row: int(row["ledger_id"]))


def _unreadable_rows(cluster: Cluster, places: Mapping[int, str]) -> Iterator[Row]:
    nothing: Row = dict.fromkeys(LEDGERS.names)
    for ledger_id in cluster.ledger_ids():
        if layout.ledger_key(ledger_id) in cluster.unreadable:
            place = places.get(ledger_id)
            yield {**nothing, "ledger_id": ledger_id, "place": place, "state": UNREADABLE}


def fragments(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per fragment: a range of entries and the bookies that hold them."""
    return [
        row
        for ledger in all_ledgers(cluster, log_name)
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


def underreplicated(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per missing copy, of all ledgers but those dropped from their log or deleted."""
    places = places_of_ledgers(cluster)
    looked_at = {
        ledger.ledger_id: ledger
        for ledger in all_ledgers(cluster, log_name)
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
    ledgers = all_ledgers(cluster, log_name)
    return [_recovery(found) for found in unfinished_recoveries(cluster, ledgers)]


def recovery_of(cluster: Cluster, ledger: LedgerMetadata) -> Row | None:
    """The row of ``recoveries`` for one ledger; None if it is not IN_RECOVERY."""
    rows = [_recovery(found) for found in unfinished_recoveries(cluster, [ledger])]
    return rows[0] if rows else None


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
