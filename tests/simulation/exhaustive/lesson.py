"""A schedule that is run to learn from it what its clients do (``programs``)."""

from collections.abc import Sequence

from bkspark.metadata import memory as metadata_memory
from bkspark.testing.faulty_cluster import METADATA
from tests.simulation.exhaustive.dependence import Access, Accesses, touch
from tests.simulation.exhaustive.knowledge import OVER, Knowledge
from tests.simulation.exhaustive.programs import (
    Local,
    Made,
    Programs,
    State,
    Waiting,
    process_of,
)
from tests.simulation.exhaustive.run import FATE_TASK, WRITER, ScopeRun
from tests.simulation.scheduler import Process


class Lesson:
    """One schedule that is run to learn from it, as its ``Searcher``.

    Args:
        begin: the tasks to choose first; behind them, whatever is not known yet.

    Attributes:
        states: the state before each step, and the last one.
    """

    def __init__(self, programs: Programs, begin: Sequence[str]) -> None:
        self.states: list[State] = []
        self._programs = programs
        self._begin = begin
        self._knowledge = Knowledge(programs.numbers)
        self._processes: dict[str, Process] = {}
        self._locals: dict[str, int] = {}
        self._contents: dict[str, int] = {}
        self._waiting: Waiting | None = None
        self._accesses: Accesses = {}
        self.run = ScopeRun(programs.scope, self, uses_symmetry=programs.uses_symmetry)
        self.run.storage.found = self._knowledge.found
        self.run.scheduler.give = self._knowledge.given
        self.run.goes_on = self._knowledge.goes_on

    def play(self) -> None:
        """Run it; the run must be in place.

        Raises:
            Violation: it broke a promise.
        """
        try:
            self.run.play()
            self._end_step()
        finally:
            self._programs.runs += 1
            self._programs.operations += self.run.storage.operations

    def choose(self, enabled: Sequence[str], /) -> str:
        if not self.states:
            self._look_around()
        else:
            self._end_step()
        number = len(self.states) - 1
        if number < len(self._begin):
            task = self._begin[number]
            if task not in enabled:
                raise AssertionError(f"step {number}: {task} cannot go on, only {enabled}")
        else:
            task = next((task for task in enabled if not self._is_known(task)), enabled[0])
        self._waiting = self._find(task)
        return task

    def touch(self, thing: str, access: Access, /) -> None:
        task = self.run.scheduler.current
        if task is not None and not task.process.is_dead:
            touch(self._accesses, thing, access)
            self._knowledge.touch(task, thing, access)

    def _look_around(self) -> None:
        for task in self.run.scheduler.tasks:
            self._processes[task.process.name] = task.process
        self._locals = {name: self._local(name) for name in self._processes}
        self._contents = {
            place: self._content(place) for place in (*self.run.storage.disks, METADATA)
        }
        self._programs.processes = list(self._locals)
        self._programs.places = list(self._contents)
        self._note_state()

    def _note_state(self) -> None:
        self.states.append(State(tuple(self._locals.values()), tuple(self._contents.values())))
        self._accesses = {}

    def _find(self, key: str) -> Waiting:
        tasks = self._programs.locals[self._locals[process_of(key)]].tasks
        return next(waiting for waiting in tasks if waiting.task == key)

    def _is_known(self, key: str) -> bool:
        waiting = self._find(key)
        content = self._contents[waiting.operation[0]] if waiting.operation else None
        return self._programs.known(self._locals[process_of(key)], waiting, content) is not None

    def _end_step(self) -> None:
        """Learn from the step that has just been made."""
        waiting = self._waiting
        assert waiting is not None
        process = process_of(waiting.task)
        place = waiting.operation[0] if waiting.operation else None
        before, local = self._locals[process], self._local(process)
        self._locals[process] = local
        content = changed = None
        if place is not None:
            content, changed = self._contents[place], self._content(place)
            self._contents[place] = changed
        accesses = tuple(sorted(self._accesses.items()))
        made = Made(local, changed if changed != content else None, accesses)
        self._programs.learn(before, waiting, content, made)
        if waiting.task == FATE_TASK:
            self._locals[WRITER] = self._local(WRITER)
        self._note_state()

    def _local(self, name: str) -> int:
        process, ledger = self._processes[name], self.run.oracle.ledgers[self.run.ledger_id]
        acked = ledger.acked if name == WRITER else -1
        tasks = [task for task in self.run.scheduler.tasks if task.process is process]
        if process.is_dead or not tasks:
            return self._programs.local((name, OVER), Local((), is_fresh=False, acked=acked))
        seen = tuple(
            Waiting(task.key, task.pending, task.ready is None or task.ready()) for task in tasks
        )
        local = Local(seen, self._knowledge.is_fresh(name), acked)
        return self._programs.local((name, self._knowledge.of(name)), local)

    def _content(self, place: str) -> int:
        if place == METADATA:
            files = [
                (key, held.value, held.version)
                for key, held in metadata_memory._stores["simulation"].items()
                if held is not None and key.startswith("ledgers/")
            ]
        else:
            disk = self.run.storage.disks.at(place)
            files = [(name, bytes(file.data), 0) for name, file in disk.files.items()]
        return self._programs.content(tuple(sorted(files)))
