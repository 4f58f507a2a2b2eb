"""A small ledger that goes on in later terms as a value, and how large ``terms`` makes it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from bkspark.protocol.ledger.quorum import Quorum

TWO = Quorum(2, 2, 2)
Marker = tuple[str, int]
ToPrune = tuple[int, tuple[Marker, ...]]
Entry = tuple[int, int]
"""Of a term, and its id."""
Stored = tuple[int, int, int]
"""Term and entry of a record, and whose journal it is in: its writer's, 0, or a recovery's, by its
term."""


class Bookie(NamedTuple):
    """What a bookie has.

    Attributes:
        markers: fences and permissions by their terms, and "journal" by the term of a writer who
            has one.
    """

    markers: frozenset[Marker]
    records: frozenset[Stored] = frozenset()


class Writer(NamedTuple):
    """One entry after the other; of the one under way, what became of it by bookie.

    Attributes:
        places: bookies by number: "" before it is sent, then "sent", "unfenced", "counted"; "away"
            is who was too late for an ack: it stores in order, so nothing more.
        had: the last entry that each was known to have when the one before was acknowledged.
    """

    term: int
    entry: int
    places: tuple[str, ...]
    had: tuple[int, ...] = ()


class World(NamedTuple):
    """All there is.

    Attributes:
        asked: what each recovery has asked for, by number, with whether it is half done.
        prunes: bookie and markers left to remove, in order.
        acked: what was acknowledged.
        lost: bookies that have lost all that they had of the ledger.
        said: what records say that bookies had, where the ledger guarantees its write quorum.
    """

    ledger: int
    bookies: tuple[Bookie, ...]
    writers: tuple[Writer, ...]
    recoveries: tuple[tuple[int, tuple[tuple[int, bool], ...]], ...]
    prunes: tuple[ToPrune, ...] = ()
    acked: frozenset[Entry] = frozenset()
    lost: frozenset[int] = frozenset()
    said: frozenset[tuple[Entry, tuple[int, ...]]] = frozenset()


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
        forgets: which journals go: "his" who owns nothing, "nobody's", as on object storage, or all
            of his "term's".
        losses: so many bookies may lose all that they have of the ledger, at any time.
        is_guaranteed: whether the ledger guarantees its write quorum.
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
    forgets: str = "his"
    losses: int = 0
    is_guaranteed: bool = False

    @property
    def is_in_order(self) -> bool:
        """Whether markers are made, pruned and looked for as they should be, and records read."""
        are_looked_for = self.fences and self.permission_first and self.looks_for_fence_first
        return are_looked_for and self.takes == "owner's" and self.forgets != "term's"


def begun(term: int) -> frozenset[Marker]:
    """What a bookie takes for a writer."""
    return frozenset({("permission", term), ("journal", term)})


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
