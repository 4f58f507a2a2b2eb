"""Journal: the add records of one writer in one term on one bookie, one after the other.

A record is a frame::

    prefix   "BKAR", format version, ensemble index, header and parts lengths, CRC32C of the prefix
    header   canonical JSON, the same on every bookie
    digest   of the header and its position, in hex; counted as part of the header's length
    parts    rows stored inline: an Arrow message for each stripe whose write set the bookie is in
    trailer  length of the whole frame and a checksum of it, so that the last record of a long
             journal is found from its end

A reader tells three results apart: complete and right; *incomplete* (the last record is cut, or
fails its digest with no bytes after it: the trace of a killed writer or a power cut); and corrupt.
Neither of the last two ever counts as an absence.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from bkspark.errors import BookKeeperError, CorruptDataError
from bkspark.format import add_record
from bkspark.format.add_record import Headers
from bkspark.format.digest import Buffer, Digester, canonical_json, crc32c
from bkspark.protocol.ledger.record import AddRecord

HEADER_BYTES_MAX = 256 * 2**20

_MAGIC = b"BKAR"
_VERSION = 1
_PREFIX = struct.Struct("<4sBBHIQI")
_TRAILER = struct.Struct("<QI")
_POSITION = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
_LENGTH_AND_POSITION = struct.Struct("<QQ")

PREFIX_BYTES = _PREFIX.size
TRAILER_BYTES = _TRAILER.size
_DIGEST_HEX = {"CRC32C": 8, "MAC": 64}


class Tail(Enum):
    """How a journal ends."""

    CLEAN = "after its last record"
    INCOMPLETE = "in a record that is cut or torn, and nothing follows it"
    CORRUPT = "in wrong bytes, and data follows them"


@dataclass(frozen=True, slots=True)
class Frame:
    """A good record, and the place in the journal of the parts that this bookie stores.

    Attributes:
        parts: by stripe, (offset in the decoded data, length) in bytes.
        index: the place in the ensemble to which the parts belong.
        header: as stored, without its digest, which was checked.
    """

    record: AddRecord
    parts: Mapping[int, tuple[int, int]]
    index: int = 0
    header: bytes = b""


@dataclass(frozen=True, slots=True)
class JournalContent:
    """The good frames from the start of a journal, and how the journal ends after them."""

    frames: tuple[Frame, ...]
    tail: Tail
    end: int

    @property
    def records(self) -> tuple[AddRecord, ...]:
        """The records that commit entries; confirmations are left out."""
        return tuple(f.record for f in self.frames if not f.record.is_confirmation)

    @property
    def last_add_confirmed(self) -> int:
        """The highest LAC of all records, confirmations included; -1 without records."""
        return max((frame.record.last_add_confirmed for frame in self.frames), default=-1)


@dataclass(frozen=True, slots=True)
class EncodedRecord:
    """A record's bytes, encoded once; ``frame`` returns the bytes for one bookie.

    Attributes:
        parts: the Arrow messages of all its inline parts, by stripe.
    """

    record: AddRecord
    header: bytes
    parts: Mapping[int, Buffer]
    digester: Digester
    _sealed: dict[int, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def frame(self, ensemble_index: int, position: int) -> list[Buffer]:
        """Return the bytes that the bookie at ``ensemble_index`` appends at ``position``, in
        pieces.
        """
        owned = self.record.parts_of(ensemble_index)
        header = self._sealed.get(position) or self._seal(position)
        length = sum(part.length_bytes for part in owned)
        prefix = _PREFIX.pack(_MAGIC, _VERSION, 0, ensemble_index, len(header), length, 0)[:-4]
        return [
            prefix + _checksum(prefix, position) + header,
            *(self.parts[part.stripe] for part in owned),
            _trailer(_PREFIX.size + len(header) + length + _TRAILER.size, position),
        ]

    def _seal(self, position: int) -> bytes:
        """Return the header with its digest; cached, since most bookies have the record at one
        position.
        """
        digest = self.digester.digest(_context(self.record.ledger_id, position), self.header)
        sealed = self._sealed[position] = self.header + digest.encode()
        return sealed


def encode(
    record: AddRecord,
    digester: Digester,
    parts: Mapping[int, Buffer] = MappingProxyType({}),
    header: bytes = b"",
) -> EncodedRecord:
    """Encode ``record`` for writing.

    Args:
        parts: the messages of its inline parts.
        header: of a good copy of the record; made anew if empty.

    Raises:
        InvalidRequestError: no reader could decode the record.
    """
    if not header:
        header = canonical_json(add_record.to_json(record))
        add_record.require_readable(record, header)
    return EncodedRecord(record, header, parts, digester)


def part_digest(
    digester: Digester, message: Buffer, *, ledger_id: int, first_entry_id: int, stripe: int
) -> str:
    """Return the digest of an inline part, bound to its place."""
    return digester.digest(f"inline part 1 {ledger_id} {first_entry_id} {stripe}", message)


def decode_journal(
    data: bytes, digester: Digester, *, ledger_id: int, position: int = 0
) -> JournalContent:
    """Decode all good frames of ``data``. Never raises for bad bytes.

    Args:
        data: a journal from byte ``position`` on, where a frame begins.
    """
    frames: list[Frame] = []
    begin, headers = 0, Headers(ledger_id)
    while begin < len(data):
        try:
            frame, end = _decode_frame(data, begin, position, digester, headers)
        except _CutError:
            return JournalContent(tuple(frames), Tail.INCOMPLETE, position + begin)
        except BookKeeperError:
            return JournalContent(tuple(frames), Tail.CORRUPT, position + begin)
        frames.append(frame)
        begin = end
    return JournalContent(tuple(frames), Tail.CLEAN, position + begin)


def decode_frame(
    data: bytes, digester: Digester, headers: Headers, *, position: int
) -> Frame | None:
    """Decode the frame ``data`` at byte ``position`` of its journal; None if the frame is not
    good.
    """
    try:
        return _decode_frame(data, 0, position, digester, headers)[0]
    except (_CutError, BookKeeperError):
        return None


def last_frame_length(data: bytes, end: int) -> int | None:
    """Return the length of the frame that ends at byte ``end``; None if its trailer is damaged.

    Args:
        data: the journal's bytes up to ``end``, at least the last few.
    """
    if len(data) < _TRAILER.size:
        return None
    length = int(_TRAILER.unpack_from(data, len(data) - _TRAILER.size)[0])
    is_possible = _PREFIX.size + _TRAILER.size < length <= end
    return length if is_possible and data.endswith(_trailer(length, end - length)) else None


def frame_length(data: bytes, begin: int, *, position: int) -> int | None:
    """Return the length of the frame at ``data[begin:]``; None if no frame of this format begins
    there.

    Only the checked prefix is read, so a long journal is walked without reading the frames'
    contents.

    Args:
        position: of ``data[begin]`` in its journal.
    """
    body = begin + _PREFIX.size
    if len(data) < body:
        return None
    magic, version, _, _, header_length, parts_length, _ = _PREFIX.unpack_from(data, begin)
    is_frame = magic == _MAGIC and version == _VERSION and header_length <= HEADER_BYTES_MAX
    if not is_frame or data[body - 4 : body] != _checksum(data[begin : body - 4], position):
        return None
    return int(_PREFIX.size + header_length + parts_length + _TRAILER.size)


def head_length(data: bytes, begin: int) -> int:
    """Return the length of prefix and header of the frame at ``data[begin:]``."""
    return int(_PREFIX.size + _PREFIX.unpack_from(data, begin)[4])


def ensemble_index(data: bytes, begin: int) -> int:
    """Return the place in the ensemble whose parts the frame at ``data[begin:]`` has."""
    return int(_PREFIX.unpack_from(data, begin)[3])


def is_as_long_as_its_rows(data: bytes, record: AddRecord) -> bool:
    """Return whether a frame has exactly the length needed for the rows of ``record``.

    Args:
        data: the frame from its beginning on, at least its prefix.
    """
    _, _, _, index, _, parts_length, _ = _PREFIX.unpack_from(data)
    return sum(part.length_bytes for part in record.parts_of(index)) == int(parts_length)


def decode_head(
    data: bytes, begin: int, digester: Digester, headers: Headers, *, position: int
) -> AddRecord | None:
    """Decode the record of the frame at ``data[begin:]`` from its header alone; None if damaged.

    The header is verified; the parts are not.
    """
    if frame_length(data, begin, position=position) is None:
        return None
    body, parts_at = begin + _PREFIX.size, begin + head_length(data, begin)
    digest_at = parts_at - _DIGEST_HEX[digester.spec.digest_type]
    if not body <= digest_at <= parts_at <= len(data):
        return None
    header, ledger_id = data[body:digest_at], headers.ledger_id
    expected = data[digest_at:parts_at].decode("ascii", "replace")
    try:
        if not digester.matches(expected, _context(ledger_id, position), header):
            return None
        return headers.decode(header)
    except BookKeeperError:
        return None


def frame_begins(data: bytes, position: int) -> list[int]:
    """Find where frames seem to begin, ascending: whole prefixes in their right place.

    Only a hint for where to look: a record's rows may imitate a prefix.

    Args:
        data: the journal's bytes from ``position`` on.
    """
    found: list[int] = []
    at = data.find(_MAGIC)
    while at >= 0:
        body = at + _PREFIX.size
        if data[body - 4 : body] == _checksum(data[at : body - 4], position + at):
            found.append(position + at)
        at = data.find(_MAGIC, at + 1)
    return found


class _CutError(Exception):
    """The frame continues after the end of the data, or is wrong and the last."""


def _decode_frame(
    data: bytes, begin: int, offset: int, digester: Digester, headers: Headers
) -> tuple[Frame, int]:
    """Decode the frame at ``data[begin:]``, which is byte ``offset + begin`` of its journal."""
    rest = len(data) - begin
    if rest < _PREFIX.size or (not data[begin] and not any(data[begin:])):
        raise _CutError  # cut, or blocks that were allocated and never written
    ledger_id, position = headers.ledger_id, offset + begin
    magic, version, _, index, header_length, parts_length, _ = _PREFIX.unpack_from(data, begin)
    body = begin + _PREFIX.size
    if magic != _MAGIC or data[body - 4 : body] != _checksum(data[begin : body - 4], position):
        raise CorruptDataError(f"journal of ledger {ledger_id}: no record at byte {position}")
    if version != _VERSION or header_length > HEADER_BYTES_MAX:
        raise CorruptDataError(
            f"journal of ledger {ledger_id}: record format {version} is unknown",
            hint="read it with the bkspark that wrote it",
        )
    parts_at = body + header_length
    digest_at = parts_at - _DIGEST_HEX[digester.spec.digest_type]
    trailer_at = parts_at + parts_length
    end = trailer_at + _TRAILER.size
    if digest_at < body:
        raise CorruptDataError(f"journal of ledger {ledger_id}: no header at byte {position}")
    if end > len(data):
        raise _CutError
    header = data[body:digest_at]
    expected = data[digest_at:parts_at].decode("ascii", "replace")
    is_whole = digester.matches(expected, _context(ledger_id, position), header)
    if is_whole and data[trailer_at:end] == _trailer(end - begin, position):
        record = headers.decode(header)
        parts = _good_parts(data, parts_at, trailer_at, record, index, digester)
        if parts is not None:
            return Frame(record, parts, index, header), end
    if end == len(data):
        raise _CutError
    raise CorruptDataError(f"journal of ledger {ledger_id}: digest mismatch at byte {position}")


def _good_parts(
    data: bytes, begin: int, end: int, record: AddRecord, ensemble_index: int, digester: Digester
) -> dict[int, tuple[int, int]] | None:
    """Return the place of each part in ``data``, None if one fails its digest."""
    found: dict[int, tuple[int, int]] = {}
    for part in record.parts_of(ensemble_index):
        found[part.stripe] = (begin, part.length_bytes)
        message = memoryview(data)[begin : begin + part.length_bytes]  # without a copy
        begin += part.length_bytes
        place = {"ledger_id": record.ledger_id, "first_entry_id": record.first_entry_id}
        if part_digest(digester, message, stripe=part.stripe, **place) != part.digest:
            return None
    return found if begin == end else None


def _context(ledger_id: int, position: int) -> str:
    return f"add record 1 {ledger_id} {position}"


def _checksum(prefix: bytes, position: int) -> bytes:
    """Return the checksum of a prefix and its position: a frame copied elsewhere is invalid."""
    return _CHECKSUM.pack(crc32c(prefix, crc32c(_POSITION.pack(position), 0)))


def _trailer(length: int, position: int) -> bytes:
    return _TRAILER.pack(length, crc32c(_LENGTH_AND_POSITION.pack(length, position), 0))
