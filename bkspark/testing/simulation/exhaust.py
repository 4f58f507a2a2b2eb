"""All schedules of a small scope, with the real client code: a writer and those who take over.

Scope: one writer appends one entry and, maybe, closes; one or two recoverers try once each, one
operation at a time, in every order that can make a difference. The writer may die anywhere, and a
bookie may swallow its answer, so that it changes the ensemble. What else can fail is left to the
schedules by chance.

Behind each end that was not seen before a last recovery must close the ledger, and a reader must
read all of it.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random

from bkspark.client.cluster import Cluster
from bkspark.client.recovery import recover
from bkspark.metadata import memory as metadata_memory
from bkspark.protocol.ledger import LedgerMetadata, Member
from bkspark.protocol.quorum import Quorum
from bkspark.testing.simulation.bounded import BoundedExplorer
from bkspark.testing.simulation.clients import Clients
from bkspark.testing.simulation.dependence import Access
from bkspark.testing.simulation.disks import URI
from bkspark.testing.simulation.explorer import Explorer, RedundantError
from bkspark.testing.simulation.faults import Chance
from bkspark.testing.simulation.oracle import Oracle
from bkspark.testing.simulation.runtime import determined, replaced
from bkspark.testing.simulation.schedule import Outcome, make_ledger
from bkspark.testing.simulation.scheduler import Process, Scheduler, Task, Violation
from bkspark.testing.simulation.storage import Storage
from bkspark.testing.simulation.symmetry import Turns, is_too_early

Searcher = Explorer | BoundedExplorer

_WRITER = "writer"
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
        interruptions: how often processes may interrupt one another; None for every schedule.
    """

    quorum: Quorum
    recoverers: int = 1
    dies: bool = False
    changes: bool = False
    closes: bool = False
    interruptions: int | None = None

    def __str__(self) -> str:
        q = self.quorum
        parts = [f"{q.ensemble_size}/{q.write_quorum_size}/{q.ack_quorum_size}, one entry"]
        parts += ["one ensemble change"] * self.changes
        parts += ["closed by its writer"] * self.closes
        parts += ["the writer dies anywhere"] * self.dies
        parts.append(f"{self.recoverers} recoverer" + "s" * (self.recoverers != 1))
        parts += [f"at most {self.interruptions} interruptions"] * (self.interruptions is not None)
        return ", ".join(parts)


@dataclass
class Exhaustion:
    """What exhausting a scope showed.

    Attributes:
        is_complete: every schedule was run; False if it ended at its limit or at a violation.
        ends: different states of all storage at the end of schedules.
        shapes: the same, for bookies that are alike and clients without their names.
        failed: the schedule that broke a promise, if one did.
    """

    scope: Scope
    schedules: int = 0
    redundant: int = 0
    operations: int = 0
    ends: int = 0
    shapes: set[Hashable] = field(default_factory=set)
    is_complete: bool = False
    failed: Outcome | None = None

    def __str__(self) -> str:
        how = "all" if self.is_complete else "not all"
        return (
            f"{self.scope}: {self.schedules} schedules ({how}; {self.redundant} more given up as "
            f"the same), {self.operations} operations, {self.ends} different ends"
        )


def exhaust(scope: Scope, limit: int | None = None, *, uses_symmetry: bool = True) -> Exhaustion:
    """Run every schedule of ``scope``, or the first ``limit``; ends at the first violation.

    Args:
        uses_symmetry: one stands for all that are the same but for names (``symmetry``); never
            where interruptions are counted.
    """
    result = Exhaustion(scope)
    seen: set[bytes] = set()

    def execute(explorer: Searcher) -> None:
        run = _Run(scope, explorer, uses_symmetry and scope.interruptions is None)
        try:
            with run.in_place():
                run.play()
                end = run.end()
                result.shapes.add(run.shape())
                if end not in seen:
                    seen.add(end)
                    run.finish()
        except Violation as violation:
            result.failed = run.outcome(str(violation))
            raise
        finally:
            result.operations += run.storage.operations

    explorer: Searcher
    if scope.interruptions is None:
        explorer = Explorer(execute, frozenset({"fate/main"}))
    else:
        explorer = BoundedExplorer(execute, scope.interruptions)
    try:
        result.is_complete = explorer.run(limit)
    except Violation:
        result.is_complete = False
    result.schedules, result.redundant, result.ends = (
        explorer.schedules,
        explorer.redundant,
        len(seen),
    )
    return result


