"""Pages of logs are freed beside all who make and read them, and the simulation would notice."""

from functools import partial

import pytest

from tests.simulation.log_schedule import run_log_schedule
from tests.simulation.many import run_many
from tests.simulation.story import told

from ..thorough import always  # noqa: TID252
from .mutants import changed
from .page_freeing_mutants import PAGE_FREEING_MUTANTS

SCHEDULES = 8
FIRST_SEEDS = range(7_000_000, 7_000_040, SCHEDULES)
SCHEDULES_MAX = 300
BEGIN = {"pages of ledgers that stay go, and nobody who names them loses": 2400}
"""The first schedule, where that saves many; any other would do."""
FAST = ["pages of ledgers that stay go, whatever names them"]

run = partial(run_log_schedule, frees_pages=True)


@pytest.mark.parametrize("first", always(FIRST_SEEDS[:1], FIRST_SEEDS))
def test_no_schedule_breaks_a_promise(first: int) -> None:
    total = run_many(first, count=SCHEDULES, run=run)
    assert total.failed is None, told(total.failed)


@pytest.mark.parametrize("name", always(FAST, PAGE_FREEING_MUTANTS))
def test_a_broken_rule_is_noticed(name: str) -> None:
    first = BEGIN.get(name, 0)
    with changed(*PAGE_FREEING_MUTANTS[name]):
        assert any(run(seed).violation for seed in range(first, first + SCHEDULES_MAX))
