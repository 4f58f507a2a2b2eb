"""Encodes records about the cluster: its identity, its bookies, the ledger id counter.

In the metadata store a bookie's record gives its place and incarnation. On the bookie the cookie
repeats its id and incarnation (``cookie``). A bookie is trusted only if both agree.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import layout, strict_json
from bkspark.format.strict_json import Fields
from bkspark.protocol.bookies import (
    USUAL_MARKS,
    Labels,
    Marks,
    in_store,
    require_labels,
    require_store_name,
)

CLUSTER_KIND = "cluster"
BOOKIE_KIND = "bookie"
COUNTER_KIND = "counter"

GROUP_MAX = 2**32 - 2
"""The largest group id of an operating system."""
BRING_BACK = (
    "bring this record back from a copy of the metadata store, or make it again from a "
    "bookie: `bkspark metadata set-aside cluster --url URL`"
)


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """A cluster's identity: a random id that every cookie repeats.

    Attributes:
        storage_risk: why the metadata store might lose records, if the operator accepted the risk;
            else empty.
        group: id of the group of operating system users that shares the folders and files; None for
            a single user.
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
        domain: failure domain; bookies of one domain are expected to be lost together.
        is_read_only: set by an operator: not chosen for new ensembles, still read.
        storage_risk: as in ``ClusterRecord``.
        is_full: its disk has passed the upper mark, and has not been seen below the lower mark
            since.
        marks: how full its disk may get.
        is_leaving: its removal has begun; a client that newly names the bookie checks the flag
            afterwards.
        is_removed: no longer a bookie of the cluster; its id is never used again.
        labels: what an operator says of it, such as its rack and zone, by name.
        store: name of the object store that ``url`` is in; empty for the default of each process.
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
    labels: Labels = field(default_factory=dict, hash=False)
    store: str = ""

    @property
    def place(self) -> str:
        """``url`` with the name of its store."""
        return in_store(self.url, self.store)

    @property
    def is_going(self) -> bool:
        """Whether no ledger may newly name the bookie."""
        return self.is_leaving or self.is_removed


def encode_cluster(record: ClusterRecord, nonce: str) -> bytes:
    value: dict[str, Any] = {
        "nonce": nonce,
        "id": record.cluster_id,
        "created_ms": record.created_ms,
        "storage_risk": record.storage_risk,
        "group": record.group,
    }
    return strict_json.encode(CLUSTER_KIND, layout.CLUSTER_KEY, value)


@lru_cache(16)
def decode_cluster(data: bytes) -> ClusterRecord:
    fields = strict_json.decode(CLUSTER_KIND, layout.CLUSTER_KEY, data)
    return ClusterRecord(
        _cluster_id(fields),
        fields.take("created_ms", int),
        fields.take("storage_risk", str),
        take_group(fields),
    )


def _cluster_id(fields: Fields) -> str:
    try:
        return layout.token(fields.take("id", str))
    except InvalidRequestError as error:
        raise CorruptDataError(f"{fields.what}: its id is malformed") from error


def take_group(fields: Fields) -> int | None:
    """Take the cluster's group from its record or from a cookie."""
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
        "read_only": record.is_read_only or record.is_going,
        "storage_risk": record.storage_risk,
        "full": record.is_full,
        "high_permille": record.marks.high_permille,
        "low_permille": record.marks.low_permille,
        "leaving": record.is_leaving,
        "removed": record.is_removed,
        "labels": dict(record.labels),
        "store": record.store,
    }
    return strict_json.encode(BOOKIE_KIND, layout.bookie_key(record.bookie_id), value)


@lru_cache(1024)  # each placement or follower of a ledger reads all records again
def decode_bookie(bookie_id: str, data: bytes) -> BookieRecord:
    fields = strict_json.decode(BOOKIE_KIND, layout.bookie_key(bookie_id), data)
    if fields.take("id", str) != bookie_id:
        raise CorruptDataError(f"{fields.what} names another bookie")
    return BookieRecord(
        bookie_id=bookie_id,
        incarnation=fields.take("incarnation", str),
        url=fields.take("url", str),
        domain=fields.take("domain", str),
        is_read_only=fields.take("read_only", bool),
        storage_risk=fields.take("storage_risk", str),
        is_full=fields.take("full", bool),
        marks=_marks(fields),
        is_leaving=fields.take("leaving", bool),
        is_removed=fields.take("removed", bool),
        labels=_labels(fields),
        store=_store(fields),
    )


def _labels(fields: Fields) -> Labels:
    try:
        return require_labels(fields.mapping("labels", str))
    except ValueError as error:
        raise CorruptDataError(f"{fields.what}: {error}") from error


def _store(fields: Fields) -> str:
    name = fields.take("store", str)
    try:
        return name and require_store_name(name)
    except ValueError as error:
        raise CorruptDataError(f"{fields.what}: {error}") from error


def _marks(fields: Fields) -> Marks:
    try:
        return Marks(fields.take("high_permille", int), fields.take("low_permille", int))
    except ValueError as error:
        raise CorruptDataError(f"{fields.what}: its marks are malformed") from error


def encode_counter(key: str, value: int, nonce: str) -> bytes:
    return strict_json.encode(COUNTER_KIND, key, {"nonce": nonce, "next": value})


def decode_counter(key: str, data: bytes) -> int:
    return strict_json.decode(COUNTER_KIND, key, data).take("next", int)


# --- cookie --------------------------------------------------------------------------------------
# The cookie: the file that identifies a directory as a certain bookie.
#
# Every use of a bookie begins with its cookie. A wiped directory that is initialised again gets
# another incarnation, and so is another bookie, whose absences prove nothing (RB-09, RB-10, H18).
# The same path on another machine, or an empty mount point, is no bookie either (H40).


COOKIE_KIND = "cookie"


@dataclass(frozen=True, slots=True)
class Cookie:
    """Identity of a bookie.

    Attributes:
        cluster_id, incarnation: random, 32 hex digits.
        created_ms: for people only.
        group: of the cluster, as in its record; None for a single user.
    """

    cluster_id: str
    bookie_id: str
    incarnation: str
    created_ms: int = 0
    group: int | None = None


def encode_cookie(cookie: Cookie) -> bytes:
    """Return the bytes of the file ``layout.COOKIE``."""
    value = {
        "cluster": cookie.cluster_id,
        "bookie": cookie.bookie_id,
        "incarnation": cookie.incarnation,
        "created_ms": cookie.created_ms,
        "group": cookie.group,
    }
    return strict_json.encode(COOKIE_KIND, layout.COOKIE, value)


def decode_cookie(data: bytes) -> Cookie:
    """Decode the cookie in ``data``.

    Raises:
        CorruptDataError: damaged.
    """
    fields = strict_json.decode(COOKIE_KIND, layout.COOKIE, data)
    try:
        return Cookie(
            layout.token(fields.take("cluster", str)),
            layout.bookie_id(fields.take("bookie", str)),
            layout.token(fields.take("incarnation", str)),
            fields.take("created_ms", int),
            take_group(fields),
        )
    except InvalidRequestError as error:
        raise CorruptDataError(f"{fields.what} is malformed") from error
