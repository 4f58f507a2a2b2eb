"""The envelope of every small record: one line that verifies the rest.

    bkspark <kind> v<version> <crc32c> <payload length>\\n<payload: canonical JSON>

The checksum covers kind, version, the record's storage name, and the payload. So a record that was
cut, flipped in any bit, or stored under another name is recognised before parsing. A format newer
than this code is told apart from a damaged record.
"""

import re
from collections.abc import Mapping
from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import strict_json
from bkspark.format.digest import canonical_json, crc32c
from bkspark.format.strict_json import Fields

VERSION = 1
RECORD_BYTES_MAX = 64 * 2**20

_HEAD = re.compile(rb"bkspark ([a-z]{1,16}) v([1-9][0-9]{0,4}) ([0-9a-f]{8}) (0|[1-9][0-9]{0,9})")
_HEAD_BYTES_MAX = 64


def encode(kind: str, key: str, value: Mapping[str, Any]) -> bytes:
    """Encode a record of ``kind``, to be stored under ``key``."""
    payload = canonical_json(value)
    checksum = _checksum(kind, VERSION, key, payload)
    return f"bkspark {kind} v{VERSION} {checksum:08x} {len(payload)}\n".encode() + payload


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
        and int(match[4]) == len(payload)
        and int(match[3], 16) == _checksum(kind, version, key, payload)
    )
    if not is_intact:
        raise CorruptDataError(f"{what} is damaged: its checksum does not match")
    if version != VERSION:
        raise CorruptDataError(
            f"{what} has format version {version}, and this bkspark knows {VERSION}",
            hint="read it with the bkspark that wrote it",
        )
    return strict_json.loads(payload, what)


def _checksum(kind: str, version: int, key: str, payload: bytes) -> int:
    return crc32c(payload, crc32c(f"{kind} {version} {key}\n".encode(), 0))
