"""What is done at night, beside all else, and proof that the simulation would notice."""

from collections import Counter
from functools import partial
from typing import Any

import pytest

from bkspark.admin.collecting.collection import collect
from bkspark.admin.maintenance import Report
from tests.simulation.many import run_many
from tests.simulation.schedule import run_schedule
from tests.simulation.story import told

from ..thorough import always  # noqa: TID252
from .mutants import changed
from .upkeep_mutants import UPKEEP_MUTANTS

SCHEDULES = 8
FIRST_SEEDS = range(5_000_000, 5_000_120, SCHEDULES)
SCHEDULES_MAX = 2_000
FAST = ["copies go before the record says who has left"]


@pytest.mark.parametrize("first", always([5_000_000], FIRST_SEEDS))
@pytest.mark.parametrize("loses_files", always([True], [True, False]))
def test_upkeep_beside_all_else_breaks_no_promise(first: int, loses_files: bool) -> None:
    run = partial(run_schedule, upkeep=True, loses_files=loses_files)
    total = run_many(first, count=SCHEDULES, run=run)
    assert total.failed is None, told(total.failed)


@pytest.mark.thorough
def test_collections_free_what_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: Counter[str] = Counter()

    def counting(*args: Any, **options: Any) -> Report:
        report = collect(*args, **options)
        freed.update({key: report.plan[key] for key in ("copies", "strays")})
        return report

    monkeypatch.setattr("tests.simulation.clients.collect", counting)
    for seed in range(15):
        assert not run_schedule(seed, upkeep=True).violation
    assert freed["copies"] > 1


@pytest.mark.parametrize("name", always(FAST, UPKEEP_MUTANTS))
def test_a_broken_rule_is_noticed(name: str) -> None:
    with changed(*UPKEEP_MUTANTS[name]):
        assert _is_noticed()


def _is_noticed() -> bool:
    return any(run_schedule(seed, upkeep=True).violation for seed in range(SCHEDULES_MAX))
