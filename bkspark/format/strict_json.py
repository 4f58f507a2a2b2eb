"""Checks JSON from storage before use, and the envelope that verifies every small record."""

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

from bkspark.errors import CorruptDataError
from bkspark.format.digest import canonical_json, crc32c
from bkspark.protocol import bounds

# --- strict json ---------------------------------------------------------------------------------
# Checks JSON from storage before use.
#
# JSON with a right digest may still be hostile, if an enemy can compute digests. So sizes are
# bounded before parsing, doubled keys and non-numbers are refused, and every field is taken by name
# and type.


T = TypeVar("T")

DEPTH_MAX = 32


class Fields:
    """A JSON object whose fields are taken by name and type.

    Args:
        what: names the record in error messages.

    Raises (every method):
        CorruptDataError: the field is missing or of another type.
    """

    def __init__(self, values: Mapping[str, Any], what: str) -> None:
        self._values = values
        self.what = what

    def take(self, name: str, kind: type[T]) -> T:
        """Return the field ``name``. A bool is no int here, nor is a number beyond 64 bits."""
        value = self._values.get(name)
        if type(value) is not kind or (kind is int and not bounds.is_stored_number(value)):
            raise CorruptDataError(f"{self.what}: field {name!r} is missing or malformed")
        return value

    def take_or_none(self, name: str, kind: type[T]) -> T | None:
        """Return the field ``name``, which is stored as null if there is no value."""
        is_null = name in self._values and self._values[name] is None
        return None if is_null else self.take(name, kind)

    def objects(self, name: str) -> list["Fields"]:
        """Return the field ``name``: a list of objects."""
        found = self.take(name, list)
        if not all(isinstance(value, dict) for value in found):
            raise CorruptDataError(f"{self.what}: field {name!r} is malformed")
        return [Fields(value, self.what) for value in found]

    def object(self, name: str) -> "Fields":
        return Fields(self.take(name, dict), self.what)

    def mapping(self, name: str, kind: type[T]) -> dict[str, T]:
        """Return the field ``name``: an object whose values are all of ``kind``."""
        inner = self.object(name)
        return {key: inner.take(key, kind) for key in inner._values}


def integers(items: list[Any]) -> list[int]:
    """Return ``items`` if they are whole numbers from 0 to the largest of 64 bits.

    Raises:
        ValueError: an item is not.
    """
    if not items:
        return items
    if set(map(type, items)) != {int} or min(items) < 0 or max(items) > bounds.NUMBER_MAX:
        raise ValueError("not a list of ids")
    return items


def loads(data: bytes, what: str) -> Fields:
    """Parse one JSON object.

    Raises:
        CorruptDataError: not UTF-8, not JSON, not an object, half a character, doubled keys, NaN,
            or nested too deep.
    """
    try:
        value = _DECODER.decode(data.decode("utf-8"))
        if b"\\u" in data:  # otherwise no string holds half a surrogate pair
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise CorruptDataError(f"{what}: not valid JSON") from error
    may_be_deep = data.count(b"{") + data.count(b"[") > DEPTH_MAX
    if not isinstance(value, dict) or (may_be_deep and _is_deeper(value, DEPTH_MAX)):
        raise CorruptDataError(f"{what}: not a JSON object of bounded depth")
    return Fields(value, what)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("doubled key")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_doubles, parse_constant=_refuse)


def _is_deeper(value: object, depth: int) -> bool:
    """Return whether lists and objects, ``value`` included, are nested more than ``depth`` deep."""
    level: list[Any] = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


# --- envelope ------------------------------------------------------------------------------------
# The envelope of every small record: one line that verifies the rest.
#
#     bkspark <kind> v<version> <cluster> <crc32c> <payload length>\n<payload: canonical JSON>
#
# The checksum covers kind, version, cluster, the record's storage name, and the payload. So a
# record that was cut, flipped in any bit, or stored under another name is recognised before
# parsing. A format newer than this code is told apart from a damaged record.
#
# ``<cluster>`` is the id of the cluster that the record is of. The store's typed records write and
# require it (``cluster.records``), so an encoder knows no cluster. A record that is in no cluster's
# keeping, such as the cluster's own and a bookie's cookie, has ``-`` there: its payload has the id.


VERSION = 1
NO_CLUSTER = "-"
RECORD_BYTES_MAX = 64 * 2**20

_HEAD = re.compile(
    rb"bkspark ([a-z]{1,16}) v([1-9][0-9]{0,4}) (-|[0-9a-f]{32}) "
    rb"([0-9a-f]{8}) (0|[1-9][0-9]{0,9})"
)
_HEAD_BYTES_MAX = 96


def encode(kind: str, key: str, value: Mapping[str, Any]) -> bytes:
    """Encode a record of ``kind``, to be stored under ``key``; it is of no cluster yet."""
    return _joined(kind, NO_CLUSTER, key, canonical_json(value))


def of_cluster(cluster_id: str, key: str, data: bytes) -> bytes:
    """Return the record that ``encode`` made, as a record of the cluster."""
    head, _, payload = data.partition(b"\n")
    return _joined(head.split(b" ")[1].decode(), cluster_id, key, payload)


def require_own(cluster_id: str, key: str, data: bytes) -> None:
    """Return if ``data``, a record that was decoded, is of the cluster.

    Raises:
        CorruptDataError: another cluster's record lies here, such as one that was copied.
    """
    _, kind, _, found, _ = data[:_HEAD_BYTES_MAX].decode("ascii", "replace").split(" ", 4)
    if found != cluster_id:
        whose = "no cluster" if found == NO_CLUSTER else f"cluster {found}"
        raise CorruptDataError(
            f"{kind} record {key!r} is not of this cluster: it is of {whose}, and this is cluster "
            f"{cluster_id}"
        )


def decode(kind: str, key: str, data: bytes) -> Fields:
    """Decode the record in ``data``, found under ``key``.

    Raises:
        CorruptDataError: any difference from a record made by ``encode``.
    """
    what = f"{kind} record {key!r}"
    head, newline, payload = data.partition(b"\n")
    match = _HEAD.fullmatch(head) if len(head) <= _HEAD_BYTES_MAX else None
    if not newline or match is None or len(data) > RECORD_BYTES_MAX:
        raise CorruptDataError(f"{what} does not begin like a record of bkspark")
    version = int(match[2])
    is_intact = (
        match[1] == kind.encode()
        and int(match[5]) == len(payload)
        and int(match[4], 16) == _checksum(kind, version, match[3].decode(), key, payload)
    )
    if not is_intact:
        raise CorruptDataError(f"{what} is damaged: its checksum does not match")
    if version != VERSION:
        raise CorruptDataError(
            f"{what} has format version {version}, and this bkspark knows {VERSION}",
            hint="read it with the bkspark that wrote it",
        )
    return loads(payload, what)


def _joined(kind: str, cluster: str, key: str, payload: bytes) -> bytes:
    checksum = _checksum(kind, VERSION, cluster, key, payload)
    head = f"bkspark {kind} v{VERSION} {cluster} {checksum:08x} {len(payload)}\n"
    return head.encode() + payload


def _checksum(kind: str, version: int, cluster: str, key: str, payload: bytes) -> int:
    return crc32c(payload, crc32c(f"{kind} {version} {cluster} {key}\n".encode(), 0))
