"""Records about the cluster itself: its identity, its bookies, the ledger id counter.

In the metadata store a bookie's record says where it is and which incarnation is meant; on the
bookie itself the cookie says the same (``cookie``). Only where both agree is a bookie believed.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import envelope, layout
from bkspark.format.strict_json import Fields
from bkspark.protocol.bookies.fullness import USUAL_MARKS, Marks

CLUSTER_KIND = "cluster"
BOOKIE_KIND = "bookie"
COUNTER_KIND = "counter"

GROUP_MAX = 2**32 - 2
"""The largest id that a system gives to a group."""


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """A cluster's identity: a random id that every cookie repeats.

    Attributes:
        storage_risk: why the metadata store might lose records, if somebody chose to use it all
            the same; else empty.
        group: id of the group of operating system users that share its folders and files; None if
            one user has them.
    """

    cluster_id: str
    created_ms: int
    storage_risk: str = ""
    group: int | None = None


@dataclass(frozen=True, slots=True)
class BookieRecord:
    """A registered bookie.

    Attributes:
        url: where its storage is, as every host sees it.
        domain: failure domain; bookies that share one are expected to be lost together.
        is_read_only: an operator's wish: not chosen for new ensembles, still read.
        storage_risk: as of a ``ClusterRecord``.
        is_full: its disk has passed the upper mark, and was not seen below the lower one since.
        marks: how full its disk may get.
        is_leaving: somebody is about to remove it; whoever names it from now on finds that out.
        is_removed: it is no bookie of the cluster any more, and its id is given to no other.
    """

    bookie_id: str
    incarnation: str
    url: str
    domain: str
    is_read_only: bool = False
    storage_risk: str = ""
    is_full: bool = False
    marks: Marks = USUAL_MARKS
    is_leaving: bool = False
    is_removed: bool = False

    @property
    def is_going(self) -> bool:
        """Whether no ledger may name it any more."""
        return self.is_leaving or self.is_removed


def encode_cluster(record: ClusterRecord, nonce: str) -> bytes:
    value: dict[str, Any] = {
        "nonce": nonce,
        "id": record.cluster_id,
        "created_ms": record.created_ms,
        **_risk(record),
        **({} if record.group is None else {"group": record.group}),
    }
    return envelope.encode(CLUSTER_KIND, layout.CLUSTER_KEY, value)


@lru_cache(16)
def decode_cluster(data: bytes) -> ClusterRecord:
    fields = envelope.decode(CLUSTER_KIND, layout.CLUSTER_KEY, data)
    return ClusterRecord(
        fields.take("id", str),
        fields.take("created_ms", int),
        fields.take_or_none("storage_risk", str) or "",
        take_group(fields),
    )


def take_group(fields: Fields) -> int | None:
    """The group of a cluster, in its record or in a cookie."""
    group = fields.take_or_none("group", int)
    if group is not None and not 0 <= group <= GROUP_MAX:
        raise CorruptDataError(f"{fields.what}: there can be no group {group}")
    return group


def encode_bookie(record: BookieRecord, nonce: str) -> bytes:
    value: dict[str, Any] = {
        "nonce": nonce,
        "id": record.bookie_id,
        "incarnation": record.incarnation,
        "url": record.url,
        "domain": record.domain,
        # Older versions know of no others that nothing is to be placed on.
        "read_only": record.is_read_only or record.is_going,
        **_risk(record),
        **({"full": True} if record.is_full else {}),
        **_marks(record.marks),
        **({"leaving": True} if record.is_leaving else {}),
        **({"removed": True} if record.is_removed else {}),
    }
    return envelope.encode(BOOKIE_KIND, layout.bookie_key(record.bookie_id), value)


@lru_cache(1024)  # whoever places a ledger, or follows one, looks at all of them again
def decode_bookie(bookie_id: str, data: bytes) -> BookieRecord:
    fields = envelope.decode(BOOKIE_KIND, layout.bookie_key(bookie_id), data)
    if fields.take("id", str) != bookie_id:
        raise CorruptDataError(f"{fields.what} names another bookie")
    return BookieRecord(
        bookie_id=bookie_id,
        incarnation=fields.take("incarnation", str),
        url=fields.take("url", str),
        domain=fields.take("domain", str),
        is_read_only=fields.take("read_only", bool),
        storage_risk=fields.take_or_none("storage_risk", str) or "",
        is_full=fields.take_or_none("full", bool) or False,
        marks=_decoded_marks(fields),
        is_leaving=fields.take_or_none("leaving", bool) or False,
        is_removed=fields.take_or_none("removed", bool) or False,
    )


def _risk(record: ClusterRecord | BookieRecord) -> dict[str, str]:
    """Said only where there is one."""
    return {"storage_risk": record.storage_risk} if record.storage_risk else {}


def _marks(marks: Marks) -> dict[str, int]:
    """Said only where they are others than usual."""
    if marks == USUAL_MARKS:
        return {}
    return {"high_permille": marks.high_permille, "low_permille": marks.low_permille}


def _decoded_marks(fields: Fields) -> Marks:
    high = fields.take_or_none("high_permille", int)
    low = fields.take_or_none("low_permille", int)
    if high is None and low is None:
        return USUAL_MARKS
    try:
        return Marks(*(-1 if mark is None else mark for mark in (high, low)))
    except ValueError as error:
        raise CorruptDataError(f"{fields.what}: its marks are malformed") from error


def encode_counter(key: str, value: int, nonce: str) -> bytes:
    return envelope.encode(COUNTER_KIND, key, {"nonce": nonce, "next": value})


def decode_counter(key: str, data: bytes) -> int:
    return envelope.decode(COUNTER_KIND, key, data).take("next", int)
