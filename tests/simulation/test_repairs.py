"""Missing copies are made again while everything may fail, and by the last repair for good.

Whoever gets a place has what anybody has of it; and what the last repair does not leave is whole.
"""

from functools import partial
from typing import Any

import pytest

from bkspark.admin.maintenance import Report
from bkspark.admin.repairing.repair_command import repair
from tests.simulation.many import run_many
from tests.simulation.schedule import run_schedule

from ..thorough import always  # noqa: TID252

SCHEDULES = 20
FIRST_SEEDS = range(3_000_000, 3_000_060, SCHEDULES)


@pytest.mark.parametrize("first", always([3_000_000], FIRST_SEEDS))
@pytest.mark.parametrize("loses_files", always([True], [True, False]))
def test_repairs_beside_all_else_break_no_promise(first: int, loses_files: bool) -> None:
    run = partial(run_schedule, repairs=True, loses_files=loses_files)
    total = run_many(first, count=SCHEDULES, run=run)
    assert total.failed is None, total.failed
    assert total.schedules == SCHEDULES


def test_repairs_do_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """They copy and replace, also beside others that do."""
    done: list[int] = []

    def counting(*args: Any, **options: Any) -> Report:
        report = repair(*args, **options)
        done.append(report.done["places"])
        return report

    monkeypatch.setattr("tests.simulation.clients.repair", counting)
    for seed in range(12):
        assert not run_schedule(seed, repairs=True, loses_files=True).violation
    assert sum(done) > 1
