"""Deferred sync: an append is answered when the handle has the entry, and only force keeps it."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import (
    LedgerClosedError,
    LedgerFencedError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.ledger.handles import grouping
from bkspark.ledger.handles.lane import Lane
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.hand_writer import Gate, violations
from tests.integration.rig import SCHEMA, Rig, rows_from
from tests.integration.waiting import wait_for_all_copies, wait_until

DEFERRED = WriterSettings(is_sync_deferred=True, add_entry_quorum_timeout_seconds=10)


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def values(keeper: BookKeeper, ledger_id: int) -> list[bytes]:
    return [entry.value for entry in keeper.open_ledger(ledger_id).read()]


def appends_of(rig: Rig) -> int:
    """How many records bookies were asked to store."""
    return sum(operation.call == "append" for operation in rig.faults.trace)


def last_sent(handle: WriteHandle) -> int:
    """The last entry in a record, when the writer has decided about all that was appended."""
    with handle._writer._lock:
        return handle._writer.machine.pending.last_add_pushed


def wait_until_told(keeper: BookKeeper, ledger_id: int, entry_id: int) -> None:
    """Until a tail reader learns that the entry is confirmed."""
    reader = keeper.open_ledger(ledger_id, recovery=False)
    wait_until(lambda: reader.read_last_add_confirmed() >= entry_id)


def wait_until_confirmed(handle: WriteHandle, entry_id: int) -> None:
    wait_until(lambda: handle.last_add_confirmed >= entry_id)


# --- what is answered, and what is promised ------------------------------------------------------


def test_2_1_7_an_append_is_answered_although_no_bookie_has_it(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    Gate(memory_rig.faults).close(*memory_rig.urls)
    handle = keeper.create_ledger(settings=DEFERRED)
    assert handle.last_add_pushed == -1
    assert [handle.append(b"%d" % n) for n in range(3)] == [0, 1, 2]
    assert handle.append_many([b"3", b"4"]) == (3, 4)
    future = handle.append_async(b"5")
    assert (future.done(), future.result(0)) == (True, 5)
    time.sleep(0.3)  # longer than a writer is idle before it tells its last-add-confirmed
    assert (handle.last_add_pushed, handle.last_add_confirmed, last_sent(handle)) == (5, -1, -1)
    assert appends_of(memory_rig) == 0
    assert keeper.open_ledger(handle.ledger_id, recovery=False).read_last_add_confirmed() == -1
    memory_rig.faults.decide = lambda *_: None
    handle.close()


def test_2_1_8_force_makes_all_of_it_durable_in_order(memory_rig: Rig, keeper: BookKeeper) -> None:
    sent = {number: b"entry %d" % number for number in range(50)}
    with keeper.create_ledger(ensemble_size=5, settings=DEFERRED) as handle:
        for number in range(30):
            assert handle.append(sent[number]) == number
        handle.force()
        assert handle.last_add_confirmed == 29
        wait_until_told(keeper, handle.ledger_id, 29)
        reader = keeper.open_ledger(handle.ledger_id, recovery=False)
        assert [e.value for e in reader.read()] == [sent[number] for number in range(30)]
        for number in range(30, 50):
            handle.append(sent[number])
        assert (handle.last_add_pushed, handle.last_add_confirmed) == (49, 29)
        handle.force()
        handle.force()  # with nothing to do
        assert handle.last_add_confirmed == 49
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


def test_force_returns_behind_the_ack_quorum_and_not_before(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger(settings=DEFERRED)
    names = [m.bookie_id for m in handle.metadata.last_fragment.ensemble]
    gate.close(*names)
    handle.append(b"a")
    forced = threading.Thread(target=handle.force, daemon=True)
    forced.start()
    gate.open(names[0])
    forced.join(0.2)
    assert (forced.is_alive(), handle.last_add_confirmed) == (True, -1)
    gate.open(names[1])
    forced.join(120)
    assert (forced.is_alive(), handle.last_add_confirmed) == (False, 0)
    gate.open()
    handle.close()


@pytest.mark.parametrize("teller", ["lane", "task"])
def test_readers_learn_of_a_force_although_the_writer_goes_on(
    keeper: BookKeeper, teller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record says its last-add-confirmed before the next force, so a confirmation does."""
    if teller == "task":
        monkeypatch.setattr(Lane, "tell_when_idle", lambda *_: None)
    is_over = threading.Event()

    def go_on(handle: WriteHandle) -> None:
        while not is_over.is_set():
            handle.append(b"held")
            time.sleep(0.001)

    with keeper.create_ledger(settings=DEFERRED) as handle:
        handle.append(b"forced")
        handle.force()
        writer = threading.Thread(target=go_on, args=(handle,))
        writer.start()
        try:
            wait_until_told(keeper, handle.ledger_id, 0)
        finally:
            is_over.set()
            writer.join(120)
        assert handle.last_add_confirmed == 0