@dataclass
class _Choices:
    """Asks the explorer; those who are dead go first and do nothing, and it is not told.

    Attributes:
        is_too_early: whether a task must not go on yet.
    """

    explorer: Searcher | None
    is_too_early: Callable[[Task], bool] = lambda _task: False
    random: Random = field(default_factory=lambda: Random(0))

    def choose(self, tasks: list[Task], _step: int) -> Task:
        dead = next((task for task in tasks if task.process.is_dead), None)
        if dead is not None or self.explorer is None:
            return dead or tasks[0]
        by_key = {task.key: task for task in tasks if not self.is_too_early(task)}
        if not by_key:
            raise RedundantError
        return by_key[self.explorer.choose(list(by_key))]


class _Run:
    """One schedule of a scope."""

    def __init__(self, scope: Scope, explorer: Searcher, uses_symmetry: bool) -> None:
        self._scope = scope
        self._uses_symmetry = uses_symmetry
        self._alike: Sequence[str] = ()
        self._setup = Process("setup")
        self._choices = _Choices(explorer)
        self._scheduler = Scheduler(self._choices, steps_per_second=_STEPS_PER_SECOND)
        self._scheduler.touch = explorer.touch
        self._oracle = Oracle(URI)
        with determined(0, chance=self._chance):
            self.storage = Storage(
                self._scheduler,
                Chance(Random(0), losses_left=0, is_over=True),
                self._oracle,
                scope.quorum.ensemble_size + scope.changes,
            )
        self._clients = Clients(self._scheduler, self._oracle, Random(0), URI)
        self._ledger_id = -1

    def _chance(self) -> Random:
        task = self._scheduler.current
        return (task.process if task else self._setup).chance

    @contextmanager
    def in_place(self) -> Iterator[None]:
        once = [(recover, "TAKEOVERS_MAX", 1), (recover, "wait_for_others", _look_once)]
        with determined(0, chance=self._chance), self.storage.installed(), replaced(once):
            try:
                yield
            finally:
                self.storage.clear()

    def play(self) -> None:
        scope = self._scope
        seen = make_ledger(scope.quorum, self._oracle)
        self._ledger_id = seen.value.ledger_id
        written = seen.value.last_fragment.ensemble[: scope.quorum.write_quorum_size]
        if scope.changes:
            self.storage.losing.add((_WRITER, written[0].bookie_id))
        self._alike = [member.bookie_id for member in written[scope.changes :]]
        if self._uses_symmetry:
            self._keep_order()
        writer = self._clients.write_one(_WRITER, seen, closes=scope.closes).process
        for number in range(scope.recoverers):
            self._clients.recover(f"recovery-{number + 1}", self._ledger_id, tries=1, delays=(0,))
        if scope.dies:
            self._scheduler.spawn(Process("fate"), "main", lambda: self._kill(writer))
        self._scheduler.run()

    def _keep_order(self) -> None:
        """Whoever is alike comes in one order only."""
        turns = Turns(self._scheduler, _WRITER, self._alike)
        touch = self._scheduler.touch

        def touch_in_turn(thing: str, access: Access) -> None:
            turns.before(thing, access)
            touch(thing, access)

        self._scheduler.touch = touch_in_turn
        ranks = {f"recovery-{rank + 1}": rank for rank in range(self._scope.recoverers)}
        ledger = self._oracle.ledgers[self._ledger_id]
        self._choices.is_too_early = lambda task: is_too_early(task, ranks, ledger.metadata)

    def _kill(self, process: Process) -> None:
        self._scheduler.touch(f"life of {process.name}", Access.WRITE)
        self._scheduler.note(f"{process.name} dies")
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

        ledger = self._oracle.ledgers[self._ledger_id].metadata
        fragments = tuple((f.first_entry_id, f.term, members(f.ensemble)) for f in ledger.fragments)
        disks = []
        for place in self.storage.disks:
            files = self.storage.disks.at(place).files
            sizes = sorted((name.partition("-")[0], len(file.data)) for name, file in files.items())
            disks.append((role(place), tuple(sizes)))
        return (ledger.state, ledger.term, ledger.last_entry_id, fragments, tuple(sorted(disks)))

    def finish(self) -> None:
        """The ledger can be closed, and everything in it read."""
        self._choices.explorer = None
        self._scheduler.touch = lambda _thing, _access: None
        self._clients.recover("last-recovery", self._ledger_id, must_succeed=True, delays=(0,))
        self._scheduler.run()
        self._clients.read("last-reader", self._ledger_id, must_succeed=True, delays=(0,))
        self._scheduler.run()

    def outcome(self, violation: str) -> Outcome:
        return Outcome(
            -1,
            violation,
            steps=self._scheduler.moves,
            operations=self.storage.operations,
            acks=self._oracle.acks,
            setting=str(self._scope),
            log=self._scheduler.log,
        )


def _look_once(cluster: Cluster, ledger_id: int, _displaced_before: int) -> LedgerMetadata:
    """In place of a recoverer's wait for the one that displaced it, and of trying again."""
    return cluster.ledger(ledger_id).value
