"""The soak command: schedules after schedules, until the time is over or one of them fails.

Exits 1 if a schedule breaks a promise, and prints it step by step; its seed alone brings it back.
"""

import argparse
import sys
import time
from collections import Counter

from bkspark.testing.simulation.faults import Kind
from bkspark.testing.simulation.schedule import Outcome, run_schedule
from bkspark.testing.simulation.story import told


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bkspark.testing.simulation")
    parser.add_argument("--schedules", type=int, help="how many; 1000 unless --seconds is given")
    parser.add_argument("--seconds", type=float, help="how long")
    parser.add_argument("--seed", type=int, default=0, help="of the first schedule")
    parser.add_argument("--tell", action="store_true", help="print every step of every schedule")
    options = parser.parse_args(arguments)
    count = options.schedules or (None if options.seconds else 1000)
    began = time.perf_counter()
    total = Total()
    number = 0
    while count is None or number < count:
        if options.seconds and time.perf_counter() - began >= options.seconds:
            break
        outcome = run_schedule(options.seed + number)
        total.add(outcome)
        number += 1
        if options.tell or outcome.violation:
            print(told(outcome))
        if outcome.violation:
            break
    print(total.shown(time.perf_counter() - began))
    return 1 if total.violations else 0


class Total:
    """Figures over many schedules."""

    def __init__(self) -> None:
        self.schedules = self.steps = self.operations = self.acks = self.violations = 0
        self.faults: Counter[Kind] = Counter()

    def add(self, outcome: Outcome) -> None:
        self.schedules += 1
        self.steps += outcome.steps
        self.operations += outcome.operations
        self.acks += outcome.acks
        self.violations += bool(outcome.violation)
        self.faults.update(outcome.faults)

    def shown(self, seconds: float) -> str:
        lines = [
            f"{self.schedules} schedules, {self.steps} steps, {self.operations} operations, "
            f"{self.operations / max(seconds, 1e-9):.0f} operations/s, {self.acks} acks, "
            f"{self.violations} violations, {seconds:.1f} s"
        ]
        lines += [f"  {self.faults[kind]:>8}  {kind.value}" for kind in Kind]
        return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
