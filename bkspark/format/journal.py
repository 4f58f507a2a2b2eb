"""Journal: the add records of one writer in one term on one bookie, one behind the other.

A record is a frame::

    prefix   "BKAR", format version, ensemble index, header and parts lengths, CRC32C of the prefix
    header   canonical JSON, the same on every bookie
    digest   of the header, in hex
    parts    reserved for rows stored inline; empty while rows lie in entry logs

Three things are told apart when a journal is read: complete and right, *incomplete* (the last
record is cut or fails its digest with nothing behind it: the trace of a killed writer or a power
cut), and corrupt. Neither of the last two ever counts as an absence.
"""

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bkspark.errors import BookKeeperError, CorruptDataError
from bkspark.format import layout, strict_json
from bkspark.format.digest import Digester, canonical_json, crc32c
from bkspark.format.strict_json import Fields
from bkspark.protocol.quorum import Quorum
from bkspark.protocol.record import (
    AddRecord,
    AttemptLogs,
    EntryLog,
    Transaction,
    stripe_row_count,
)

HEADER_BYTES_MAX = 256 * 2**20

_MAGIC = b"BKAR"
_VERSION = 1
_PREFIX = struct.Struct("<4sBBHIQI")
_DIGEST_HEX = {"CRC32C": 8, "MAC": 64}


class Tail(Enum):
    """How a journal ends."""

    CLEAN = "after its last record"
    INCOMPLETE = "in a record that is cut or torn, with nothing behind it"
    CORRUPT = "in bytes that are wrong, with something behind them"


@dataclass(frozen=True, slots=True)
class JournalContent:
    """The good records from the start of a journal, and how it ends after them."""

    records: tuple[AddRecord, ...]
    tail: Tail
    end: int


def encode_record(record: AddRecord, digester: Digester, *, ensemble_index: int) -> bytes:
    """The frame of ``record`` for the bookie at ``ensemble_index``."""
    header = canonical_json(_to_json(record))
    digest = digester.digest(_context(record.ledger_id), header).encode()
    prefix = _PREFIX.pack(_MAGIC, _VERSION, 0, ensemble_index, len(header), 0, 0)
    checked = prefix[:-4] + struct.pack("<I", crc32c(prefix[:-4], 0))
    return checked + header + digest


def decode_journal(data: bytes, digester: Digester, *, ledger_id: int) -> JournalContent:
    """Everything that can be known from the bytes of a journal. Never raises for bad bytes."""
    records: list[AddRecord] = []
    position = 0
    while position < len(data):
        try:
            record, position = _decode_frame(data, position, digester, ledger_id)
        except _CutError:
            return JournalContent(tuple(records), Tail.INCOMPLETE, position)
        except BookKeeperError:
            return JournalContent(tuple(records), Tail.CORRUPT, position)
        records.append(record)
    return JournalContent(tuple(records), Tail.CLEAN, position)


class _CutError(Exception):
    """The frame goes on past the end of the data, or is wrong and the last."""


def _decode_frame(
    data: bytes, position: int, digester: Digester, ledger_id: int
) -> tuple[AddRecord, int]:
    rest = len(data) - position
    if rest < _PREFIX.size or (not data[position] and not any(data[position:])):
        raise _CutError  # cut, or blocks that were allocated and never written
    magic, version, _, _, header_length, parts_length, prefix_crc = _PREFIX.unpack_from(
        data, position
    )
    body = position + _PREFIX.size
    if magic != _MAGIC or crc32c(data[position : body - 4], 0) != prefix_crc:
        raise CorruptDataError(f"journal of ledger {ledger_id}: no record at byte {position}")
    if version != _VERSION or header_length > HEADER_BYTES_MAX or parts_length:
        raise CorruptDataError(
            f"journal of ledger {ledger_id}: record format {version} is not known here",
            hint="read it with a newer bkspark",
        )
    digest_at = body + header_length
    end = digest_at + _DIGEST_HEX[digester.spec.digest_type]
    if end > len(data):
        raise _CutError
    header = data[body:digest_at]
    expected = data[digest_at:end].decode("ascii", "replace")
    if not digester.matches(expected, _context(ledger_id), header):
        if end == len(data):
            raise _CutError
        raise CorruptDataError(f"journal of ledger {ledger_id}: digest mismatch at {position}")
    return _from_json(strict_json.loads(header, f"journal of ledger {ledger_id}"), ledger_id), end