def test_force_writes_few_records(memory_rig: Rig, keeper: BookKeeper) -> None:
    with keeper.create_ledger(settings=replace(DEFERRED, explicit_lac_ms=0)) as handle:
        for number in range(20):
            handle.append(b"a")
            assert last_sent(handle) == -1, number
        handle.force()
        assert appends_of(memory_rig) <= 3


@pytest.mark.parametrize("end", ["close", "release"])
def test_the_end_of_a_writer_writes_what_it_took(end: str, keeper: BookKeeper) -> None:
    handle = keeper.create_ledger(settings=DEFERRED)
    handle.append(b"a")
    handle.append_many([b"b", b"c"])
    getattr(handle, end)()
    assert handle.last_add_confirmed == 2
    assert values(keeper, handle.ledger_id) == [b"a", b"b", b"c"]
    with pytest.raises(LedgerClosedError):
        handle.append(b"d")


def test_tables_are_held_too(keeper: BookKeeper) -> None:
    with keeper.create_ledger(schema=SCHEMA, settings=DEFERRED) as handle:
        assert handle.append_many(pa.Table.from_batches([rows_from(0, 5)])) == (0, 4)
        assert handle.append_many(pa.Table.from_batches([rows_from(5, 4)])) == (5, 8)
        assert handle.last_add_confirmed == -1
        handle.force()
        assert handle.last_add_confirmed == 8


