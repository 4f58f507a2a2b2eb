"""Encodes transactions as fields of a record. Transactions have an order; JSON objects have none.

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

from bkspark.format.strict_json import Fields, integers
from bkspark.protocol.log.transactions import (
    DIGEST_LENGTH,
    in_order,
    kinds_of,
    order_of,
    prefix_of,
)

_FIELDS = (("transaction_digests", False), ("query_digests", True))
_BYTES_OF_ONE = DIGEST_LENGTH // 2 + 8


def fields_of(transactions: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of a record; the order only if sorting the names does not give it."""
    others, found = dict(transactions), dict[str, Any]()
    for (name, of_queries), kind in zip(_FIELDS, kinds_of(transactions), strict=True):
        keys = kind.digests
        packed = _packed(keys, prefix_of(of_queries=of_queries), transactions) if keys else None
        if packed is not None:
            found[name] = packed
            for key in keys:
                del others[key]
    order = order_of(others)
    found = {"transactions": others, **found}
    return {**found, "transactions_order": order} if order else found


def decode(fields: Fields) -> dict[str, int]:
    """Decode the transactions of a record.

    Raises:
        CorruptDataError, ValueError: malformed.
    """
    order = fields.take_or_none("transactions_order", list) or []
    found = in_order(fields.mapping("transactions", int), integers(order))
    for name, of_queries in _FIELDS:
        packed = fields.take_or_none(name, str)
        if packed is not None:
            found.update(_unpacked(packed, prefix_of(of_queries=of_queries)))
    return found


def _packed(keys: list[str], prefix: str, transactions: Mapping[str, int]) -> str | None:
    """Pack digests; None if a key is no digest of this version: such keys are stored as text."""
    digits = "".join(key[len(prefix) :] for key in keys)
    try:
        digests = bytes.fromhex(digits)
        versions = array("q", [transactions[key] for key in keys])
    except (ValueError, OverflowError):
        return None
    if digests.hex() != digits or any(len(key) != len(prefix) + DIGEST_LENGTH for key in keys):
        return None
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
        raise ValueError("the digests of the transactions are none")
    return MappingProxyType(found)


def _high_byte_first(numbers: "array[int]") -> "array[int]":
    """Convert from this machine's order to the stored order, or back."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
