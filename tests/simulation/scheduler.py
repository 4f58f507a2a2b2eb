"""Who goes next: cooperative tasks, of which one at a time makes one step.

Rule: a task runs from one ``pause`` to its next without interruption; all choices are made here,
from the schedule's seed. A process is a group of tasks that crash and pause together.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from greenlet import getcurrent, greenlet

from bkspark.ledger.handles import grouping
from tests.kit.faulty import Crash
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.mutants import changed

STEPS_PER_SECOND = 5000
NEVER = 2**62
STEPS_MAX = 6000
"""A schedule that is longer than this does not end."""


class Violation(BaseException):
    """The simulated system broke a promise; not an ``Exception``, so that no client handles it."""


class Process:
    """Tasks with one fate.

    Attributes:
        works_alone: whether it does at once what it would start beside itself.
        paused_until: the step before which none of its tasks goes on.
        chance: what it draws from where each process has its own.
    """

    def __init__(self, name: str, *, works_alone: bool = False) -> None:
        self.name = name
        self.works_alone = works_alone
        self.is_dead = False
        self.paused_until = 0
        self.chance = Random(name)


class Task:
    """One line of control within a process.

    Attributes:
        key: its name in the schedule, the same whatever the others do.
        ready: what it waits for; None if it only waits for its turn.
        times_out_at: the step at which it goes on without it.
        pending: the operation that it makes when it goes on: (place, call, name); None if it
            makes none at once.
        asleep_until: the step before which it does not go on.
        priority: higher goes first, under a priority schedule.
    """

    def __init__(
        self, process: Process, name: str, work: Callable[[], None], scheduler: greenlet
    ) -> None:
        self.process = process
        self.name = name
        self.key = f"{process.name}/{name}"
        self.ready: Callable[[], bool] | None = None
        self.times_out_at = NEVER
        self.has_timed_out = False
        self.pending: tuple[str, str, str] | None = None
        self.asleep_until = 0
        self.priority = 0.0
        self.greenlet = greenlet(work, scheduler)

    @property
    def is_done(self) -> bool:
        return bool(self.greenlet.dead)

    def is_alive(self) -> bool:
        return not self.is_done

    def goes_on_at(self, step: int) -> int:
        """When it can go on by itself, if it cannot at ``step``."""
        wakes_at = max(self.process.paused_until, self.asleep_until)
        return wakes_at if wakes_at > step else self.times_out_at


class Chooser(Protocol):
    """How the next task is chosen."""

    random: Random

    def choose(self, tasks: list[Task], step: int, /) -> Task: ...


@dataclass
class Policy:
    """The next task is chosen by chance.

    Attributes:
        change_steps: None for a uniform choice; else those steps at which the one that goes
            first is put last (probabilistic concurrency testing).
    """

    random: Random
    change_steps: frozenset[int] | None = None
    _lowest: float = 0.0

    def choose(self, tasks: list[Task], step: int) -> Task:
        if self.change_steps is None:
            return tasks[int(self.random.random() * len(tasks))]
        chosen = max(tasks, key=lambda task: task.priority)
        if step in self.change_steps:
            self._lowest -= 1.0
            chosen.priority = self._lowest
            chosen = max(tasks, key=lambda task: task.priority)
        return chosen


@dataclass
class Scheduler:
    """Runs tasks until none is left.

    Attributes:
        step: counts moves, and what is slept through when nobody moves.
        log: every step, in order: (step, process, task, what).
        time_out_rate: how often a wait with a time limit ends before its time.
        steps_max: a schedule that is longer does not end.
        touch: told what the step looks at and changes.
    """

    policy: Chooser
    step: int = 0
    time_out_rate: float = 0.0
    steps_per_second: int = STEPS_PER_SECOND
    time_outs: int = 0
    log: list[tuple[int, str, str, str]] = field(default_factory=list)
    current: Task | None = None
    touch: Callable[[str, Access], None] = lambda _thing, _access: None
    moves: int = 0
    steps_max: int = STEPS_MAX
    _tasks: list[Task] = field(default_factory=list)
    _names: Counter[str] = field(default_factory=Counter)
    _greenlet: greenlet = field(default_factory=getcurrent)

    def spawn(self, process: Process, name: str, work: Callable[[], None]) -> Task:
        """A new task of ``process``; it begins when it is chosen."""

        def contained() -> None:
            self.touch(f"start of {task.key}", Access.WRITE)
            try:
                if not process.is_dead:
                    work()
            except Crash:
                process.is_dead = True
            self.touch(f"end of {task.key}", Access.WRITE)

        task = Task(process, name, contained, self._greenlet)
        task.key = self.unique(task.key)
        self.touch(f"start of {task.key}", Access.WRITE)
        task.priority = self.policy.random.random()
        self._tasks.append(task)
        return task

    def unique(self, name: str) -> str:
        """``name``, with a number from the second time on."""
        self._names[name] += 1
        return name if self._names[name] == 1 else f"{name} {self._names[name]}"

    def pause(self, ready: Callable[[], bool] | None = None, timeout: float | None = None) -> bool:
        """Let others go on; returns whether ``ready`` holds now, False after ``timeout`` seconds.

        Raises:
            Crash: the process died meanwhile.
        """
        task = self.current
        assert task is not None
        if task.process.is_dead:
            raise Crash
        task.ready, task.has_timed_out = ready, False
        if timeout is not None:
            task.times_out_at = self.step + int(timeout * self.steps_per_second)
        self._greenlet.switch()
        task.ready, task.times_out_at = None, NEVER
        if task.process.is_dead:
            raise Crash
        if task.has_timed_out:
            self.time_outs += 1
            self.note("does not wait any longer")
        return not task.has_timed_out

    def sleep(self, seconds: float) -> None:
        """In place of ``time.sleep``: let others go on for a while; nobody's clock is meant."""
        if self.current is not None:
            self.current.asleep_until = self.step + int(seconds * self.steps_per_second)
            self.pause()

    @property
    def tasks(self) -> Sequence[Task]:
        """Those that have not ended."""
        return self._tasks

    @property
    def seconds(self) -> float:
        """What a clock shows."""
        return self.step / self.steps_per_second

    def note(self, what: str) -> None:
        task = self.current
        who = (task.process.name, task.name) if task else ("-", "-")
        self.log.append((self.step, *who, what))

    def run(self) -> None:
        """Step until every task has ended.

        A writer's entries do not wait for more of them to share a record: so as many records as
        possible are in flight, also in schedules of few small entries.

        Raises:
            Violation: one was found, or the schedule does not end.
        """
        with changed((grouping, "GATHERED_BYTES_MAX", 0)):
            self._run()

    def _run(self) -> None:
        try:
            while self._tasks:
                self.step += 1
                self.moves += 1
                if self.moves > self.steps_max:
                    raise Violation(f"no end after {self.steps_max} steps (I9)")
                self._go(self._next())
        except BaseException:
            self._abandon()
            raise

    def _next(self) -> Task:
        step = self.step
        able = [
            task
            for task in self._tasks
            if task.process.is_dead
            or (
                task.process.paused_until <= step
                and task.asleep_until <= step
                and (task.times_out_at <= step or task.ready is None or task.ready())
            )
        ]
        if self.time_out_rate and self.policy.random.random() < self.time_out_rate:
            able = [t for t in self._tasks if t.times_out_at < NEVER and t not in able] or able
        if able:
            task = self.policy.choose(able, step)
            task.has_timed_out = task.ready is not None and not task.ready()
            return task
        moments = [moment for task in self._tasks if (moment := task.goes_on_at(step)) < NEVER]
        if not moments:
            names = ", ".join(f"{task.process.name}/{task.name}" for task in self._tasks)
            raise Violation(f"nothing can go on: {names} (I9)")
        self.step = min(moments)
        return self._next()

    def _go(self, task: Task) -> None:
        self.current = task
        task.greenlet.switch()
        self.current = None
        if task.is_done:
            self._tasks.remove(task)

    def _abandon(self) -> None:
        """End what is left, so that no task outlives its schedule."""
        for task in self._tasks:
            task.process.is_dead = True
        for task in self._tasks:
            if not task.is_done:
                self.current = task
                try:
                    task.greenlet.switch()
                except BaseException:
                    continue
        self._tasks.clear()
        self.current = None