def test_ids_given_to_many_threads_are_those_of_their_entries(keeper: BookKeeper) -> None:
    given: dict[int, bytes] = {}

    def add(handle: WriteHandle, who: int) -> None:
        for number in range(200):
            value = b"%d %d" % (who, number)
            entry_id = handle.append(value)
            given[entry_id] = value
            if number % 50 == 49:
                handle.force()
                assert handle.last_add_confirmed >= entry_id

    with keeper.create_ledger(settings=DEFERRED) as handle:
        threads = [threading.Thread(target=add, args=(handle, who)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert values(keeper, handle.ledger_id) == [given[number] for number in range(800)]


# --- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "value"), [("HELD_BYTES_MAX", b"x" * 100), ("HELD_SUBMISSIONS_MAX", b"")]
)
def test_what_is_too_much_is_written_unasked(
    limit: str, value: bytes, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, limit, 1000 if limit == "HELD_BYTES_MAX" else 10)
    with keeper.create_ledger(settings=DEFERRED) as handle:
        for _ in range(9):
            handle.append(value)
            assert last_sent(handle) == -1
        handle.append(value)
        wait_until_confirmed(handle, 9)
        for _ in range(9):
            handle.append(value)
            assert last_sent(handle) == 9
        assert (handle.last_add_pushed, handle.last_add_confirmed) == (18, 9)


def test_a_caller_waits_where_even_that_cannot_be_written(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "HELD_BYTES_MAX", 50)
    monkeypatch.setattr("bkspark.ledger.handles.backlog.OUTSTANDING_BYTES_MAX", 100)
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger(settings=DEFERRED)
    gate.close(*memory_rig.urls)
    for _ in range(10):
        handle.append(b"x" * 10)
    more = threading.Thread(target=lambda: handle.append(b"y"), daemon=True)
    more.start()
    more.join(0.2)
    assert more.is_alive()
    gate.open()
    more.join(120)
    handle.close()
    assert len(values(keeper, handle.ledger_id)) == 11


# --- what goes wrong -----------------------------------------------------------------------------


KILLED = """
import os, signal, sys
from bkspark.bookkeeper import BookKeeper
from bkspark.ledger.handles.settings import WriterSettings
keeper = BookKeeper(sys.argv[1])
handle = keeper.create_ledger(settings=WriterSettings(is_sync_deferred=True))
for number in range(5):
    handle.append(b"forced %d" % number)
handle.force()
for number in range(3):
    handle.append(b"lost %d" % number)
print(handle.ledger_id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_forced_outlives_a_killed_writer_and_the_rest_does_not(make_rig: object) -> None:
    rig = make_rig(kind="file", bookie_count=3)
    command = [sys.executable, "-c", KILLED, rig.uri]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with BookKeeper(rig.uri) as keeper:
        assert values(keeper, int(done.stdout)) == [b"forced %d" % number for number in range(5)]


def test_a_writer_fenced_before_force_loses_what_was_not_forced(keeper: BookKeeper) -> None:
    handle = keeper.create_ledger(settings=DEFERRED)
    handle.append(b"forced")
    handle.force()
    wait_for_all_copies(handle)  # or the slowest bookie's post-check would tell it
    handle.append(b"lost")
    keeper.recover_ledger(handle.ledger_id)
    assert handle.append(b"lost too") == 2  # it cannot know
    assert last_sent(handle) == 0
    for tell in (handle.force, handle.force, lambda: handle.append(b"c"), handle.close):
        with pytest.raises(LedgerFencedError):
            tell()
    assert values(keeper, handle.ledger_id) == [b"forced"]


def test_force_on_a_broken_ensemble_changes_it(memory_rig: Rig, keeper: BookKeeper) -> None:
    handle = keeper.create_ledger(settings=DEFERRED)
    names = [m.bookie_id for m in handle.metadata.last_fragment.ensemble]
    sent = {handle.append(b"%d" % number): b"%d" % number for number in range(4)}
    memory_rig.faults.down = {names[0], names[1]}
    handle.force()
    assert handle.last_add_confirmed == 3
    handle.close()
    memory_rig.faults.down = set()
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


def test_force_without_enough_bookies_fails_and_so_does_the_next_append(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = keeper.create_ledger(settings=DEFERRED)
    handle.append(b"a")
    memory_rig.faults.down = set(memory_rig.urls)
    for tell in (handle.force, lambda: handle.append(b"b"), handle.force, handle.close):
        with pytest.raises(NotEnoughBookiesError):
            tell()
    memory_rig.faults.down = set()
    assert values(keeper, handle.ledger_id) == []
    assert memory_rig.ledger(handle.ledger_id).state is LedgerState.CLOSED


def test_what_fails_unasked_is_told_by_the_next_append_and_by_force(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "HELD_SUBMISSIONS_MAX", 2)
    handle = keeper.create_ledger(settings=DEFERRED)
    memory_rig.faults.down = set(memory_rig.urls)
    handle.append(b"a")
    handle.append(b"b")
    handle._task.join(120)
    for tell in (lambda: handle.append(b"c"), handle.force):
        with pytest.raises(NotEnoughBookiesError):
            tell()


def test_force_does_not_wait_for_ever(memory_rig: Rig, keeper: BookKeeper) -> None:
    gate = Gate(memory_rig.faults)
    settings = replace(DEFERRED, add_entry_quorum_timeout_seconds=0.3)
    handle = keeper.create_ledger(settings=settings)
    gate.close(*memory_rig.urls)
    handle.append(b"a")
    time.sleep(0.5)  # an entry that was not sent has no time limit
    assert handle.append(b"b") == 1
    with pytest.raises(OutcomeUnknownError):
        handle.force()
    gate.open()


# --- the other writers ---------------------------------------------------------------------------


def test_entries_of_chosen_ids_can_be_deferred(keeper: BookKeeper) -> None:
    """An id is answered when it and all in front of it were taken."""
    told: list[int] = []
    with keeper.create_ledger_adv(settings=DEFERRED) as handle:
        behind = [handle.append_async(number, b"%d" % number) for number in (2, 1)]
        behind[0].add_done_callback(lambda done: told.append(done.result()))
        assert not any(future.done() for future in behind)
        assert handle.append(0, b"0") == 0
        assert [future.result(0) for future in behind] == [2, 1]
        assert (handle.last_add_pushed, handle.last_add_confirmed, told) == (2, -1, [2])
        handle.force()
        assert handle.last_add_confirmed == 2
        handle.append(3, b"3")
    assert values(keeper, handle.ledger_id) == [b"0", b"1", b"2", b"3"]


def test_a_log_s_roll_and_end_write_what_was_taken(keeper: BookKeeper) -> None:
    log = keeper.create_log("deferred")
    with log.writer(settings=DEFERRED) as writer:
        assert [writer.append(b"%d" % number) for number in range(3)] == [0, 1, 2]
        assert writer.end_offset == 0
        writer.roll()
        assert writer.end_offset == 3
        assert [writer.append(b"%d" % number) for number in range(3, 5)] == [3, 4]
        writer.force()
        assert writer.end_offset == 5
        assert writer.append(b"5") == 5
    assert [entry.value for entry in log.read()] == [b"%d" % number for number in range(6)]
    assert len(log.ledgers) == 2
