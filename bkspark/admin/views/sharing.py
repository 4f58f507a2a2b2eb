"""Shared parts of all views: reading logs and ledgers, and formatting facts."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from bkspark.cluster.cluster import Cluster
from bkspark.format import arrow_schema
from bkspark.ledger.creating import log_of
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.log.record import LogRecord

Row = dict[str, Any]

LISTED = "listed"
DROPPED = "dropped"

TIME = pa.timestamp("us", tz="UTC")
CALENDAR_END_MS = 253_402_300_799_000
"""The last second of the year 9999."""

QUORUM_FIELDS = (
    ("ensemble_size", pa.int32()),
    ("write_quorum_size", pa.int32()),
    ("ack_quorum_size", pa.int32()),
    ("guarantees_write_quorum", pa.bool_()),
)


@dataclass(frozen=True, slots=True)
class View:
    """A table of metadata.

    Attributes:
        rows: (cluster, name of a log or None for all) -> rows that fit ``schema``.
    """

    schema: pa.Schema
    rows: Callable[[Cluster, str | None], list[Row]]


def columns_of(schema: bytes) -> list[str]:
    """``name: type`` of every column of a stored schema."""
    if not schema:
        return []
    return [f"{field.name}: {field.type}" for field in arrow_schema.decode(schema)]


def sizes_of(row: Mapping[str, Any]) -> str:
    """The quorum sizes in a row of ``logs`` or ``ledgers``, as ``E/Qw/Qa``; empty if unknown."""
    if row["ensemble_size"] is None:
        return ""
    return f"{row['ensemble_size']}/{row['write_quorum_size']}/{row['ack_quorum_size']}"


def timestamp(milliseconds: int) -> datetime | None:
    """Return the time; None if not recorded, or outside of the calendar."""
    is_known = 0 < milliseconds <= CALENDAR_END_MS
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if is_known else None


def quorum_of(record: LogRecord | LedgerMetadata) -> Row:
    """The columns of ``QUORUM_FIELDS``."""
    return {
        "ensemble_size": record.quorum.ensemble_size,
        "write_quorum_size": record.quorum.write_quorum_size,
        "ack_quorum_size": record.quorum.ack_quorum_size,
        "guarantees_write_quorum": record.settings.guarantees_write_quorum,
    }


def all_logs(cluster: Cluster, log_name: str | None) -> Iterator[LogRecord]:
    """Yield the named log, or all logs not deleted.

    Raises:
        NoSuchLedgerError: there is no log ``log_name``.
    """
    if log_name is not None:
        yield cluster.log(log_name).value
        return
    for name in cluster.log_names():
        seen = cluster.logs.get(name)
        if seen is not None and not seen.value.is_tombstone:
            yield seen.value


def all_ledgers(cluster: Cluster, log_name: str | None) -> Iterator[LedgerMetadata]:
    """Yield a log's ledgers, or all ledgers, with tombstones; raise the errors of ``all_logs``."""
    if log_name is not None:
        cluster.log(log_name)
    for ledger_id in cluster.ledger_ids():
        seen = cluster.ledgers.get(str(ledger_id))
        if seen is not None and log_name in (None, log_of(seen.value)):
            yield seen.value


def places_of_ledgers(cluster: Cluster) -> dict[int, str]:
    """Return ``LISTED`` or ``DROPPED`` by ledger id, for ledgers known to their logs."""
    places: dict[int, str] = {}
    for name in cluster.log_names():
        seen = cluster.logs.get(name)
        if seen is not None:
            places |= dict.fromkeys(seen.value.listed_ids, LISTED)
            places |= dict.fromkeys(seen.value.every_dropped_id(), DROPPED)
    return places
