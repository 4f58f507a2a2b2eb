"""Deletion vectors: which rows of a data file are deleted.

A vector is a 64-bit Roaring bitmap of row numbers, inside of the table's log or in a file. Each
part of it is checked before use: its length, its digest, and how many rows it names. A damaged
vector would bring deleted rows back, or hide rows.
"""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

INLINE, RELATIVE, ABSOLUTE = "i", "u", "p"

_MAGIC = 1_681_511_377
_COOKIE, _COOKIE_WITH_RUNS = 12_346, 12_347
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192
_CONTAINERS_MAX = 2**16
_NO_OFFSETS_BELOW = 4
_LARGE = 2**31
_NAME_CHARACTERS = 20
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGITS = {character: digit for digit, character in enumerate(_ALPHABET)}


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """Where the deleted rows of a file are named.

    Attributes:
        storage: ``i`` inside of the log, ``u`` in a file of the table, ``p`` in any file.
        place: the bytes in Base85, the name of the file in Base85, or the file's URL.
        offset: where it begins in the file.
        size_bytes: of the bitmap.
        cardinality: how many rows are deleted.
    """

    storage: str
    place: str
    offset: int
    size_bytes: int
    cardinality: int

    @property
    def identity(self) -> str:
        """Names this vector among those of one data file."""
        return f"{self.storage}{self.place}@{self.offset}"


class DamagedVectorError(ValueError):
    """The bytes of a vector are not what the log says."""


def file_name(vector: DeletionVector) -> str:
    """The name of the file of a relative vector, below the table.

    Raises:
        DamagedVectorError: the log does not name a file.
    """
    prefix, coded = vector.place[:-_NAME_CHARACTERS], vector.place[-_NAME_CHARACTERS:]
    data = _base85(coded)
    if len(data) != 16:
        raise DamagedVectorError("its name is malformed")
    digits = data.hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    name = f"deletion_vector_{'-'.join(parts)}.bin"
    return f"{prefix}/{name}" if prefix else name


def inline_rows(vector: DeletionVector) -> Rows:
    """The deleted rows of a vector that is inside of the log."""
    data = _base85(vector.place)
    if len(data) < vector.size_bytes:
        raise DamagedVectorError("it is cut short")
    return _rows(vector, data[: vector.size_bytes])


def stored_rows(vector: DeletionVector, read: Callable[[int, int], bytes]) -> Rows:
    """The deleted rows of a vector in a file.

    Args:
        read: returns the bytes of the file from a place on, of a length.
    """
    length = vector.size_bytes
    data = read(vector.offset, length + 8)
    if len(data) != length + 8:
        raise DamagedVectorError("its file is cut short")
    (found,), bitmap = struct.unpack_from(">i", data), data[4:-4]
    (digest,) = struct.unpack_from(">I", data, length + 4)
    if found != length or zlib.crc32(bitmap) != digest:
        raise DamagedVectorError("its length or its digest is wrong")
    return _rows(vector, bitmap)


def _rows(vector: DeletionVector, data: bytes) -> Rows:
    try:
        rows = _decode(data)
    except (struct.error, ValueError, IndexError) as error:
        raise DamagedVectorError(f"its bitmap is malformed ({error})") from error
    if len(rows) != vector.cardinality or (len(rows) and bool((np.diff(rows) <= 0).any())):
        raise DamagedVectorError(f"it has {len(rows)} rows, and {vector.cardinality} are named")
    return rows


def _base85(text: str) -> bytes:
    if len(text) % 5:
        raise DamagedVectorError("it is not in Base85")
    data = bytearray()
    for first in range(0, len(text), 5):
        number = 0
        for character in text[first : first + 5]:
            if character not in _DIGITS:
                raise DamagedVectorError("it is not in Base85")
            number = number * 85 + _DIGITS[character]
        if number >= 2**32:
            raise DamagedVectorError("it is not in Base85")
        data += number.to_bytes(4, "big")
    return bytes(data)


# --- roaring -------------------------------------------------------------------------------------
# The portable format of Roaring bitmaps: https://github.com/RoaringBitmap/RoaringFormatSpec


class _Reader:
    """Bytes, from the first to the last."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, code: str) -> int:
        (found,) = struct.unpack_from(code, self._data, self._at)
        self._at += struct.calcsize(code)
        return int(found)

    def array(self, kind: str, count: int) -> npt.NDArray[np.int64]:
        found = np.frombuffer(self._data, kind, count, self._at)
        self._at += found.nbytes
        return found.astype(np.int64)

    def bits(self, byte_count: int) -> npt.NDArray[np.uint8]:
        found = np.frombuffer(self._data, np.uint8, byte_count, self._at)
        self._at += byte_count
        return np.unpackbits(found, bitorder="little")


def _decode(data: bytes) -> Rows:
    reader = _Reader(data)
    if reader.number("<i") != _MAGIC:
        raise ValueError("unknown format")
    count = reader.number("<q")
    if not 0 <= count <= len(data):
        raise ValueError("too many bitmaps")
    found = []
    for _ in range(count):
        high = reader.number("<I")
        if high >= _LARGE:
            raise ValueError("a row number is too large")
        found += [rows + (high << 32) for rows in _containers(reader)]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _containers(reader: _Reader) -> list[Rows]:
    cookie = reader.number("<I")
    is_run = np.zeros(_CONTAINERS_MAX, np.uint8)
    has_runs = cookie & 0xFFFF == _COOKIE_WITH_RUNS
    if has_runs:
        count = (cookie >> 16) + 1
        is_run = reader.bits((count + 7) // 8)
    elif cookie == _COOKIE:
        count = reader.number("<I")
    else:
        raise ValueError("unknown cookie")
    if count > _CONTAINERS_MAX:
        raise ValueError("too many containers")
    heads = reader.array("<u2", 2 * count).reshape(count, 2)
    if not has_runs or count >= _NO_OFFSETS_BELOW:
        reader.array("<u4", count)
    return [
        _container(reader, int(size) + 1, is_run=bool(is_run[number])) + (int(key) << 16)
        for number, (key, size) in enumerate(heads)
    ]


def _container(reader: _Reader, size: int, *, is_run: bool) -> Rows:
    if is_run:
        runs = reader.array("<u2", 2 * reader.number("<H")).reshape(-1, 2)
        values = [np.arange(begin, begin + more + 1) for begin, more in runs]
        found = np.concatenate(values) if values else np.empty(0, np.int64)
        if len(found) and found[-1] >= _CONTAINERS_MAX:
            raise ValueError("a run is too long")
    elif size <= _ARRAY_MAX:
        found = reader.array("<u2", size)
    else:
        found = np.nonzero(reader.bits(_BITMAP_BYTES))[0]
    if len(found) != size:
        raise ValueError("a container has another size than it says")
    return found
