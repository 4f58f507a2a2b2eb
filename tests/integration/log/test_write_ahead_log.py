"""The example of a write-ahead log with real processes: killed at any moment, paused, replaced."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import bkspark
from tests.integration.rig import Rig

REPOSITORY = Path(__file__).parents[3]
PROGRAM = REPOSITORY / "examples" / "write_ahead_log.py"
FOREVER = 10**6
KILLS = 6


class Writer:
    """A running process of the example; what it says goes to a file, so that it never waits."""

    def __init__(self, uri: str, said: Path, changes: int) -> None:
        self._said = said
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        with said.open("wb") as out, said.with_suffix(".err").open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, str(PROGRAM), uri, "--changes", str(changes)],
                stdout=out,
                stderr=err,
                env=environment,
            )

    def lines(self) -> list[dict[str, Any]]:
        """Whole lines only: one that is cut told nobody anything."""
        whole, _, _ = self._said.read_bytes().rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines()]

    def wait_for_lines(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.lines()) < count:
            assert self.process.poll() is None, self.complaint()
            assert time.monotonic() < deadline
            time.sleep(0.005)

    @property
    def begun(self) -> dict[str, Any]:
        return self.lines()[0]

    @property
    def acknowledged(self) -> list[dict[str, Any]]:
        return self.lines()[1:]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def complaint(self) -> str:
        return self._said.with_suffix(".err").read_text()


@contextmanager
def writer(rig: Rig, number: int, changes: int = FOREVER) -> Iterator[Writer]:
    found = Writer(rig.uri, rig.folder / f"writer{number}.out", changes)
    try:
        yield found
    finally:
        found.kill()


@pytest.fixture
def files(make_rig) -> Rig:
    rig: Rig = make_rig(kind="file", bookie_count=3)
    return rig


def entries_of(uri: str, ledger_id: int) -> list[dict[str, Any]]:
    with bkspark.BookKeeper(uri) as bookkeeper:
        found = bookkeeper.open_ledger(ledger_id, recovery=False)
        assert found.is_closed
        return [json.loads(entry.value) for entry in found.read()]


def assert_holds(uri: str, ended: Writer) -> list[dict[str, Any]]:
    """Everything that was acknowledged is there, under its id; besides at most one in flight."""
    entries = entries_of(uri, ended.begun["ledger"])
    said = ended.acknowledged
    assert [line["entry"] for line in said] == list(range(len(said)))
    for line, entry in zip(said, entries):
        assert entry == {"key": line["key"], "value": line["value"]}
    assert len(said) <= len(entries) <= len(said) + 1
    return entries


@pytest.mark.thorough
def test_killed_at_random_moments_nothing_acknowledged_is_lost(files: Rig) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    ended: list[Writer] = []
    for number in range(KILLS):
        with writer(files, number) as running:
            running.wait_for_lines(2)
            time.sleep(chance.uniform(0, 0.3))
            running.kill()
        ended.append(running)
    with writer(files, KILLS, changes=3) as last:
        assert last.process.wait(timeout=60) == 0, last.complaint()
    state: dict[str, int] = {}
    replayed = 0
    for one in ended:
        entries = assert_holds(files.uri, one)
        state |= {entry["key"]: entry["value"] for entry in entries}
        replayed += len(entries)
    assert last.begun["state"] == state
    assert last.begun["replayed"] == replayed
    assert len(entries_of(files.uri, last.begun["ledger"])) == 3


def test_a_writer_that_was_only_paused_is_refused(files: Rig) -> None:
    with writer(files, 0) as paused:
        paused.wait_for_lines(20)
        paused.process.send_signal(signal.SIGSTOP)
        before = len(paused.acknowledged)
        with writer(files, 1, changes=5) as following:
            assert following.process.wait(timeout=60) == 0, following.complaint()
        assert following.begun["replayed"] >= before
        paused.process.send_signal(signal.SIGCONT)
        assert paused.process.wait(timeout=60) == 1
    assert "another driver took over" in paused.complaint()
    assert "Traceback" not in paused.complaint()
    entries = assert_holds(files.uri, paused)
    assert following.begun["replayed"] == len(entries)


@pytest.mark.thorough
def test_killed_while_it_takes_over_the_next_one_does(files: Rig) -> None:
    with writer(files, 0) as first:
        first.wait_for_lines(10)
    for number in range(1, 4):
        with writer(files, number) as interrupted:
            time.sleep(0.25 + 0.1 * number)
            interrupted.kill()
    with writer(files, 9, changes=1) as last:
        assert last.process.wait(timeout=60) == 0, last.complaint()
    assert_holds(files.uri, first)
    for line in first.acknowledged:
        assert last.begun["state"][line["key"]] >= line["value"]


def test_ledgers_of_others_are_left_alone(files: Rig) -> None:
    with bkspark.BookKeeper(files.uri) as bookkeeper:
        open_ones = [
            bookkeeper.create_ledger(),
            bookkeeper.create_ledger(digest_type="MAC", password="theirs"),
        ]
        bookkeeper.delete_ledger(bookkeeper.create_ledger().ledger_id)
        with writer(files, 0, changes=2) as last:
            assert last.process.wait(timeout=60) == 0, last.complaint()
        assert last.begun["replayed"] == 0
        for ledger in open_ones:
            assert ledger.append(b"still mine") == 0
            ledger.close()


@pytest.mark.thorough
def test_of_many_that_start_at_once_one_goes_on_with_everything(files: Rig) -> None:
    together = [Writer(files.uri, files.folder / f"w{n}.out", changes=40) for n in range(4)]
    try:
        statuses = [one.process.wait(timeout=100) for one in together]
    finally:
        for one in together:
            one.kill()
    complaints = [one.complaint() for one in together]
    assert not [text for text in complaints if "Traceback" in text]
    assert 0 in statuses, complaints
    begun = sorted((one for one in together if one.lines()), key=lambda one: one.begun["ledger"])
    with writer(files, 99, changes=0) as judge:
        assert judge.process.wait(timeout=60) == 0, judge.complaint()
    lengths = [len(assert_holds(files.uri, one)) for one in begun]
    assert begun[-1].begun["replayed"] == sum(lengths[:-1])
    assert judge.begun["replayed"] == sum(lengths)
