"""The envelope of every small record: one line that verifies the rest.

    bkspark <kind> v<version> <cluster> <crc32c> <payload length>\\n<payload: canonical JSON>

The checksum covers kind, version, cluster, the record's storage name, and the payload. So a record
that was cut, flipped in any bit, or stored under another name is recognised before parsing. A
format newer than this code is told apart from a damaged record.

``<cluster>`` is the id of the cluster that the record is of. The store's typed records write and
require it (``cluster.records``), so an encoder knows no cluster. A record that is in no cluster's
keeping, such as the cluster's own and a bookie's cookie, has ``-`` there: its payload has the id.
"""

import re
from collections.abc import Mapping
from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import strict_json
from bkspark.format.digest import canonical_json, crc32c
from bkspark.format.strict_json import Fields

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
    return strict_json.loads(payload, what)


def _joined(kind: str, cluster: str, key: str, payload: bytes) -> bytes:
    checksum = _checksum(kind, VERSION, cluster, key, payload)
    head = f"bkspark {kind} v{VERSION} {cluster} {checksum:08x} {len(payload)}\n"
    return head.encode() + payload


def _checksum(kind: str, version: int, cluster: str, key: str, payload: bytes) -> int:
    return crc32c(payload, crc32c(f"{kind} {version} {cluster} {key}\n".encode(), 0))