def _context(ledger_id: int) -> str:
    return f"add record 1 {ledger_id}"


def _to_json(record: AddRecord) -> dict[str, Any]:
    transaction = record.transaction
    quorum = record.quorum
    return {
        "ledger": record.ledger_id,
        "term": record.term,
        "token": record.token,
        "first": record.first_entry_id,
        "last": record.last_entry_id,
        "lac": record.last_add_confirmed,
        "length": record.length_bytes,
        "quorum": [quorum.ensemble_size, quorum.write_quorum_size, quorum.ack_quorum_size],
        "fragment": record.fragment_first_entry_id,
        "transaction": [transaction.app_id, transaction.version] if transaction else None,
        "attempts": [
            {
                "first": attempt.first_entry_id,
                "rows": attempt.row_count,
                "logs": [
                    [log.attempt_id, log.stripe, log.length_bytes, log.index_offset, log.digest]
                    for log in attempt.entry_logs
                ],
            }
            for attempt in record.attempts
        ],
    }


def _from_json(fields: Fields, ledger_id: int) -> AddRecord:
    try:
        sizes = fields.take("quorum", list)
        if any(type(size) is not int for size in sizes):
            raise ValueError("malformed quorum")
        quorum = Quorum(*sizes)
        record = AddRecord(
            ledger_id=fields.take("ledger", int),
            term=fields.take("term", int),
            token=layout.token(fields.take("token", str)),
            first_entry_id=fields.take("first", int),
            last_entry_id=fields.take("last", int),
            last_add_confirmed=fields.take("lac", int),
            length_bytes=fields.take("length", int),
            quorum=quorum,
            fragment_first_entry_id=fields.take("fragment", int),
            transaction=_transaction(fields),
            attempts=tuple(_attempt(item, quorum) for item in fields.objects("attempts")),
        )
    except (TypeError, ValueError) as error:
        raise CorruptDataError(f"{fields.what}: malformed record") from error
    if record.ledger_id != ledger_id or not _is_coherent(record):
        raise CorruptDataError(f"{fields.what}: the record contradicts itself or its place")
    return record


def _transaction(fields: Fields) -> Transaction | None:
    found = fields.take_or_none("transaction", list)
    if found is None:
        return None
    app_id, version = found
    if not isinstance(app_id, str) or type(version) is not int:
        raise ValueError("malformed transaction")
    return Transaction(app_id, version)


def _attempt(fields: Fields, quorum: Quorum) -> AttemptLogs:
    row_count = fields.take("rows", int)
    logs = []
    for attempt_id, stripe, length, index_offset, digest in fields.take("logs", list):
        if not (type(stripe) is type(length) is type(index_offset) is int):
            raise ValueError("malformed entry log")
        if not isinstance(digest, str) or not digest.isascii():
            raise ValueError("malformed digest")
        if not 0 <= stripe < quorum.stripe_count or not 0 < index_offset < length:
            raise ValueError("entry log out of range")
        rows = stripe_row_count(row_count, stripe, quorum.stripe_count)
        logs.append(EntryLog(layout.token(attempt_id), stripe, rows, length, index_offset, digest))
    return AttemptLogs(fields.take("first", int), row_count, tuple(logs))


def _is_coherent(record: AddRecord) -> bool:
    """Whether the attempts cover exactly the record's entries, in order."""
    if not -1 <= record.last_add_confirmed < record.first_entry_id <= record.last_entry_id:
        return False
    expected = record.first_entry_id
    for attempt in record.attempts:
        stripes = min(attempt.row_count, record.quorum.stripe_count)
        named = [log.stripe for log in attempt.entry_logs]
        is_next = attempt.row_count >= 1 and attempt.first_entry_id == expected
        if not is_next or named != list(range(stripes)):
            return False
        expected += attempt.row_count
    return expected == record.last_entry_id + 1
