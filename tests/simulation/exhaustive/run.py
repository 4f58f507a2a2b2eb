"""One schedule of a small scope, with the real client code: a writer and those who take over.

Scope: one writer appends one entry and, maybe, closes; one or two recoverers try once each: one
that is refused or displaced ends, so terms do not rise for ever. One operation at a time, in the
order that a search wants. The writer may die anywhere, and a bookie may swallow its answer, so that
it changes the ensemble. What else can fail is left to the schedules by chance.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import Protocol, TypeVar

from bkspark import environment
from bkspark.errors import BookKeeperError
from bkspark.ledger.recovery.recoverer import FIRST_PAUSE_SECONDS
from bkspark.metadata import memory as metadata_memory
from bkspark.metadata.contract import VersionedBytes
from bkspark.protocol.ledger.metadata import Member
from bkspark.protocol.ledger.quorum import Quorum
from tests.simulation.clients import Clients
from tests.simulation.disks import URI
from tests.simulation.environment import SimulatedEnvironment
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.exhaustive.explorer import RedundantError
from tests.simulation.exhaustive.symmetry import Turns, is_too_early
from tests.simulation.faults import Chance
from tests.simulation.frame import Outcome
from tests.simulation.oracle import Oracle
from tests.simulation.schedule import make_ledger
from tests.simulation.scheduler import Process, Scheduler, Task
from tests.simulation.storage import Storage

T = TypeVar("T")

_WAIT_SECONDS_MIN = FIRST_PAUSE_SECONDS / 2
"""Who lost a compare-and-set a few times sleeps for less."""

WRITER = "writer"
FATE = "fate"
FATE_TASK = f"{FATE}/main"
"""Its one step is the writer's death."""

_STEPS_PER_SECOND = 10**9
"""No time passes while anybody can go on: a limit ends a wait only where nothing else could."""


@dataclass(frozen=True)
class Scope:
    """What is exhausted.

    Attributes:
        recoverers: clients that take the ledger over, each trying once.
        dies: whether the writer may die, anywhere.
        changes: whether the first bookie swallows the writer's answer, and there is a spare.
        closes: whether the writer closes the ledger.
    """

    quorum: Quorum
    recoverers: int = 1
    dies: bool = False
    changes: bool = False
    closes: bool = False

    def __str__(self) -> str:
        q = self.quorum
        parts = [f"{q.ensemble_size}/{q.write_quorum_size}/{q.ack_quorum_size}, one entry"]
        parts += ["one ensemble change"] * self.changes
        parts += ["closed by its writer"] * self.closes
        parts += ["the writer dies anywhere"] * self.dies
        parts.append(f"{self.recoverers} recoverer" + "s" * (self.recoverers != 1))
        return ", ".join(parts)

    @property
    def ranks(self) -> dict[str, int]:
        """The recoverers' processes, in the order in which the first of them takes over."""
        return {f"recovery-{number + 1}": number for number in range(self.recoverers)}


@dataclass
class Exhausted:
    """What was seen of a scope.

    Attributes:
        is_complete: there is no more; False if it ended at a limit or at a violation.
        ends: different states of all storage behind which nothing happens any more.
        shapes: the same, for bookies that are alike and clients without their names.
        failed: the schedule that broke a promise, if one did.
    """

    scope: Scope
    operations: int = 0
    ends: int = 0
    shapes: set[Hashable] = field(default_factory=set)
    is_complete: bool = False
    failed: Outcome | None = None


class Searcher(Protocol):
    """Who decides what comes next."""

    def choose(self, enabled: Sequence[str], /) -> str: ...

    def touch(self, thing: str, access: Access, /) -> None: ...


@dataclass
class _Choices:
    """Asks the searcher; those who are dead go first and do nothing, and it is not told.

    Attributes:
        is_too_early: whether a task must not go on yet.
    """

    searcher: Searcher | None
    is_too_early: Callable[[Task], bool] = lambda _task: False
    random: Random = field(default_factory=lambda: Random(0))

    def choose(self, tasks: list[Task], _step: int) -> Task:
        dead = next((task for task in tasks if task.process.is_dead), None)
        if dead is not None or self.searcher is None:
            return dead or tasks[0]
        by_key = {task.key: task for task in tasks if not self.is_too_early(task)}
        if not by_key:
            raise RedundantError
        return by_key[self.searcher.choose(list(by_key))]


class _Hasty(SimulatedEnvironment):
    """Nobody sleeps in it. Who would shortly, as somebody got ahead of it, goes on at once; who
    would let others finish has been displaced, and gives up."""

    def __init__(self, scheduler: Scheduler, chance: Callable[[], Random]) -> None:
        super().__init__(scheduler, chance, has_time=False)

    def sleep(self, seconds: float) -> None:
        if seconds >= _WAIT_SECONDS_MIN:
            raise BookKeeperError("displaced, and this scope does not wait")


