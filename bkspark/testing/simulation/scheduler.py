"""Who goes next: cooperative tasks, of which one at a time makes one step.

Rule: a task runs from one ``pause`` to its next without interruption; all choices are made here,
from the schedule's seed. A process is a group of tasks that crash and pause together.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from greenlet import getcurrent, greenlet

from bkspark.testing.faulty_os import Crash

STEPS_MAX = 6000
"""A schedule that is longer than this does not end."""


class Violation(BaseException):
    """The simulated system broke a promise; not an ``Exception``, so that no client handles it."""


class Process:
    """Tasks with one fate.

    Attributes:
        paused_until: the step before which none of its tasks goes on.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.paused_until = 0
        self.journals: set[str] = set()


class Task:
    """One line of control within a process.

    Attributes:
        ready: what it waits for; None if it only waits for its turn.
        can_time_out: whether it may go on without it.
        priority: higher goes first, under a priority schedule.
    """

    def __init__(
        self, process: Process, name: str, work: Callable[[], None], scheduler: greenlet
    ) -> None:
        self.process = process
        self.name = name
        self.ready: Callable[[], bool] | None = None
        self.can_time_out = False
        self.has_timed_out = False
        self.priority = 0.0
        self.greenlet = greenlet(work, scheduler)

    @property
    def is_done(self) -> bool:
        return bool(self.greenlet.dead)

    def is_alive(self) -> bool:
        return not self.is_done

    def can_go(self, step: int) -> bool:
        if self.process.is_dead:
            return True
        return self.process.paused_until <= step and (self.ready is None or self.ready())


@dataclass
class Policy:
    """How the next task is chosen.

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
        log: every step, in order: (step, process, task, what).
        time_out_rate: how often a wait with a time limit ends before its time.
    """

    policy: Policy
    step: int = 0
    time_out_rate: float = 0.0
    time_outs: int = 0
    log: list[tuple[int, str, str, str]] = field(default_factory=list)
    current: Task | None = None
    _tasks: list[Task] = field(default_factory=list)
    _greenlet: greenlet = field(default_factory=getcurrent)

    def spawn(self, process: Process, name: str, work: Callable[[], None]) -> Task:
        """A new task of ``process``; it begins when it is chosen."""

        def contained() -> None:
            try:
                if not process.is_dead:
                    work()
            except Crash:
                process.is_dead = True

        task = Task(process, name, contained, self._greenlet)
        task.priority = self.policy.random.random()
        self._tasks.append(task)
        return task

    def pause(self, ready: Callable[[], bool] | None = None, can_time_out: bool = False) -> bool:
        """Let others go on; returns whether ``ready`` holds now, False after a time-out.

        Raises:
            Crash: the process died meanwhile.
        """
        task = self.current
        assert task is not None
        if task.process.is_dead:
            raise Crash
        task.ready, task.can_time_out, task.has_timed_out = ready, can_time_out, False
        self._greenlet.switch()
        task.ready = None
        task.can_time_out = False
        if task.process.is_dead:
            raise Crash
        if task.has_timed_out:
            self.time_outs += 1
            self.note("does not wait any longer")
        return not task.has_timed_out

    def note(self, what: str) -> None:
        task = self.current
        who = (task.process.name, task.name) if task else ("-", "-")
        self.log.append((self.step, *who, what))

    def run(self) -> None:
        """Step until every task has ended.

        Raises:
            Violation: one was found, or the schedule does not end.
        """
        try:
            while self._tasks:
                self.step += 1
                if self.step > STEPS_MAX:
                    raise Violation(f"no end after {STEPS_MAX} steps (I9)")
                self._go(self._next())
        except BaseException:
            self._abandon()
            raise

    def _next(self) -> Task:
        able = [task for task in self._tasks if task.can_go(self.step)]
        if self.time_out_rate and self.policy.random.random() < self.time_out_rate:
            impatient = [task for task in self._tasks if task.can_time_out and task not in able]
            if impatient:
                return self._timed_out(impatient)
        if able:
            return self.policy.choose(able, self.step)
        paused = [task for task in self._tasks if task.process.paused_until > self.step]
        if paused:
            for task in paused:
                task.process.paused_until = 0
            return self._next()
        waiting = [task for task in self._tasks if task.can_time_out]
        if not waiting:
            names = ", ".join(f"{task.process.name}/{task.name}" for task in self._tasks)
            raise Violation(f"nothing can go on: {names} (I9)")
        return self._timed_out(waiting)

    def _timed_out(self, waiting: list[Task]) -> Task:
        task = self.policy.choose(waiting, self.step)
        task.has_timed_out = True
        return task

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
