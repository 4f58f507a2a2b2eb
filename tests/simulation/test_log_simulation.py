"""Schedules of logs of ledgers and of streaming sinks, and proof that they would notice."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.simulation.__main__ import main
from tests.simulation.frame import Outcome
from tests.simulation.log_schedule import run_log_schedule
from tests.simulation.many import jobs_for, run_many
from tests.simulation.story import told

from ..thorough import always  # noqa: TID252
from .compact_mutants import COMPACT_MUTANTS
from .deletion_mutants import DELETION_MUTANTS
from .log_mutants import CASES, HEALING_MUTANTS, LOG_MUTANTS, UNBOUNDED_MUTANTS
from .mutants import changed
from .page_mutants import PAGE_MUTANTS

ROOT = Path(__file__).parents[2]
ALL_MUTANTS = LOG_MUTANTS | DELETION_MUTANTS | PAGE_MUTANTS | COMPACT_MUTANTS
BATCHES = [(1_000_000, 6), (1_000_006, 154)]
BATCHES += [(first_seed, 160) for first_seed in range(1_000_160, 1_001_120, 160)]
"""First seeds, and how many."""
SCHEDULES_MAX = 3_000
"""Within so many schedules every broken rule must be noticed; most need a hundredth of it."""
CASE_SCHEDULES_MAX = 400
"""Those that are known from elsewhere much earlier."""
CASES_BEGIN = {"RB-39": 100}
"""The first schedule, where that saves many; any other would do."""


@pytest.mark.parametrize(
    ("first_seed", "count"),
    always(BATCHES[:1], BATCHES, are_rows=True, soaks=BATCHES[4:]),
)
def test_no_schedule_of_a_log_breaks_a_promise(
    first_seed: int, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.perf_counter()
    total = run_many(first_seed, count=count, jobs=jobs_for(count), run=run_log_schedule)
    with capsys.disabled():
        print(f"\nlogs: {total.shown(time.perf_counter() - began)}")
    assert total.failed is None, told(total.failed)
    assert total.schedules == count
    assert total.acks > count


def run_unbounded(seed: int) -> Outcome:
    return run_log_schedule(seed, is_unbounded=True)


@pytest.mark.parametrize(
    ("first_seed", "count"), always([(0, 4)], [(0, 4), (4, 44)], are_rows=True)
)
def test_no_schedule_of_an_unbounded_log_breaks_a_promise(first_seed: int, count: int) -> None:
    total = run_many(first_seed, count=count, jobs=jobs_for(count), run=run_unbounded)
    assert total.failed is None, told(total.failed)
    assert total.acks > count


def run_healing(seed: int) -> Outcome:
    return run_log_schedule(seed, is_unbounded=True, heals=True)


@pytest.mark.parametrize(
    ("first_seed", "count"), always([(8, 2)], [(8, 2), (10, 40)], are_rows=True)
)
def test_an_unbounded_log_is_whole_behind_a_repair(first_seed: int, count: int) -> None:
    """Bookies were away for a while, with none in their place, and writers were idle or died."""
    total = run_many(first_seed, count=count, jobs=jobs_for(count), run=run_healing)
    assert total.failed is None, told(total.failed)


@pytest.mark.thorough
@pytest.mark.parametrize("name", HEALING_MUTANTS)
def test_a_broken_rule_of_healing_is_noticed(name: str) -> None:
    with changed(*HEALING_MUTANTS[name]):
        assert any("a repair leaves" in run_healing(seed).violation for seed in range(8, 400))


@pytest.mark.thorough
@pytest.mark.parametrize("name", UNBOUNDED_MUTANTS)
def test_a_broken_rule_of_unbounded_logs_is_noticed(name: str) -> None:
    with changed(*UNBOUNDED_MUTANTS[name]):
        assert any(run_unbounded(seed).violation for seed in range(100))


def digests(hash_seed: int) -> str:
    script = (
        "from tests.simulation.log_schedule import run_log_schedule\n"
        "print([run_log_schedule(seed).digest for seed in range(15)])"
    )
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.thorough
def test_equal_seeds_make_equal_steps_in_any_process() -> None:
    here = [run_log_schedule(seed).digest for seed in range(15)]
    assert digests(1).strip() == digests(2).strip() == str(here)
    assert len(set(here)) == len(here)


def noticed(name: str, seeds: range, *, rule: str = "") -> tuple[int, str]:
    """After how many schedules a mutant is noticed, by ``rule`` if one is named, and how."""
    with changed(*ALL_MUTANTS[name]):
        for seed in seeds:
            violation = run_log_schedule(seed).violation
            if violation and rule in violation:
                return seed - seeds.start + 1, violation
    raise AssertionError(f"{name} was not noticed in {len(seeds)} schedules")


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(ALL_MUTANTS.keys() - CASES.values()))
def test_a_broken_rule_of_logs_is_noticed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    count, violation = noticed(name, range(SCHEDULES_MAX))
    with capsys.disabled():
        print(f"\n{name}: schedule {count}: {violation}")


@pytest.mark.parametrize("case", always(["RB-35"], CASES))
def test_each_known_case_is_a_rule_that_notices_it(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = CASES_BEGIN.get(case, 0)
    seeds = range(begin, begin + CASE_SCHEDULES_MAX)
    count, violation = noticed(CASES[case], seeds, rule=f"({case})")
    with capsys.disabled():
        print(f"\n{CASES[case]}: schedule {count}: {violation}")


def test_a_failing_schedule_is_told_and_its_seed_brings_it_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with changed(*LOG_MUTANTS["truncation deletes before it hides"]):
        assert main(["--logs", "--schedules", "50"]) == 1
        story = capsys.readouterr().out
        seed = story.partition("seed ")[2].partition(":")[0]
        assert main(["--logs", "--schedules", "1", "--seed", seed]) == 1
    again = capsys.readouterr().out
    violation = story.partition("VIOLATION: ")[2].splitlines()[0]
    assert "is deleted" in violation
    assert f"VIOLATION: {violation}" in again
