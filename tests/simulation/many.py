"""Many schedules, on all cores, and the figures over them.

Each core runs every n-th seed, so what is run depends on the number of schedules alone, and a seed
means the same schedule wherever it is run.

They may be ended at any time: the schedules under way are finished, and what was run counts.
"""

import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from tests.simulation.faults import Kind
from tests.simulation.frame import Outcome
from tests.simulation.schedule import run_schedule

Run = Callable[[int], Outcome]
"""Runs the schedule of a seed; a function that has a name, so that it reaches other processes."""

OPERATIONS_MIN = 60
"""A schedule with fewer operations is run, but is not counted as one that shows something."""

_WORTHWHILE = 50
"""A process imports all for as long as it runs some ten schedules."""

_ENDING = (signal.SIGINT, signal.SIGTERM)
_SPAWN = get_context("spawn")


@dataclass
class Total:
    """Figures over many schedules.

    Attributes:
        long: schedules of ``OPERATIONS_MIN`` operations or more.
        faults: how often each kind of fault happened.
        failed: the first schedule that broke a promise.
    """

    schedules: int = 0
    long: int = 0
    steps: int = 0
    operations: int = 0
    acks: int = 0
    violations: int = 0
    faults: Counter[Kind] = field(default_factory=Counter)
    failed: Outcome | None = None

    def add(self, outcome: Outcome) -> None:
        self.schedules += 1
        self.long += outcome.operations >= OPERATIONS_MIN
        self.steps += outcome.steps
        self.operations += outcome.operations
        self.acks += outcome.acks
        self.faults.update(outcome.faults)
        if outcome.violation:
            self.violations += 1
            self.failed = self.failed or outcome

    def merge(self, other: "Total") -> None:
        for name in ("schedules", "long", "steps", "operations", "acks", "violations"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults.update(other.faults)
        self.failed = self.failed or other.failed

    def shown(self, seconds: float) -> str:
        """A summary of several lines; the first one says how much was run in ``seconds``."""
        lines = [
            f"{self.schedules} schedules, {self.long} of {OPERATIONS_MIN} operations or more, "
            f"{self.steps} steps, {self.operations} operations, "
            f"{self.operations / max(seconds, 1e-9):.0f} operations/s, {self.acks} acks, "
            f"{self.violations} violations, {seconds:.1f} s"
        ]
        lines += [f"  {self.faults[kind]:>8}  {kind.value}" for kind in Kind]
        return "\n".join(lines)


class End:
    """The word that it is enough, for all processes: a pipe that is closed.

    The handler of a signal can say it at any point, and so does a process that is killed.

    Attributes:
        signal_number: which one said it.
    """

    def __init__(self) -> None:
        self.heard, self._mouth = _SPAWN.Pipe(duplex=False)
        self.signal_number: int | None = None

    def tell(self) -> None:
        self._mouth.close()

    def on_signal(self, number: int, _frame: object) -> None:
        for each in _ENDING:
            signal.signal(each, signal.SIG_DFL)  # who says it twice does not want to wait
        self.signal_number = number
        self.tell()


@contextmanager
def told_by_signals() -> Iterator[End]:
    """Let SIGINT and SIGTERM tell the end; for the main thread only."""
    end = End()
    before = {number: signal.signal(number, end.on_signal) for number in _ENDING}
    try:
        yield end
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_many(
    first_seed: int,
    *,
    count: int | None = None,
    seconds: float | None = None,
    jobs: int = 1,
    run: Run = run_schedule,
    end: End | None = None,
) -> Total:
    """Run schedules until there are ``count`` or ``seconds`` are over, or, on a core, one fails.

    Or until the ``end`` is told.

    Raises:
        EOFError: a process died, or raised an error, which it has printed.
    """
    end = end or End()
    if jobs == 1:
        return _run_some(end.heard, run, first_seed, 1, count, seconds)
    with _signals_held_back():  # for good in those who are started: a terminal tells all of them
        shares = [
            _begin(end.heard, run, first_seed + job, jobs, _share(count, job, jobs), seconds)
            for job in range(jobs)
        ]
    total = Total()
    try:
        for share in shares:
            total.merge(share.recv())
    finally:
        end.tell()
    return total


def jobs_for(count: int) -> int:
    """On how many cores so many schedules are run; few are done sooner where all is imported."""
    return max(1, min(os.cpu_count() or 1, count // _WORTHWHILE))


@contextmanager
def _signals_held_back() -> Iterator[None]:
    resource_tracker.ensure_running()  # begun behind this it would let signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(
    heard: Connection, run: Run, first_seed: int, stride: int, *limits: float | None
) -> Connection:
    """Run a share in a process of its own; where its total comes from."""
    figures, sender = _SPAWN.Pipe(duplex=False)
    work = (sender, heard, run, first_seed, stride, *limits)
    _SPAWN.Process(target=_send_some, args=work).start()
    sender.close()  # the process has its own; without it nothing more can come
    return figures


def _send_some(sender: Connection, *work: Any) -> None:
    with suppress(BrokenPipeError):  # whoever wanted them is gone
        sender.send(_run_some(*work))


def _share(count: int | None, job: int, jobs: int) -> int | None:
    return None if count is None else (count - job + jobs - 1) // jobs


def _run_some(
    heard: Connection,
    run: Run,
    first_seed: int,
    stride: int,
    count: int | None,
    seconds: float | None,
) -> Total:
    total, began = Total(), time.perf_counter()
    with _quiet_clients():
        while (count is None or total.schedules < count) and not total.failed:
            if heard.poll() or (seconds is not None and time.perf_counter() - began >= seconds):
                break
            total.add(run(first_seed + stride * total.schedules))
    return total


@contextmanager
def _quiet_clients() -> Iterator[None]:
    """Thousands of simulated clients have nothing to tell the log; a failure has its story."""
    clients = logging.getLogger("bkspark")
    before = clients.level
    clients.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        clients.setLevel(before)
