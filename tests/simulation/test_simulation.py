"""Thousands of schedules of the real client code, and proof that they would notice."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from tests.simulation.__main__ import main
from tests.simulation.environment import NOW_MS, SimulatedEnvironment
from tests.simulation.faults import PARTIAL, POWER, Kind
from tests.simulation.frame import Outcome
from tests.simulation.many import jobs_for, run_many, told_by_signals
from tests.simulation.schedule import run_schedule
from tests.simulation.story import told

from ..mutants.required import ALWAYS  # noqa: TID252
from ..thorough import always  # noqa: TID252
from . import mutants

ROOT = Path(__file__).parents[2]
BATCHES = [(1_000_000, 40), (1_000_040, 960)]
BATCHES += [(first_seed, 1_000) for first_seed in range(1_001_000, 1_010_000, 1_000)]
"""First seeds, and how many."""
ALL_KINDS = 500
"""So many schedules show every kind of fault."""
LONG = 0.7
"""So much of them has sixty operations or more."""
SCHEDULES_MAX = 10_000
"""Within so many schedules every broken rule must be noticed; most need a hundredth of it."""
RARE = ("acks of a replaced bookie kept",)
"""Chance meets these once in thousands of schedules, so ``soak`` alone waits for it. A script (M11)
and a search of all states notice them at once."""
BY_CHANCE = always(ALWAYS["schedule"], [name for name in mutants.MUTANTS if name not in RARE])
BY_CHANCE += [pytest.param(name, marks=pytest.mark.soak) for name in RARE]


@pytest.mark.parametrize(
    ("first_seed", "count"),
    always(BATCHES[:1], BATCHES, are_rows=True, soaks=BATCHES[4:]),
)
def test_no_schedule_breaks_a_promise(
    first_seed: int, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.perf_counter()
    total = run_many(first_seed, count=count, jobs=jobs_for(count))
    with capsys.disabled():
        print(f"\n{total.shown(time.perf_counter() - began)}")
    assert total.failed is None, told(total.failed)
    assert total.schedules == count
    assert total.long >= LONG * count
    assert total.acks
    if count >= ALL_KINDS:
        assert [kind for kind in Kind if not total.faults[kind]] == [
            kind for kind in Kind if kind in PARTIAL | POWER
        ]


@pytest.mark.thorough
def test_processes_share_the_seeds_among_themselves() -> None:
    alone = run_many(0, count=41)
    shared = run_many(0, count=41, jobs=2)
    assert (shared.schedules, shared.operations) == (41, alone.operations)
    assert shared.faults == alone.faults


def test_no_step_depends_on_the_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records and metadata say when entries were committed; the clocks of hosts may be wrong."""
    seeds = range(12)
    expected = [run_schedule(seed).digest for seed in seeds]
    clock = count(NOW_MS, -1_000)
    monkeypatch.setattr(SimulatedEnvironment, "now_ms", lambda _self: next(clock))
    assert [run_schedule(seed).digest for seed in seeds] == expected


def test_a_signal_ends_it_behind_the_schedule_under_way() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def run(seed: int) -> Outcome:
        outcome = run_schedule(seed)
        if seed == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL  # a second one ends at once
        return outcome

    with told_by_signals() as end:
        total = run_many(0, count=10, run=run, end=end)
    assert (total.schedules, end.signal_number) == (3, signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


ENDINGS = always(
    [("--jobs 2", signal.SIGINT, True)],
    [
        ("--jobs 1", signal.SIGINT, True),
        ("--jobs 1 --logs", signal.SIGTERM, False),
        ("--jobs 2", signal.SIGINT, True),
        ("--jobs 2 --logs", signal.SIGTERM, True),
        ("--jobs 2", signal.SIGTERM, False),
    ],
    are_rows=True,
)


def hears_signals(process_id: int) -> bool:
    """Whether it has a handler of its own for SIGTERM."""
    caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{process_id}/status").read_text())
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


def seconds_worked(session_id: int) -> float:
    """By the process of a session that has used a processor most."""
    ticks = [0]
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            _, _, fields = status.read_text().rpartition(")")
            _, _, _, session, *_ = found = fields.split()
            if int(session) == session_id:
                ticks.append(int(found[11]) + int(found[12]))
    return max(ticks) / os.sysconf("SC_CLK_TCK")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "number", "is_for_all"),
    ENDINGS,
)
def test_who_ends_it_is_told_what_was_run(
    words: str, number: signal.Signals, is_for_all: bool
) -> None:
    """A terminal tells all processes of a command, ``kill`` the one that it is given."""
    command = [sys.executable, "-m", "tests.simulation", "--seconds", "600"]
    with subprocess.Popen(
        [*command, *words.split()],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        while not hears_signals(running.pid) or seconds_worked(running.pid) < 2.5:
            time.sleep(0.05)  # a process that runs schedules has done some by then
        (os.killpg if is_for_all else os.kill)(running.pid, number)
        try:
            out, err = running.communicate(timeout=60)  # until nobody can say more
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            raise
    assert running.returncode == 128 + number
    assert "Traceback" not in err
    assert re.match(r"[1-9]\d* schedules, .* 0 violations, ", out)


def digests(hash_seed: int, options: Mapping[str, bool]) -> str:
    script = (
        "from tests.simulation.schedule import run_schedule\n"
        f"print([run_schedule(seed, **{options}).digest for seed in range(40)])"
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
@pytest.mark.parametrize("options", always([{}], [{}, {"upkeep": True, "loses_files": True}]))
def test_equal_seeds_make_equal_steps_in_any_process(options: Mapping[str, bool]) -> None:
    here = str([run_schedule(seed, **options).digest for seed in range(40)])
    assert digests(1, options).strip() == digests(2, options).strip() == here


def test_other_seeds_make_other_steps() -> None:
    # A few are so short that two are alike: an empty write, a writer that dies at once.
    assert len({run_schedule(seed).digest for seed in range(40)}) > 35


@pytest.mark.parametrize("name", BY_CHANCE)
def test_a_broken_rule_is_noticed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with mutants.changed(*mutants.MUTANTS[name]):
        found = (seed for seed in range(SCHEDULES_MAX) if run_schedule(seed).violation)
        seed = next(found, None)
    assert seed is not None
    with capsys.disabled():
        print(f"\n{name}: noticed by schedule {seed + 1}")


@pytest.mark.parametrize("name", always(ALWAYS["schedule"], mutants.LOSSES))
def test_a_loss_is_noticed_whatever_led_to_it(name: str) -> None:
    with mutants.changed(*mutants.LOSSES[name]):
        seeds = range(SCHEDULES_MAX)
        found = (s for s in seeds if run_schedule(s, checks_reasons=False).violation)
        assert next(found, None) is not None


def test_a_failing_schedule_is_told_and_its_seed_brings_it_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "ack at Qa - 1"
    with mutants.changed(*mutants.MUTANTS[name]):
        assert main(["--schedules", "200"]) == 1
        story = capsys.readouterr().out
        seed = story.partition("seed ")[2].partition(":")[0]
        assert main(["--schedules", "1", "--seed", seed]) == 1
    again = capsys.readouterr().out
    end = "VIOLATION: "
    assert "looks for permission" in story
    assert story.partition(end)[2].splitlines()[0] == again.partition(end)[2].splitlines()[0]
