"""Encodes transactions as a field of a record.

The field is a list of three values:

- names with their versions, in order;
- the digests of further applications, packed in one text;
- the digests of further queries, packed likewise.

Digests are packed, since a log may have thousands: 8 bytes of each digest in order, then 8 bytes of
each version, high byte first, as one text in base 64.
"""

import sys
from array import array
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from bkspark.errors import InvalidRequestError
from bkspark.format.strict_json import Fields
from bkspark.protocol import bounds
from bkspark.protocol.log.transactions import DIGEST_LENGTH, is_digest, kinds_of, prefix_of

NAME = "transactions"
"""Name of the field in each record."""

_BYTES_OF_ONE = DIGEST_LENGTH // 2 + 8
_MALFORMED = "the digests of the transactions are malformed"


def encode(transactions: Mapping[str, int]) -> list[Any]:
    """Return the field of a record.

    Raises:
        InvalidRequestError: a key looks like a digest and is none.
    """
    if not transactions:
        return [[], "", ""]
    packed, named = list[str](), dict(transactions)
    for of_queries, kind in zip((False, True), kinds_of(transactions), strict=True):
        packed.append(_packed(kind.digests, prefix_of(of_queries=of_queries), transactions))
        for key in kind.digests:
            del named[key]
    return [[[name, version] for name, version in named.items()], *packed]


def decode(fields: Fields) -> dict[str, int]:
    """Decode the transactions of a record.

    Raises:
        CorruptDataError, TypeError, ValueError: malformed.
    """
    named, *packed = fields.take(NAME, list)
    found: dict[str, int] = {}
    for name, version in named:
        is_named = type(name) is str and name not in found and not is_digest(name)
        if not is_named or not bounds.is_stored_number(version):
            raise ValueError("the transactions are malformed")
        found[name] = version
    for of_queries, digests in zip((False, True), packed, strict=True):
        if digests != "":
            found.update(_unpacked(digests, prefix_of(of_queries=of_queries)))
    return found


def _packed(keys: list[str], prefix: str, transactions: Mapping[str, int]) -> str:
    digits = "".join(key[len(prefix) :] for key in keys)
    try:
        digests = bytes.fromhex(digits)
        versions = array("q", [transactions[key] for key in keys])
    except (ValueError, OverflowError) as error:
        raise InvalidRequestError(_MALFORMED) from error
    if digests.hex() != digits or any(len(key) != len(prefix) + DIGEST_LENGTH for key in keys):
        raise InvalidRequestError(_MALFORMED)
    return b64encode(digests + _high_byte_first(versions).tobytes()).decode()


@lru_cache(maxsize=8)
def _unpacked(packed: str, prefix: str) -> Mapping[str, int]:
    """Cached: readers decode a log's record again and again, mostly with the same transactions."""
    try:
        data = b64decode(packed, validate=True)
    except Error as error:
        raise ValueError("the digests of the transactions are no base 64") from error
    count, rest = divmod(len(data), _BYTES_OF_ONE)
    if rest:
        raise ValueError("the digests of the transactions are cut off")
    digits = data[: count * DIGEST_LENGTH // 2].hex()
    versions = _high_byte_first(array("q", data[count * DIGEST_LENGTH // 2 :]))
    begins = range(0, len(digits), DIGEST_LENGTH)
    keys = (prefix + digits[begin : begin + DIGEST_LENGTH] for begin in begins)
    found = dict(zip(keys, versions, strict=True))
    if len(found) != count or min(versions, default=0) < 0:
        raise ValueError(_MALFORMED)
    return MappingProxyType(found)


def _high_byte_first(numbers: "array[int]") -> "array[int]":
    """Convert from this machine's order to the stored order, or back."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
