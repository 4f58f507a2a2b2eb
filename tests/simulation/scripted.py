"""Schedules written down step by step, in place of a seed.

A script names operations in their order; whoever is not named waits. What a step names is done as
soon as its process can do it, with what that process has to do before on the same bookie; a step
that cannot be done any more, because a rule held, is left out. Behind the script all go on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from bkspark import environment
from bkspark.protocol.ledger.quorum import Quorum
from tests.kit.faulty import METADATA
from tests.simulation.clients import Clients
from tests.simulation.disks import URI
from tests.simulation.environment import SimulatedEnvironment
from tests.simulation.faults import Chance
from tests.simulation.oracle import Oracle
from tests.simulation.schedule import make_ledger
from tests.simulation.scheduler import Scheduler, Task, Violation
from tests.simulation.storage import Storage


@dataclass(frozen=True)
class Do:
    """``process`` goes on until it has made one operation.

    Attributes:
        where: index in the first ensemble, behind it the spares; None for the metadata store.
        call: for example ``append``, or ``size`` for a look at a marker.
        name: a part of the name.
    """

    process: str
    where: int | None
    call: str
    name: str = ""


@dataclass(frozen=True)
class Settle:
    """``process`` does what needs no bookie: it counts, checks the metadata and acknowledges."""

    process: str


@dataclass(frozen=True)
class Silent:
    """From now on ``process`` gets no answer from a bookie."""

    process: str
    where: int


@dataclass(frozen=True)
class Happens:
    """Something happens to a bookie: the name of a method of ``Disks``."""

    what: str
    where: int


Line = Do | Settle | Silent | Happens


@dataclass
class _Script:
    """Chooses whoever the next line names."""

    lines: list[Line]
    places: list[str]
    storage: Storage
    random: Random = field(default_factory=lambda: Random(0))

    def choose(self, tasks: list[Task], _step: int) -> Task:
        while self.lines:
            task = self._of_line(self.lines[0], tasks)
            if task is not None:
                return task
            if self.lines:
                self.lines.pop(0)
        return tasks[0]

    def _of_line(self, line: Line, tasks: list[Task]) -> Task | None:
        if isinstance(line, Silent):
            self.storage.silent.add((line.process, self.places[line.where]))
            return None
        if isinstance(line, Happens):
            getattr(self.storage.disks, line.what)(self.places[line.where])
            return None
        mine = [task for task in reversed(tasks) if task.process.name == line.process]
        if isinstance(line, Settle):
            return next(filter(_is_settling, mine), None)
        place = METADATA if line.where is None else self.places[line.where]
        for task in mine:
            if task.pending is not None:
                at, call, name = task.pending
                if (at, call) == (place, line.call) and line.name in name:
                    self.lines.pop(0)
                    return task
        ways: Sequence[Callable[[Task], bool]] = (
            lambda task: task.pending is None,
            lambda task: task.pending is not None and task.pending[0] == place,
            lambda task: task.pending is not None and task.pending[0] == METADATA,
            lambda _task: line.where is None,
        )
        return next((task for way in ways for task in mine if way(task)), None)


def _is_settling(task: Task) -> bool:
    return task.pending is None or task.pending[:2] == (METADATA, "is_current")


def play(
    lines: Sequence[Line],
    quorum: Quorum,
    *,
    entries: int = 1,
    spares: int = 0,
    closes: bool = False,
    recoverers: int = 1,
) -> str:
    """Run a script and everything behind it; returns the promise that was broken, or nothing.

    Only losses count, not whether an ack had its reasons.
    """
    script = _Script([], [], None)  # type: ignore[arg-type]
    scheduler = Scheduler(script)
    oracle = Oracle(URI, checks_reasons=False)
    of_clients = Random("client 0")
    simulated = SimulatedEnvironment(scheduler, lambda: of_clients, has_time=False)
    with environment.use(simulated):
        chance = Chance(Random(0), losses_left=0, is_over=True)
        storage = Storage(scheduler, chance, oracle, quorum.ensemble_size + spares)
        simulated.before = storage.before
        try:
            created = make_ledger(quorum, oracle)
            first = [member.bookie_id for member in created.seen.value.last_fragment.ensemble]
            script.storage, script.lines = storage, list(lines)
            script.places = first + [one for one in storage.disks if one not in first]
            clients = Clients(scheduler, oracle, Random(0), URI)
            clients.write_one("writer", created, closes=closes, count=entries)
            for number in range(recoverers):
                clients.recover(f"recovery-{number + 1}", 0, tries=1, delays=(0,))
            scheduler.run()
        except Violation as violation:
            return str(violation)
        finally:
            storage.clear()
    return ""
