"""A world of one ledger as a value: its metadata, its bookies, and who wants what of them.

Rule: two worlds that are equal go on alike. Machines, their states, the ledger's metadata and what
is asked for are kept once and known by a number, so a world is a few small tuples.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from tests.simulation.scheduler import Violation
from tests.simulation.states.specified import Seen, Shown, broken

T = TypeVar("T")
NOBODY, DEAD = -1, -2
"""In place of a writer: it has ended, or died."""


class Kept(Generic[T]):
    """Things by number, from 0; equal ones have one number."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._things: list[T] = []

    def number(self, thing: T, key: Hashable = None) -> int:
        """``key`` stands for a thing that cannot be compared."""
        known = self._numbers.setdefault(thing if key is None else key, len(self._things))
        if known == len(self._things):
            self._things.append(thing)
        return known

    def __getitem__(self, number: int) -> T:
        return self._things[number]

    def __len__(self) -> int:
        return len(self._things)


class Said(NamedTuple):
    """A record: its entry, and what it says.

    Attributes:
        confirmed: up to where all is.
        stored: what members had; left out where nobody asks for it.
    """

    first: int
    confirmed: int
    stored: tuple[int, ...] = ()


class Bookie(NamedTuple):
    """What a bookie holds.

    Attributes:
        is_fenced: whether it has the marker that fences the writer.
        records: what it has.
    """

    is_fenced: bool = False
    records: "frozenset[Said]" = frozenset()


class Copy(NamedTuple):
    """A record that the writer sends to a bookie.

    Attributes:
        place: of the bookie in the ensemble.
        bookie: by number.
        is_there: it is durable, and the post-check is to come.
    """

    place: int
    bookie: int
    said: Said
    is_there: bool = False


class Check(NamedTuple):
    """A metadata check; ``seen`` is what the store has answered, if it has."""

    ticket: Any
    seen: int = NOBODY


class Asked(NamedTuple):
    """What a recovery has asked for, by number; of a fence and a read the first may be done."""

    instruction: int
    is_half: bool = False
    shown: frozenset[Said] = frozenset()


class Recovery(NamedTuple):
    state: int
    asked: tuple[Asked, ...]


class World(NamedTuple):
    """All there is.

    Attributes:
        writer: its machine, or why there is none.
        change: what the writer asks for to change its ensemble.
        left: how many entries it has yet to add.
        acked: the last entry that was acknowledged.
        failures: how many bookies may still give no answer, once.
        jobs: of upkeep, which is said in ``upkeep``.
    """

    ledger: int
    bookies: tuple[Bookie, ...]
    writer: int
    copies: tuple[Copy, ...]
    check: Check | None
    change: Any
    left: int
    acked: int
    recoveries: tuple[Recovery, ...]
    failures: int
    may_die: bool
    jobs: tuple[Any, ...] = ()

    def with_bookie(self, number: int, bookie: Bookie) -> "World":
        return self._replace(bookies=(*self.bookies[:number], bookie, *self.bookies[number + 1 :]))

    def with_recovery(self, number: int, recovery: Recovery) -> "World":
        others = self.recoveries
        return self._replace(recoveries=(*others[:number], recovery, *others[number + 1 :]))

    def without_writer(self, why: int) -> "World":
        """Copies that are on their way may arrive all the same, and nobody looks after them."""
        on_their_way = tuple(copy for copy in self.copies if not copy.is_there)
        return self._replace(
            writer=why, copies=on_their_way, check=None, change=None, left=0, may_die=False
        )


@dataclass(frozen=True)
class Rules:
    """What whoever carries out instructions does, and the machines count on.

    Each may be broken, to see that it is noticed.
    """

    checks_behind_append: bool = True
    checks_before_append: bool = False
    fences: bool = True
    fences_before_reading: bool = True
    fences_the_empty: bool = True
    reads_metadata: bool = True
    compares_when_changing: bool = True


@dataclass(frozen=True)
class Scope:
    """What there is in a small world.

    Attributes:
        recoverers: clients that take the ledger over, each trying once.
        entries: that the writer adds, a record each.
        failures: answers of bookies that do not come, whatever became of what was asked.
        spares: bookies that no ensemble names at first.
        dies: whether the writer may die, anywhere.
        is_guaranteed: whether the ledger guarantees its write quorum; then its writer closes it.
    """

    quorum: Quorum
    recoverers: int = 1
    entries: int = 1
    failures: int = 0
    spares: int = 0
    dies: bool = False
    rules: Rules = Rules()
    is_guaranteed: bool = False

    def __str__(self) -> str:
        q = self.quorum
        return (
            f"{q.ensemble_size}/{q.write_quorum_size}/{q.ack_quorum_size}, {self.entries} entries, "
            f"{self.recoverers} recoverers, {self.failures} failures, {self.spares} spares"
            + ", the writer dies anywhere" * self.dies
            + ", guaranteed write quorum" * self.is_guaranteed
        )


def require(world: World, ledger: LedgerMetadata, numbers: dict[str, int]) -> None:
    """What must hold in every state.

    Raises:
        Violation: it does not.
    """
    is_closed = ledger.state is LedgerState.CLOSED
    end = ledger.last_entry_id if is_closed and ledger.last_entry_id is not None else world.acked
    if end < world.acked:
        raise Violation(f"closed at {end}, and entry {world.acked} is acknowledged (I1)")
    for entry in range(end + 1):
        members = [numbers[member.bookie_id] for member in Locations(ledger).holders(entry)]
        holders = [n for n in members if any(r[0] == entry for r in world.bookies[n].records)]
        is_full = is_closed or entry < ledger.last_fragment.first_entry_id
        quorum = (
            ledger.quorum.full
            if ledger.settings.guarantees_write_quorum and is_full
            else ledger.quorum
        )
        if len(holders) < quorum.ack_quorum_size:
            raise Violation(f"entry {entry} is on {len(holders)} of its bookies (I2, I3)")
    require_specified(world, ledger, numbers)


def require_specified(world: World, ledger: LedgerMetadata, numbers: dict[str, int]) -> None:
    """What the specifications demand, likewise; all that is sent is of term 1."""
    bookies = tuple(
        frozenset(Shown(1, *said[:2]) for said in bookie.records) for bookie in world.bookies
    )
    acked = frozenset((1, entry) for entry in range(world.acked + 1))
    for name in broken(Seen(ledger, bookies, acked, numbers)):
        raise Violation(f"{name} does not hold")
