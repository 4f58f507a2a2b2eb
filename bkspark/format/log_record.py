"""``LogRecord`` <-> bytes of a metadata record."""

from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import envelope, layout
from bkspark.format.digest import encode_spec
from bkspark.format.ledger_metadata import (
    decode_bytes,
    decode_quorum,
    decode_spec,
    encode_bytes,
    encode_quorum,
)
from bkspark.protocol.log import LoggedLedger, LogRecord

KIND = "log"


def encode(record: LogRecord, nonce: str) -> bytes:
    """The record's bytes, to be stored under ``layout.log_key``."""
    value: dict[str, Any] = {
        "nonce": nonce,
        "name": record.name,
        "quorum": encode_quorum(record.quorum),
        "digest": encode_spec(record.digest),
        "schema": encode_bytes(record.schema),
        "vacant": record.is_vacant,
        "generation": record.generation,
        "ledgers": [
            [x.ledger_id, x.first_offset, x.entry_count, x.length_bytes] for x in record.ledgers
        ],
        "first_offset": record.first_offset,
        "transactions": dict(record.transactions),
        "dropped": list(record.dropped),
        "created_ms": record.created_ms,
        "changed_ms": record.changed_ms,
    }
    return envelope.encode(KIND, layout.log_key(record.name), value)


def decode(name: str, data: bytes) -> LogRecord:
    """The log in ``data``.

    Raises:
        CorruptDataError: damaged, of another log, or not possible for a log.
    """
    fields = envelope.decode(KIND, layout.log_key(name), data)
    try:
        record = LogRecord(
            name=layout.log_name(fields.take("name", str)),
            quorum=decode_quorum(fields),
            digest=decode_spec(fields),
            schema=decode_bytes(fields, "schema"),
            is_vacant=fields.take("vacant", bool),
            generation=fields.take("generation", int),
            ledgers=tuple(_ledger(item) for item in fields.take("ledgers", list)),
            first_offset=fields.take("first_offset", int),
            transactions=fields.mapping("transactions", int),
            dropped=tuple(_integers(fields.take("dropped", list))),
            created_ms=fields.take("created_ms", int),
            changed_ms=fields.take("changed_ms", int),
        )
    except (TypeError, ValueError) as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error
    if record.name != name:
        raise CorruptDataError(f"{fields.what} names another log")
    return record


def _ledger(item: list[Any]) -> LoggedLedger:
    return LoggedLedger(*_integers(item))


def _integers(items: list[Any]) -> list[int]:
    if any(type(item) is not int or item < 0 for item in items):
        raise ValueError("not a list of ids")
    return items
