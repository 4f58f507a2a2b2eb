"""Encodes ``LogRecord`` as bytes of a metadata record.

The version keeps older software from misreading a record:

- 2: the record has pages; without pages the log would seem shorter.
- 3: with places of compactions; each stands for several versions of the log.
- 4: the ledgers guarantee their write quorum.
- 5: the log is unbounded; older software would add ledgers after its only ledger.
- 6: the log begins inside its tail, and older software would compute other offsets; or the log is
  strict, and older software would make smaller ledgers, or none.
"""

from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import envelope, layout, log_page, transactions
from bkspark.format.digest import encode_spec
from bkspark.format.ledger_metadata import (
    decode_bytes,
    decode_quorum,
    decode_spec,
    encode_bytes,
    encode_quorum,
)
from bkspark.format.strict_json import Fields, integers
from bkspark.protocol.log.contents import Committed, Retention, Times
from bkspark.protocol.log.dropped import DroppedLedgers
from bkspark.protocol.log.ledger_list import LedgerList, LogPage
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.settings import LogSettings
from bkspark.protocol.log.stream_run import Streams

KIND = "log"
VERSION = 6
_WITH_PAGES, _MERGED, _GUARANTEED, _UNBOUNDED = 2, 3, 4, 5


def encode(record: LogRecord, nonce: str) -> bytes:
    """Return the record's bytes, to be stored under ``layout.log_key``."""
    value: dict[str, Any] = {
        "nonce": nonce,
        "name": record.name,
        "quorum": encode_quorum(record.quorum),
        "digest": encode_spec(record.digest),
        "schema": encode_bytes(record.schema),
        "vacant": record.is_tombstone,
        "generation": record.generation,
        "ledgers": [log_page.encode_place(ledger) for ledger in record.ledgers],
        "first_offset": record.first_offset,
        **transactions.fields_of(record.transactions),
        "dropped": list(record.dropped.ids),
        "created_ms": record.times.created_ms,
        "changed_ms": record.times.changed_ms,
    }
    value.update(_optional(record))
    return envelope.encode(KIND, layout.log_key(record.name), value, _version(record))


def _version(record: LogRecord) -> int:
    """Return the first version that knows all facts of the record."""
    if record.settings.is_strict:
        return VERSION
    if record.dropped.of_tail:
        return VERSION
    if record.is_unbounded:
        return _UNBOUNDED
    if record.settings.guarantees_write_quorum:
        return _GUARANTEED
    stretches = (*record.stretches, *record.dropped.all_pages)
    if log_page.is_merged(stretches):
        return _MERGED
    return _WITH_PAGES if record.has_pages else envelope.VERSION


def decode(name: str, data: bytes) -> LogRecord:
    """Decode the log in ``data``.

    Raises:
        CorruptDataError: damaged, of another log, or impossible for a log.
    """
    fields = envelope.decode(KIND, layout.log_key(name), data, VERSION)
    try:
        record = LogRecord(
            name=layout.log_name(fields.take("name", str)),
            settings=_decode_settings(fields),
            schema=decode_bytes(fields, "schema"),
            is_tombstone=fields.take("vacant", bool),
            generation=fields.take("generation", int),
            listed=_decode_listed(fields),
            first_offset=fields.take("first_offset", int),
            committed=_decode_committed(fields),
            dropped=_decode_dropped(fields),
            is_sealed=fields.take_or_none("sealed", bool) or False,
            times=_decode_times(fields),
            retention=Retention(
                fields.take_or_none("retention_bytes", int),
                fields.take_or_none("retention_ms", int),
            ),
        )
    except (TypeError, ValueError) as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error
    if record.name != name:
        raise CorruptDataError(f"{fields.what} names another log")
    return record


def _decode_settings(fields: Fields) -> LogSettings:
    return LogSettings(
        decode_quorum(fields),
        decode_spec(fields),
        guarantees_write_quorum=bool(fields.take_or_none("guarantees_write_quorum", bool)),
        is_unbounded=bool(fields.take_or_none("unbounded", bool)),
        is_strict=bool(fields.take_or_none("strict", bool)),
    )


def _decode_listed(fields: Fields) -> LedgerList:
    return LedgerList(
        tuple(log_page.stretch(item) for item in fields.take_or_none("older", list) or []),
        tuple(log_page.place(item) for item in fields.take("ledgers", list)),
        tuple(integers(fields.take_or_none("tail", list) or [])),
        fields.take_or_none("first_version", int) or 0,
    )


def _decode_committed(fields: Fields) -> Committed:
    return Committed(
        transactions.decode(fields),
        _decode_streams(fields),
        tuple(_texts(fields.take_or_none("bereft", list) or [])),
        fields.take_or_none("strays_below", int) or 0,
    )


def _decode_times(fields: Fields) -> Times:
    return Times(
        fields.take("created_ms", int),
        fields.take("changed_ms", int),
        fields.take_or_none("truncated_ms", int),
    )


def _decode_dropped(fields: Fields) -> DroppedLedgers:
    return DroppedLedgers(
        tuple(integers(fields.take("dropped", list))),
        tuple(integers(fields.take_or_none("to_delete", list) or [])),
        _pages(fields, "dropped_pages"),
        _pages(fields, "pages_to_delete"),
        fields.take_or_none("dropped_of_tail", int) or 0,
    )


def _optional(record: LogRecord) -> dict[str, Any]:
    """Return fields added later. Empty ones are left out, so that old records stay as they are."""
    dropped, committed = record.dropped, record.committed
    fields = {
        "tail": list(record.tail) or None,
        "sealed": record.is_sealed or None,
        "streams": {query: list(runs) for query, runs in committed.streams.items()} or None,
        "streams_order": _order(committed.streams),
        "retention_bytes": record.retention.byte_count,
        "retention_ms": record.retention.milliseconds,
        "to_delete": list(dropped.to_delete) or None,
        "dropped_of_tail": dropped.of_tail or None,
        "bereft": list(committed.orphaned_queries) or None,
        "strays_below": committed.strays_below or None,
        "first_version": record.listed.first_version or None,
        "truncated_ms": record.times.truncated_ms,
        "older": [log_page.encode_stretch(one) for one in record.older] or None,
        "dropped_pages": [log_page.encode_page(one) for one in dropped.pages] or None,
        "pages_to_delete": [log_page.encode_page(one) for one in dropped.pages_to_delete] or None,
        "guarantees_write_quorum": record.settings.guarantees_write_quorum or None,
        "unbounded": record.is_unbounded or None,
        "strict": record.settings.is_strict or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _order(streams: Streams) -> list[str] | None:
    """Return the order of the queries, unless sorting gives it: JSON objects have no order."""
    order = list(streams)
    return None if order == sorted(order) else order


def _decode_streams(fields: Fields) -> dict[str, tuple[str, ...]]:
    if fields.take_or_none("streams", dict) is None:
        return {}
    found = fields.mapping("streams", list)
    if any(type(run) is not str for runs in found.values() for run in runs):
        raise ValueError("not a list of runs")
    order = fields.take_or_none("streams_order", list) or sorted(found)
    if any(type(query) is not str for query in order) or sorted(order) != sorted(found):
        raise ValueError("the order of the queries is not one of them")
    return {query: tuple(found[query]) for query in order}


def _pages(fields: Fields, name: str) -> tuple[LogPage, ...]:
    return tuple(log_page.page(item) for item in fields.take_or_none(name, list) or [])


def _texts(items: list[Any]) -> list[str]:
    if any(type(item) is not str for item in items):
        raise ValueError("not a list of names")
    return items
