"""Many schedules, on all cores, and the figures over them.

Each core runs every n-th seed, so what is run depends on the number of schedules alone, and a seed
means the same schedule wherever it is run.
"""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from bkspark.testing.simulation.faults import Kind
from bkspark.testing.simulation.schedule import Outcome, run_schedule

Run = Callable[[int], Outcome]
"""Runs the schedule of a seed; a function that has a name, so that it reaches other processes."""

OPERATIONS_MIN = 60
"""A schedule with fewer operations is run, but is not counted as one that shows something."""


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


def run_many(
    first_seed: int,
    *,
    count: int | None = None,
    seconds: float | None = None,
    jobs: int = 1,
    run: Run = run_schedule,
) -> Total:
    """Run schedules until there are ``count`` or ``seconds`` are over, or, on a core, one fails."""
    if jobs == 1:
        return _run_some(run, first_seed, 1, count, seconds)
    total = Total()
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        shares = [
            pool.submit(_run_some, run, first_seed + job, jobs, _share(count, job, jobs), seconds)
            for job in range(jobs)
        ]
        for share in shares:
            total.merge(share.result())
    return total


def _share(count: int | None, job: int, jobs: int) -> int | None:
    return None if count is None else (count - job + jobs - 1) // jobs


def _run_some(
    run: Run, first_seed: int, stride: int, count: int | None, seconds: float | None
) -> Total:
    total, began = Total(), time.perf_counter()
    while (count is None or total.schedules < count) and not total.failed:
        if seconds is not None and time.perf_counter() - began >= seconds:
            break
        total.add(run(first_seed + stride * total.schedules))
    return total
