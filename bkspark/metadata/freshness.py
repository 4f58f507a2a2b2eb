"""How new the answer to a look at the metadata must be.

The default is *now*: the answer is at least as new as each change that was acknowledged before the
look began (linearizable). Files and memory give that at no extra cost, and ignore this module. An
object store takes a request for each look, and repeats what was read in a ``from_here`` block.
ZooKeeper needs a write of its quorum for it, so a client says where less is enough:

- ``from_here()``: at least as new as the begin of the block, and as each earlier change of the
  client's own. One quorum write serves all looks of the block, and so does a change of the client's
  own, made in the block before the look.
- ``at(begin())``: the same in several blocks of one operation, between which others look as of now.
- ``from_begin()``: the same, as of the block around it if there is one. For parts of operations.
- ``synced()``: as ``from_here``, unless the leader was deposed in its sleep and does not know it
  yet (H35). The answer is late then, never wrong. For readers that look again and again.
- ``recent()``: a moment ago; the client's server tells it of changes, which takes no request. A
  reader that waits for entries looks so.
- ``guess()``: any version. Only a compare-and-set that refuses an old version may build on it.

Rule. What decides something without a compare-and-set is looked up *now* or ``from_here``: the
metadata check of a writer (R4), fencing and recovery (H35).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum, auto
from itertools import count


class Kind(Enum):
    """Which of the module's functions asked."""

    FROM_HERE = auto()
    SYNCED = auto()
    RECENT = auto()
    GUESS = auto()


@dataclass(frozen=True, slots=True)
class Freshness:
    """How new an answer must be.

    Attributes:
        tick: the begin of the block (``tick``).
    """

    kind: Kind
    tick: int


_ticks = count(1)
_needed: ContextVar[Freshness | None] = ContextVar("metadata_freshness", default=None)


def tick() -> int:
    """Return a number above all numbers returned before: a clock that only orders."""
    return next(_ticks)


def needed() -> Freshness | None:
    """Return how new an answer must be; None: as of now."""
    return _needed.get()


@contextmanager
def at(given: Freshness | None) -> Iterator[None]:
    """Look as another task does, whose ``needed`` returned ``given``."""
    token = _needed.set(given)
    try:
        yield
    finally:
        _needed.reset(token)


def begin() -> Freshness:
    """Return how new the answers of ``from_here`` are that begins here."""
    return Freshness(Kind.FROM_HERE, tick())


@contextmanager
def now() -> Iterator[None]:
    """Look as of now inside the block, whatever holds around it."""
    with at(None):
        yield


@contextmanager
def from_here() -> Iterator[None]:
    """Accept answers as of the begin of the block."""
    with at(begin()):
        yield


@contextmanager
def from_begin() -> Iterator[None]:
    """Accept answers as of the begin of the ``from_here`` around the block, or of the block."""
    found = needed()
    if found is not None and found.kind is Kind.FROM_HERE:
        yield
        return
    with from_here():
        yield


@contextmanager
def synced() -> Iterator[None]:
    """Accept answers as of the begin of the block, or late ones of a deposed leader."""
    with at(Freshness(Kind.SYNCED, tick())):
        yield


@contextmanager
def recent() -> Iterator[None]:
    """Accept what the client knows; its server tells it of changes."""
    with at(Freshness(Kind.RECENT, 0)):
        yield


@contextmanager
def guess() -> Iterator[None]:
    """Accept any version of a record."""
    with at(Freshness(Kind.GUESS, 0)):
        yield


def may_lag() -> bool:
    """Return whether an answer may be older than the last acknowledged change."""
    found = needed()
    return found is not None and found.kind is not Kind.FROM_HERE