class _Storage(Storage):
    """What a process draws by chance follows from the metadata that it saw last.

    So it does not depend on how often it drew before, and fewer ends differ by names alone.
    """

    def operate(
        self,
        place: str,
        call: str,
        name: str,
        effect: Callable[[], T],
        half_effect: Callable[[], None] | None,
    ) -> T:
        task = self._scheduler.current
        result = super().operate(place, call, name, effect, half_effect)
        if task is not None and isinstance(result, VersionedBytes):
            task.process.chance = Random(f"{task.key} saw {result.version}")
        return result


class ScopeRun:
    """One schedule of a scope."""

    def __init__(self, scope: Scope, searcher: Searcher, *, uses_symmetry: bool) -> None:
        self.scope = scope
        self._uses_symmetry = uses_symmetry
        self._alike: Sequence[str] = ()
        self._setup = Process("setup")
        self._choices = _Choices(searcher)
        self.scheduler = Scheduler(self._choices, steps_per_second=_STEPS_PER_SECOND)
        self.scheduler.touch = searcher.touch
        self.oracle = Oracle(URI)
        self._environment = _Hasty(self.scheduler, self._chance)
        with environment.use(self._environment):
            self.storage = _Storage(
                self.scheduler,
                Chance(Random(0), losses_left=0, is_over=True),
                self.oracle,
                scope.quorum.ensemble_size + scope.changes,
            )
        self._environment.before = self.storage.before
        self._clients = Clients(self.scheduler, self.oracle, Random(0), URI)
        self.ledger_id = -1

    def _chance(self) -> Random:
        task = self.scheduler.current
        return (task.process if task else self._setup).chance

    @contextmanager
    def in_place(self) -> Iterator[None]:
        with environment.use(self._environment):
            try:
                yield
            finally:
                self.storage.clear()

    def play(self) -> None:
        scope = self.scope
        created = make_ledger(scope.quorum, self.oracle)
        ledger = created.seen.value
        self.ledger_id = ledger.ledger_id
        written = ledger.last_fragment.ensemble[: scope.quorum.write_quorum_size]
        if scope.changes:
            self.storage.losing.add((WRITER, written[0].bookie_id))
        self._alike = [member.bookie_id for member in written[scope.changes :]]
        if self._uses_symmetry:
            self._keep_order()
        writer = self._clients.write_one(WRITER, created, closes=scope.closes).process
        for name in scope.ranks:
            self._clients.recover(name, self.ledger_id, tries=1, delays=(0,))
        if scope.dies:
            self.scheduler.spawn(Process(FATE), "main", lambda: self._kill(writer))
        self.scheduler.run()

    def _keep_order(self) -> None:
        """Whoever is alike comes in one order only."""
        turns = Turns(self.scheduler, WRITER, self._alike)
        touch = self.scheduler.touch

        def touch_in_turn(thing: str, access: Access) -> None:
            turns.wait(thing, access)
            touch(thing, access)

        self.scheduler.touch = touch_in_turn
        ranks = self.scope.ranks
        ledger = self.oracle.ledgers[self.ledger_id]
        self._choices.is_too_early = lambda task: is_too_early(
            ranks.get(task.process.name, 0), task.pending, ledger.metadata
        )

    def _kill(self, process: Process) -> None:
        self.scheduler.touch(f"life of {process.name}", Access.WRITE)
        self.scheduler.note(f"{process.name} dies")
        process.is_dead = True

    def end(self) -> bytes:
        """A digest of all storage."""
        found = [
            f"{key} {held}" for key, held in sorted(metadata_memory._stores["simulation"].items())
        ]
        for place in self.storage.disks:
            files = self.storage.disks.at(place).files
            found += [f"{place} {name} {bytes(files[name].data)!r}" for name in sorted(files)]
        return blake2b("\n".join(found).encode(), digest_size=16).digest()

    def shape(self) -> Hashable:
        """What all storage is like, without the names of those that are alike."""

        def role(bookie_id: str) -> str:
            return "alike" if bookie_id in self._alike else bookie_id

        def members(ensemble: Sequence[Member]) -> tuple[str, ...]:
            return tuple(role(member.bookie_id) for member in ensemble)

        ledger = self.oracle.ledgers[self.ledger_id].metadata
        fragments = tuple((f.first_entry_id, f.term, members(f.ensemble)) for f in ledger.fragments)
        disks = []
        for place in self.storage.disks:
            files = self.storage.disks.at(place).files
            sizes = sorted((name.partition("-")[0], len(file.data)) for name, file in files.items())
            disks.append((role(place), tuple(sizes)))
        return (ledger.state, ledger.term, ledger.last_entry_id, fragments, tuple(sorted(disks)))

    def finish(self) -> None:
        """The ledger can be closed, and everything in it read."""
        self._choices.searcher = None
        self.scheduler.touch = lambda _thing, _access: None
        self._clients.recover("last-recovery", self.ledger_id, must_succeed=True, delays=(0,))
        self.scheduler.run()
        self._clients.read("last-reader", self.ledger_id, must_succeed=True, delays=(0,))
        self.scheduler.run()

    def outcome(self, violation: str) -> Outcome:
        return Outcome(
            -1,
            violation,
            steps=self.scheduler.moves,
            operations=self.storage.operations,
            acks=self.oracle.acks,
            setting=str(self.scope),
            log=self.scheduler.log,
        )
