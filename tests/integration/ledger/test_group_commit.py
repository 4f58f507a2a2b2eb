"""Group commit: entries that come while bookies store a record share the next record."""

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.ledger.handles import grouping
from bkspark.ledger.handles.grouping import OpenGroup, Pauses, Submission
from bkspark.ledger.handles.promise import Promise
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from tests.integration.hand_writer import Gate
from tests.integration.rig import SCHEMA, Rig, rows_from
from tests.integration.waiting import wait_for_all_copies, wait_until
from tests.kit.faulty import METADATA

SILENT = WriterSettings(explicit_lac_ms=0)
"""An idle writer adds no record."""


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def ids_of(futures: list["Future[int]"]) -> list[int]:
    return [future.result(60) for future in futures]


def pushed(handle: WriteHandle) -> int:
    """The last entry in a record."""
    with handle._writer._lock:
        return handle._writer.machine.pending.last_add_pushed


def is_complete(handle: WriteHandle, entry_id: int) -> bool:
    """Whether the entry awaits the metadata check alone."""
    with handle._writer._lock:
        pending = handle._writer.machine.pending
        return pending.last_add_pushed == entry_id and not pending.awaits_copies


def records_of(rig: Rig) -> int:
    """How many records bookies were asked to store."""
    return sum(operation.call == "append" for operation in rig.faults.trace)


