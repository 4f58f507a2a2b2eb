"""A small ledger that goes on in later terms as a value, and how large ``terms`` makes it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from bkspark.protocol.ledger.quorum import Quorum

TWO = Quorum(2, 2, 2)
Marker = tuple[str, int]
ToPrune = tuple[int, tuple[Marker, ...]]
Stored = tuple[int, int]
"""Term and entry of a record."""


class Bookie(NamedTuple):
    markers: frozenset[Marker]
    records: frozenset[Stored] = frozenset()


class Writer(NamedTuple):
    """One entry after the other; of the one under way, what became of it by bookie.

    Attributes:
        places: bookies by number: "" before it is sent, then "sent", "unfenced", "counted".
    """

    term: int
    entry: int
    places: tuple[str, ...]


class World(NamedTuple):
    """All there is.

    Attributes:
        asked: what each recovery has asked for, by number, with whether it is half done.
        prunes: bookie and markers left to remove, in order.
        acked: what was acknowledged.
    """

    ledger: int
    bookies: tuple[Bookie, ...]
    writers: tuple[Writer, ...]
    recoveries: tuple[tuple[int, tuple[tuple[int, bool], ...]], ...]
    prunes: tuple[ToPrune, ...] = ()
    acked: frozenset[Stored] = frozenset()


@dataclass(frozen=True)
class Scope:
    """How large it is, and which rule is broken.

    Attributes:
        entries: ids there are; each writer goes on to the last of them.
        takes: which record of an entry counts: the "owner's", the "lowest" or the "highest".
        fences: whether a recovery leaves its marker.
        permission_first: in which order markers are pruned.
        looks_for_fence_first: in which order a writer looks behind its record.
        compares: whether the ledger is opened by compare-and-set.
        goes_at_once: whether markers that nobody will look for go at once.
    """

    quorum: Quorum = TWO
    recoverers: int = 2
    entries: int = 1
    takes: str = "owner's"
    fences: bool = True
    permission_first: bool = True
    looks_for_fence_first: bool = True
    compares: bool = True
    goes_at_once: bool = True

    @property
    def is_in_order(self) -> bool:
        """Whether markers are made, pruned and looked for as they should be."""
        return self.fences and self.permission_first and self.looks_for_fence_first


def token(number: int) -> str:
    return f"{number:032x}"


def with_bookie(world: World, at: int, **changes: Any) -> World:
    bookies = list(world.bookies)
    bookies[at] = bookies[at]._replace(**changes)
    return world._replace(bookies=tuple(bookies))


def with_writer(world: World, number: int, writer: Writer) -> World:
    writers = (*world.writers[:number], writer, *world.writers[number + 1 :])
    return world._replace(writers=writers)


def with_recovery(world: World, number: int, recovery: Any) -> World:
    recoveries = (*world.recoveries[:number], recovery, *world.recoveries[number + 1 :])
    return world._replace(recoveries=recoveries)
