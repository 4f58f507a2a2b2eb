"""Views of ledgers: their places, missing copies, and stuck recoveries."""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from bkspark.admin.auditing.audit_command import gaps_of
from bkspark.admin.auditing.copies import EVERYTHING, Copies
from bkspark.admin.auditing.findings import Short, gap_row
from bkspark.admin.stuck_recoveries import UnfinishedRecovery, unfinished_recoveries
from bkspark.admin.views.sharing import (
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
from bkspark.protocol.ledger import sizes
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
        ("fragment", pa.int64()),
        ("first_entry_id", pa.int64()),
        ("last_entry_id", pa.int64()),
        ("bookie_id", pa.string()),
        ("copies", pa.string()),
        ("is_unknown", pa.bool_()),
        ("missing", pa.string()),
        ("reason", pa.string()),
    ]
)


UNREADABLE = "UNREADABLE"
"""Shown in place of the state of a ledger with an unreadable record."""


def ledgers(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per ledger, including tombstones; without a log also unreadable ledgers."""
    rows = ledger_rows(cluster, all_ledgers(cluster, log_name))
    if log_name is None and cluster.unreadable:
        rows += _unreadable_rows(cluster, places_of_ledgers(cluster))
    return sorted(rows, key=lambda row: int(row["ledger_id"]))


def ledger_rows(cluster: Cluster, found: Iterable[LedgerMetadata]) -> list[Row]:
    """The rows of ``ledgers`` for readable records."""
    places = places_of_ledgers(cluster)
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
            **quorum_of(ledger),
            "digest_type": ledger.settings.digest.digest_type,
            "created": timestamp(ledger.settings.created_ms),
        }
        for ledger in found
    ]


def _unreadable_rows(cluster: Cluster, places: Mapping[int, str]) -> Iterator[Row]:
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
    """One row per missing or possibly missing copy, as an audit finds them.

    A ledger created with too few copies gets a further row without a bookie.
    """
    ledgers = {ledger.ledger_id: ledger for ledger in all_ledgers(cluster, log_name)}
    found = [gap_row(gap) for gap in gaps_of(cluster, sorted(ledgers))]
    found += [_row_of_short(ledger) for ledger in ledgers.values() if sizes.is_short(ledger)]
    return [{"log": log_of(ledgers[row["ledger_id"]]), **row} for row in found]


def _row_of_short(ledger: LedgerMetadata) -> Row:
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
