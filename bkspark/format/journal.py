"""Journal: the add records of one writer in one term on one bookie, one behind the other.

A record is a frame::

    prefix   "BKAR", format version, ensemble index, header and parts lengths, CRC32C of the prefix
    header   canonical JSON, the same on every bookie
    digest   of the header, in hex; counted as part of the header's length
    parts    rows stored inline: an Arrow message for each stripe whose write set the bookie is in

Three things are told apart when a journal is read: complete and right, *incomplete* (the last
record is cut or fails its digest with nothing behind it: the trace of a killed writer or a power
cut), and corrupt. Neither of the last two ever counts as an absence.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from bkspark.errors import BookKeeperError, CorruptDataError
from bkspark.format import add_record, strict_json
from bkspark.format.digest import Buffer, Digester, canonical_json, crc32c
from bkspark.protocol.record import AddRecord

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
class Frame:
    """A good record and where the parts that this bookie stores lie in the journal.

    Attributes:
        parts: by stripe, (offset, length) in bytes.
    """

    record: AddRecord
    parts: Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class JournalContent:
    """The good frames from the start of a journal, and how it ends after them."""

    frames: tuple[Frame, ...]
    tail: Tail
    end: int

    @property
    def records(self) -> tuple[AddRecord, ...]:
        return tuple(frame.record for frame in self.frames)


@dataclass(frozen=True, slots=True)
class EncodedRecord:
    """A record's bytes, encoded once; ``frame`` puts together what one bookie stores of them.

    Attributes:
        parts: the Arrow messages of all its inline parts, by stripe.
    """

    record: AddRecord
    header: bytes
    parts: Mapping[int, Buffer]

    def frame(self, ensemble_index: int) -> list[Buffer]:
        """What the bookie at ``ensemble_index`` appends, in pieces."""
        owned = self.record.parts_of(ensemble_index)
        length = sum(part.length_bytes for part in owned)
        prefix = _PREFIX.pack(_MAGIC, _VERSION, 0, ensemble_index, len(self.header), length, 0)
        checked = prefix[:-4] + struct.pack("<I", crc32c(prefix[:-4], 0))
        return [checked + self.header, *(self.parts[part.stripe] for part in owned)]


def encode(
    record: AddRecord, digester: Digester, parts: Mapping[int, Buffer] = MappingProxyType({})
) -> EncodedRecord:
    """``record`` ready to be written; ``parts`` are the messages that its parts name."""
    header = canonical_json(add_record.to_json(record))
    digest = digester.digest(_context(record.ledger_id), header).encode()
    return EncodedRecord(record, header + digest, parts)


def encode_record(record: AddRecord, digester: Digester, *, ensemble_index: int) -> bytes:
    """The frame of a record without inline parts for the bookie at ``ensemble_index``."""
    return b"".join(encode(record, digester).frame(ensemble_index))


def part_digest(
    digester: Digester, message: Buffer, *, ledger_id: int, first_entry_id: int, stripe: int
) -> str:
    """The digest of an inline part, bound to its place."""
    return digester.digest(f"inline part 1 {ledger_id} {first_entry_id} {stripe}", message)


def decode_journal(data: bytes, digester: Digester, *, ledger_id: int) -> JournalContent:
    """Everything that can be known from the bytes of a journal. Never raises for bad bytes."""
    frames: list[Frame] = []
    position = 0
    while position < len(data):
        try:
            frame, position = _decode_frame(data, position, digester, ledger_id)
        except _CutError:
            return JournalContent(tuple(frames), Tail.INCOMPLETE, position)
        except BookKeeperError:
            return JournalContent(tuple(frames), Tail.CORRUPT, position)
        frames.append(frame)
    return JournalContent(tuple(frames), Tail.CLEAN, position)


class _CutError(Exception):
    """The frame goes on past the end of the data, or is wrong and the last."""


def _decode_frame(
    data: bytes, position: int, digester: Digester, ledger_id: int
) -> tuple[Frame, int]:
    rest = len(data) - position
    if rest < _PREFIX.size or (not data[position] and not any(data[position:])):
        raise _CutError  # cut, or blocks that were allocated and never written
    magic, version, _, index, header_length, parts_length, prefix_crc = _PREFIX.unpack_from(
        data, position
    )
    what = f"journal of ledger {ledger_id}"
    body = position + _PREFIX.size
    if magic != _MAGIC or crc32c(data[position : body - 4], 0) != prefix_crc:
        raise CorruptDataError(f"{what}: no record at byte {position}")
    if version != _VERSION or header_length > HEADER_BYTES_MAX:
        raise CorruptDataError(
            f"{what}: record format {version} is not known here",
            hint="read it with a newer bkspark",
        )
    parts_at = body + header_length
    digest_at = parts_at - _DIGEST_HEX[digester.spec.digest_type]
    end = parts_at + parts_length
    if end > len(data) or digest_at < body:
        raise _CutError
    try:
        header = data[body:digest_at]
        expected = data[digest_at:parts_at].decode("ascii", "replace")
        if not digester.matches(expected, _context(ledger_id), header):
            raise CorruptDataError(f"{what}: digest mismatch at byte {position}")
        record = add_record.from_json(strict_json.loads(header, what), ledger_id)
        return Frame(record, _checked_parts(data, parts_at, end, record, index, digester)), end
    except CorruptDataError as error:
        if end == len(data):
            raise _CutError from error
        raise


def _checked_parts(
    data: bytes, begin: int, end: int, record: AddRecord, ensemble_index: int, digester: Digester
) -> dict[int, tuple[int, int]]:
    """Where each part lies, after its digest was checked."""
    found: dict[int, tuple[int, int]] = {}
    for part in record.parts_of(ensemble_index):
        message = data[begin : begin + part.length_bytes]
        digest = part_digest(
            digester,
            message,
            ledger_id=record.ledger_id,
            first_entry_id=record.first_entry_id,
            stripe=part.stripe,
        )
        if digest != part.digest:
            raise CorruptDataError(f"journal of ledger {record.ledger_id}: damaged part")
        found[part.stripe] = (begin, part.length_bytes)
        begin += part.length_bytes
    if begin != end:
        raise CorruptDataError(f"journal of ledger {record.ledger_id}: parts are not as named")
    return found


def _context(ledger_id: int) -> str:
    return f"add record 1 {ledger_id}"
