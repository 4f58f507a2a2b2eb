"""Encodes ``LogRecord`` as bytes of a metadata record."""

from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import layout, log_page, strict_json, tier_record, transactions
from bkspark.format.digest import encode_spec
from bkspark.format.ledger_metadata import (
    MIN_DISTINCT,
    decode_bytes,
    decode_distinct,
    decode_quorum,
    decode_spec,
    encode_bytes,
    encode_quorum,
)
from bkspark.format.strict_json import Fields, integers
from bkspark.protocol.log.contents import (
    Committed,
    DroppedLedgers,
    LedgerList,
    LogSettings,
    Retention,
    Times,
)
from bkspark.protocol.log.ledger_list import NO_PAGES, LogPage, PageSource
from bkspark.protocol.log.record import LogRecord

KIND = "log"


def encode(record: LogRecord, nonce: str) -> bytes:
    """Return the record's bytes, to be stored under ``layout.log_key``."""
    settings, dropped, committed = record.settings, record.dropped, record.committed
    value: dict[str, Any] = {
        "nonce": nonce,
        "name": record.name,
        "quorum": encode_quorum(record.quorum),
        "digest": encode_spec(record.digest),
        "schema": encode_bytes(record.schema),
        "guarantees_write_quorum": settings.guarantees_write_quorum,
        "unbounded": settings.is_unbounded,
        "strict": settings.is_strict,
        MIN_DISTINCT: dict(settings.min_distinct),
        "vacant": record.is_tombstone,
        "generation": record.generation,
        "sealed": record.is_sealed,
        "older": [log_page.encode_stretch(one) for one in record.older],
        "ledgers": [log_page.encode_place(ledger) for ledger in record.ledgers],
        "tail": list(record.tail),
        "first_version": record.listed.first_version,
        "first_offset": record.first_offset,
        "transactions": transactions.encode(committed.transactions),
        "streams": [[query, list(runs)] for query, runs in committed.streams.items()],
        "bereft": list(committed.orphaned_queries),
        "strays_below": committed.strays_below,
        "dropped": list(dropped.ids),
        "to_delete": list(dropped.to_delete),
        "dropped_pages": [log_page.encode_page(one) for one in dropped.pages],
        "pages_to_delete": [log_page.encode_page(one) for one in dropped.pages_to_delete],
        "dropped_of_tail": dropped.of_tail,
        "created_ms": record.times.created_ms,
        "changed_ms": record.times.changed_ms,
        "truncated_ms": record.times.truncated_ms,
        "retention_bytes": record.retention.byte_count,
        "retention_ms": record.retention.milliseconds,
        "tier": tier_record.encode(record.tier),
    }
    return strict_json.encode(KIND, layout.log_key(record.name), value)


def decode(name: str, data: bytes, source: PageSource = NO_PAGES) -> LogRecord:
    """Decode the log in ``data``, whose pages are fetched from ``source``.

    Raises:
        CorruptDataError: damaged, of another log, or impossible for a log.
    """
    fields = strict_json.decode(KIND, layout.log_key(name), data)
    try:
        record = LogRecord(
            name=layout.log_name(fields.take("name", str)),
            settings=_decode_settings(fields),
            schema=decode_bytes(fields, "schema"),
            is_tombstone=fields.take("vacant", bool),
            generation=fields.take("generation", int),
            listed=_decode_listed(fields, source),
            first_offset=fields.take("first_offset", int),
            committed=_decode_committed(fields),
            dropped=_decode_dropped(fields),
            is_sealed=fields.take("sealed", bool),
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
        guarantees_write_quorum=fields.take("guarantees_write_quorum", bool),
        is_unbounded=fields.take("unbounded", bool),
        is_strict=fields.take("strict", bool),
        min_distinct=decode_distinct(fields),
    )


def _decode_listed(fields: Fields, source: PageSource) -> LedgerList:
    return LedgerList(
        tuple(log_page.stretch(item) for item in fields.take("older", list)),
        tuple(log_page.place(item) for item in fields.take("ledgers", list)),
        tuple(integers(fields.take("tail", list))),
        fields.take("first_version", int),
        tier_record.decode(fields),
        source,
    )


def _decode_committed(fields: Fields) -> Committed:
    return Committed(
        transactions.decode(fields),
        _decode_streams(fields),
        tuple(_texts(fields.take("bereft", list))),
        fields.take("strays_below", int),
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
        tuple(integers(fields.take("to_delete", list))),
        _pages(fields, "dropped_pages"),
        _pages(fields, "pages_to_delete"),
        fields.take("dropped_of_tail", int),
    )


def _decode_streams(fields: Fields) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for query, runs in fields.take("streams", list):
        if type(query) is not str or type(runs) is not list or query in found:
            raise ValueError("not a list of queries")
        found[query] = tuple(_texts(runs))
    return found


def _pages(fields: Fields, name: str) -> tuple[LogPage, ...]:
    return tuple(log_page.page(item) for item in fields.take(name, list))


def _texts(items: list[Any]) -> list[str]:
    if any(type(item) is not str for item in items):
        raise ValueError("not a list of names")
    return items
