"""Any number of recoveries at once: all end, at the same entry, after few terms."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import OutcomeUnknownError
from bkspark.ledger.recovery import recoverer
from bkspark.ledger.recovery.recover import recover
from bkspark.ledger.recovery.recoverer import WriteCopies
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.recovery import recovering
from tests.integration.hand_writer import HandWriter, one_by_one, stop_at, violations
from tests.integration.rig import Rig
from tests.thorough import always

RECOVERER = """
import sys
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.ledger.recovery.recover import recover
with Cluster(sys.argv[1]) as cluster:
    print("ready", flush=True)
    sys.stdin.readline()
    print(recover(cluster, int(sys.argv[2]), Password()).last_entry_id)
"""


def interrupted_writer(rig: Rig) -> HandWriter:
    writer = HandWriter(rig)
    writer.add(0, 1, acknowledges=True)
    writer.add(1, 2, acknowledges=True)
    writer.add(2)
    return writer


def require_few_terms(rig: Rig, writer: HandWriter, count: int) -> None:
    """Each may displace those that began before it; from then on they wait for one another."""
    assert rig.ledger(writer.ledger_id).term - 1 <= 2 * count
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)


@pytest.mark.parametrize("count", always([4], [4, 8]))
def test_recoverers_in_threads_all_find_the_same_end(count: int, rig: Rig) -> None:
    for _ in range(3):
        writer = interrupted_writer(rig)
        start, ends = threading.Barrier(count), list[int]()

        def take_part(ledger_id: int, start: threading.Barrier, ends: list[int]) -> None:
            with Cluster(rig.uri) as cluster:
                start.wait()
                ends.append(recover(cluster, ledger_id, Password()).last_entry_id)

        arguments = (writer.ledger_id, start, ends)
        threads = [
            threading.Thread(target=take_part, args=arguments, daemon=True) for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert ends == [2] * count
        require_few_terms(rig, writer, count)


@pytest.mark.parametrize("count", always([2], [2, 4, 8]))
def test_recoverers_in_processes_all_find_the_same_end(
    count: int, make_rig: Callable[..., Rig]
) -> None:
    rig = make_rig(kind="file")
    writer = interrupted_writer(rig)
    command = [sys.executable, "-c", RECOVERER, rig.uri, str(writer.ledger_id)]
    with ExitStack() as stack:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started = [stack.enter_context(subprocess.Popen(command, **pipes)) for _ in range(count)]
        for process in started:
            assert process.stdout.readline() == "ready\n"
        for process in started:
            process.stdin.write("\n")
            process.stdin.flush()
        ends = [json.loads(process.communicate(timeout=60)[0]) for process in started]
    assert ends == [2] * count
    require_few_terms(rig, writer, count)


def displaced_when_writing_back(writer: HandWriter, times: int) -> Callable[[Any], None]:
    """Somebody takes the ledger over in front of a write-back, and dies; so often."""
    left = [times]

    def overtake(instruction: object) -> None:
        if isinstance(instruction, WriteCopies) and instruction.ensemble_index == 0 and left[0]:
            left[0] -= 1
            writer.cluster.ledgers.update(
                str(writer.ledger_id), lambda ledger: ledger.in_recovery(f"{left[0]:032x}")
            )

    return overtake


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was slept, in seconds; nobody sleeps."""
    slept: list[float] = []
    monkeypatch.setattr(environment, "sleep", slept.append)
    return slept


def test_whoever_is_displaced_waits_longer_every_time(memory_rig: Rig, pauses: list[float]) -> None:
    writer = interrupted_writer(memory_rig)
    run = one_by_one(before=displaced_when_writing_back(writer, 3))
    assert writer.recover(run=run).last_entry_id == 2
    assert memory_rig.ledger(writer.ledger_id).term == 8
    looks = len(pauses) // 3
    waits = [sum(pauses[n * looks : (n + 1) * looks]) for n in range(3)]
    for number, wait in enumerate(waits):
        assert 0.5 <= wait / (looks * 0.02 * 2**number) <= 1.5
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_whoever_is_displaced_looks_first_whether_it_is_done(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other finishes during the wait: no further term is taken."""
    writer = interrupted_writer(memory_rig)
    finished: list[bool] = []

    def other_finishes(seconds: float) -> None:
        if not finished and seconds >= recoverer.FIRST_PAUSE_SECONDS / 2:
            finished.append(True)
            writer.recover()

    monkeypatch.setattr(environment, "sleep", other_finishes)
    run = one_by_one(before=displaced_when_writing_back(writer, 1))
    report = writer.recover(run=run)
    assert (report.last_entry_id, report.kept) == (2, 0)
    assert memory_rig.ledger(writer.ledger_id).term == 4
    assert "already" in report.notes[-1]


def test_a_wait_begins_again_with_every_change(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = interrupted_writer(memory_rig)
    others = iter(range(5))
    slept: list[float] = []

    def another_comes(seconds: float) -> None:
        slept.append(seconds)
        number = next(others, None)
        if number is not None:
            writer.cluster.ledgers.update(
                str(writer.ledger_id), lambda ledger: ledger.in_recovery(f"{number:032x}")
            )

    monkeypatch.setattr(environment, "sleep", another_comes)
    seen = recoverer.wait_for_others(writer.cluster, writer.ledger_id, 0).value
    assert (seen.state, seen.term) == (LedgerState.IN_RECOVERY, 6)
    monkeypatch.setattr(environment, "sleep", slept.append)
    changes, unchanged = 5, len(slept) - 5
    slept.clear()
    recoverer.wait_for_others(writer.cluster, writer.ledger_id, 0)
    assert (changes, unchanged) == (5, len(slept))


def test_whoever_is_displaced_looks_for_no_spares(memory_rig: Rig, pauses: list[float]) -> None:
    """Its copies count for nothing any more, but no bookie has failed."""
    writer = interrupted_writer(memory_rig)
    overtaken: list[bool] = []

    def overtake(instruction: object) -> None:
        if isinstance(instruction, WriteCopies) and not overtaken:
            overtaken.append(True)
            with pytest.raises(OutcomeUnknownError):
                writer.recover(run=one_by_one(before=stop_at(WriteCopies)))

    report = writer.recover(run=one_by_one(before=overtake))
    assert (report.last_entry_id, len(pauses) > 0) == (2, True)
    assert any("displaced" in note for note in report.notes)
    assert not any("replaces" in note for note in report.notes)


def test_one_that_is_displaced_for_ever_gives_up(memory_rig: Rig, pauses: list[float]) -> None:
    writer = interrupted_writer(memory_rig)
    run = one_by_one(before=displaced_when_writing_back(writer, 10**6))
    with pytest.raises(OutcomeUnknownError, match="another recovery of ledger"):
        writer.recover(run=run)
    assert memory_rig.ledger(writer.ledger_id).term == 1 + 2 * recovering.TAKEOVERS_MAX
    assert pauses
    assert writer.recover().last_entry_id == 2


def test_one_that_cannot_decide_adopts_what_another_decided_meanwhile(memory_rig: Rig) -> None:
    writer = interrupted_writer(memory_rig)

    def run(instructions: Sequence[Any]) -> list[Any]:
        silent = one_by_one(lost=writer.names)(instructions)
        writer.recover()
        return silent

    report = writer.recover(run=run)
    assert (report.last_entry_id, report.kept) == (2, 0)