def test_entries_that_come_while_bookies_store_a_record_share_the_next(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger(settings=SILENT)
    gate.close(*memory_rig.urls)
    futures = [handle.append_async(b"%d" % n) for n in range(20)]
    assert pushed(handle) == 0
    gate.open()
    assert ids_of(futures) == list(range(20))
    wait_for_all_copies(handle)
    assert records_of(memory_rig) == 2 * 3
    handle.close()
    entries = keeper.open_ledger(handle.ledger_id).read()
    assert [entry.value for entry in entries] == [b"%d" % n for n in range(20)]


def test_callers_at_once_share_a_record(memory_rig: Rig, keeper: BookKeeper) -> None:
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger(settings=SILENT)
    gate.close(*memory_rig.urls)
    told: list[int] = []
    callers = [threading.Thread(target=lambda: told.append(handle.append(b"x"))) for _ in range(9)]
    for caller in callers:
        caller.start()
    wait_until(lambda: handle._writer.backlog.last_taken == 8)
    gate.open()
    for caller in callers:
        caller.join(60)
    assert sorted(told) == list(range(9))
    wait_for_all_copies(handle)
    assert records_of(memory_rig) == 2 * 3
    handle.close()


def test_the_next_record_is_stored_during_the_metadata_check_of_the_one_before(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    gate = Gate(memory_rig.faults, "is_current")
    handle = keeper.create_ledger(settings=SILENT)
    gate.close(METADATA)
    first = handle.append_async(b"0")
    wait_until(lambda: is_complete(handle, 0))
    second = handle.append_async(b"1")
    wait_until(lambda: is_complete(handle, 1))
    assert (first.done(), second.done()) == (False, False)
    gate.open()
    assert ids_of([first, second]) == [0, 1]
    handle.close()


def test_what_fills_a_record_does_not_wait(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bookies have the next large record at hand when they have stored the one before."""
    for name in ("GROUP_BYTES_MAX", "GATHERED_BYTES_MAX"):
        monkeypatch.setattr(grouping, name, 1000)
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger(settings=SILENT)
    gate.close(*memory_rig.urls)
    futures = [handle.append_async(b"x" * 300) for _ in range(4)]
    assert pushed(handle) == 0
    futures.append(handle.append_async(b"x" * 300))
    assert pushed(handle) == 3, "a record takes no more of them"
    gate.open()
    assert ids_of(futures) == list(range(5))
    handle.close()


def test_rows_of_tables_share_no_record_and_do_not_wait(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger(schema=SCHEMA)
    gate.close(*memory_rig.urls)
    tables = [pa.Table.from_batches([rows_from(5 * n, 5)]) for n in range(3)]
    futures = [handle.append_many_async(table) for table in tables]
    assert pushed(handle) == 14
    gate.open()
    assert ids_of(futures) == [4, 9, 14]
    handle.close()


def test_a_gathered_group_is_due_with_its_first_and_when_it_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grouping, "GROUP_ENTRIES_MAX", 4)
    group, due = OpenGroup(is_held=False), list[bool]()
    for _ in range(6):
        group.add(Submission([b"x"], 1, 1, Promise()))
        due.append(group.is_due)
    assert due == [True, False, False, True, False, False]
    assert group.fills_a_record
    assert len(group.take()) == 4
    assert not group.fills_a_record


# --- callers that were told together -------------------------------------------------------------


class Pause:
    """The pause of a writer for its callers: it is over when the test says so, or all are back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._begun: queue.SimpleQueue[Pauses] = queue.SimpleQueue()
        self._comes_within = Pauses.all_come_within
        monkeypatch.setattr(Pauses, "all_come_within", lambda *given: self._waited_for(*given))
        self._last: Pauses | None = None

    def _waited_for(self, pauses: Pauses, seconds: float) -> bool:
        assert seconds == grouping.PAUSE_SECONDS
        self._begun.put(pauses)
        return self._comes_within(pauses, 60)

    def wait(self) -> None:
        self._last = self._begun.get(timeout=60)

    def end(self) -> None:
        assert self._last is not None
        self._last._all_came.put(False)


def told_together(
    memory_rig: Rig, keeper: BookKeeper, count: int, *, is_called_back: bool = False
) -> WriteHandle:
    """A writer whose last record had the entries of ``count`` callers."""
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger(settings=SILENT)
    gate.close(*memory_rig.urls)
    futures = [handle.append_async(b"%d" % n) for n in range(count + 1)]
    if is_called_back:
        futures[-1].add_done_callback(lambda _done: None)
    gate.open()
    ids_of(futures)
    wait_for_all_copies(handle)
    return handle


@pytest.mark.parametrize("count", [2, 20])
def test_callers_that_were_told_together_share_a_record_again(
    count: int, memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a lane tells (``QUICKLY_TOLD_MAX``) are told by the writer's own task."""
    pause = Pause(monkeypatch)
    handle = told_together(memory_rig, keeper, count)
    pause.wait()
    before = records_of(memory_rig)
    futures = [handle.append_async(b"%d" % n) for n in range(count - 1)]
    assert pushed(handle) == count
    futures.append(handle.append_async(b"the last one sends"))
    assert pushed(handle) == 2 * count
    assert ids_of(futures) == list(range(count + 1, 2 * count + 1))
    wait_for_all_copies(handle)
    assert records_of(memory_rig) == before + 3
    pause.wait()
    pause.end()
    handle.close()


@pytest.mark.parametrize("count", [2, 20])
def test_a_pause_ends_although_a_caller_does_not_come_back(
    count: int, memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = Pause(monkeypatch)
    handle = told_together(memory_rig, keeper, count)
    pause.wait()
    future = handle.append_async(b"x")
    assert pushed(handle) == count
    pause.end()
    assert future.result(60) == count + 1
    handle.close()


def test_callers_that_take_turns_come_to_share_records(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One waits while the other is told: the writer lets the other come back."""
    pause, gate = Pause(monkeypatch), Gate(memory_rig.faults)
    handle = keeper.create_ledger(settings=SILENT)
    with handle._writer._lock:
        handle._writer._turns.check_seconds = 0.0
    gate.close(*memory_rig.urls)
    first, second = handle.append_async(b"first"), handle.append_async(b"second")
    gate.open()
    assert first.result(60) == 0
    pause.wait()
    assert pushed(handle) == 0
    third = handle.append_async(b"third")
    assert pushed(handle) == 2
    assert ids_of([second, third]) == [1, 2]
    pause.wait()
    pause.end()
    handle.close()


def test_entries_gather_during_a_check_that_takes_little_time(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    gate = Gate(memory_rig.faults, "is_current")
    handle = keeper.create_ledger(settings=SILENT)
    handle.append(b"0")
    assert handle._writer._turns.check_seconds < 60
    with handle._writer._lock:
        handle._writer._turns.check_seconds = 0.0
    gate.close(METADATA)
    futures = [handle.append_async(b"1")]
    wait_until(lambda: is_complete(handle, 1))
    futures += [handle.append_async(b"%d" % n) for n in (2, 3)]
    assert pushed(handle) == 1
    gate.open()
    assert ids_of(futures) == [1, 2, 3]
    handle.close()


def test_a_writer_pauses_no_longer_for_a_full_record(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = Pause(monkeypatch)
    handle = told_together(memory_rig, keeper, 2)
    pause.wait()
    monkeypatch.setattr(grouping, "GATHERED_BYTES_MAX", 1000)
    assert handle.append(b"x" * 1000) == 3
    pause.end()
    handle.close()


def test_a_writer_that_pauses_sends_what_waits_before_its_end(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = Pause(monkeypatch)
    handle = told_together(memory_rig, keeper, 2)
    pause.wait()
    future = handle.append_async(b"x")
    handle._writer.stop()
    pause.end()
    assert future.result(60) == 3
    handle.close()


@pytest.mark.parametrize(("count", "is_called_back"), [(1, False), (3, True)])
def test_there_is_no_pause_for_one_caller_or_before_callbacks(
    count: int,
    is_called_back: bool,
    memory_rig: Rig,
    keeper: BookKeeper,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(Pauses, "all_come_within", lambda _, seconds: pauses.append(seconds))
    handle = told_together(memory_rig, keeper, count, is_called_back=is_called_back)
    assert handle.append(b"x") == count + 1
    handle.close()
    assert not pauses


@pytest.mark.parametrize("ends", [True, False])
def test_nobody_comes_back_to_a_writer_that_ends_or_writes_when_told(
    ends: bool, memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(Pauses, "all_come_within", lambda _, seconds: pauses.append(seconds))
    settings = replace(SILENT, is_sync_deferred=not ends)
    gate, handle = Gate(memory_rig.faults), keeper.create_ledger(settings=settings)
    gate.close(*memory_rig.urls)
    futures = [handle.append_async(b"%d" % n) for n in range(3)]
    if ends:
        handle._writer.stop()
        wait_until(lambda: handle._writer.backlog.has_ended)
        gate.open()
        assert ids_of(futures) == [0, 1, 2]
    else:
        gate.open()
        handle.force()
        handle.force()
    handle.close()
    assert not pauses


def gathered(count: int) -> OpenGroup:
    group = OpenGroup(is_held=False)
    for _ in range(count):
        group.add(Submission([b"x"], 1, 1, Promise()))
    return group


def test_a_pause_is_left_out_where_there_is_nothing_to_gain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses = Pauses()
    for count, waiting in ((1, 0), (0, 0)):
        pauses.told(count, gathered(waiting))
        assert not pauses.is_on
    with monkeypatch.context() as few:
        few.setattr(grouping, "GROUP_ENTRIES_MAX", 3)
        pauses.told(4, gathered(3))
        assert not pauses.is_on
    pauses.told(1, gathered(1))
    assert pauses.is_on
    assert pauses.holds(gathered(1))
    assert not pauses.holds(gathered(2))


def test_pauses_that_bring_no_callers_back_become_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "PAUSES_LEFT_OUT_MAX", 5)
    pauses, left_out = Pauses(), list[int]()
    for come_back in (0, 1, 0, 0, 2, 0):
        left_out.append(0)
        while not pauses.is_on:
            left_out[-1] += 1
            pauses.told(4, gathered(7))
        pauses.end(7 + come_back)
    assert left_out == [1, 2, 4, 6, 6, 1]
