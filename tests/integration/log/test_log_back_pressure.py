"""What is added while a log's ledger closes waits, but only so much of it."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

import pytest

from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.ledger.handles import backlog
from bkspark.ledger.handles.promise import Promise
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.log import log_writer
from bkspark.log.log_writer import LogWriter
from tests.integration.log_scenes import Held, held_writer
from tests.integration.rig import Rig
from tests.kit.faulty import Operation

HALF = b"x" * 1000


@pytest.fixture
def rolling(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[LogWriter, Held, "Future[int]"]]:
    """A writer that closes a ledger for a roll, because its last add is on its way.

    Two adds of ``HALF`` are as much as may wait then.
    """
    monkeypatch.setattr(log_writer, "WAITING_BYTES_MAX", 2000)
    with held_writer(memory_rig) as (writer, held):
        held.hold()
        first = writer.append_async(b"first")
        held.wait_for(2)
        roll = threading.Thread(target=_roll, args=(writer,))
        roll.start()
        while writer._waiting is None:
            roll.join(0.01)
        yield writer, held, first
        held.let_go()
        roll.join()


@dataclass
class Behind:
    """Appends to other journals than ``journal``, so to the next ledger, wait for the gate."""

    journal: str
    gate: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Event = field(default_factory=threading.Event)

    def decide(self, _number: int, operation: Operation) -> None:
        if operation.call == "append" and operation.name != self.journal:
            self.arrived.set()
            assert self.gate.wait(120)


def _roll(writer: LogWriter) -> None:
    try:
        writer.roll()
    except (LedgerClosedError, RuntimeError):
        return


def test_who_adds_too_much_waits_until_the_ledger_is_closed(rolling) -> None:
    writer, held, first = rolling
    taken = [writer.append_async(HALF) for _ in range(2)]
    late: list[Future[int]] = []
    caller = threading.Thread(target=lambda: late.append(writer.append_async(HALF)))
    caller.start()
    caller.join(0.2)
    assert caller.is_alive()
    assert not late
    held.let_go()
    caller.join(120)
    assert [future.result(120) for future in (first, *taken, *late)] == [0, 1, 2, 3]


def test_who_waits_for_too_long_is_told_and_nothing_was_sent(
    rolling, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, held, first = rolling
    taken = [writer.append_async(HALF) for _ in range(2)]
    monkeypatch.setattr(writer._segments, "wait_seconds_max", 0.1)
    with pytest.raises(NotEnoughBookiesError, match="2200 bytes wait for ledger 0 to close"):
        writer.append_async(HALF)
    held.let_go()
    assert [future.result(120) for future in (first, *taken)] == [0, 1, 2]
    assert writer.append(b"next") == 3


def test_a_callback_does_not_wait_for_what_waits_for_it(rolling) -> None:
    writer, held, first = rolling
    added: list[Future[int]] = []
    told = threading.Event()

    def again(_done: "Future[int]") -> None:
        added.extend(writer.append_async(HALF) for _ in range(3))
        told.set()

    taken = [writer.append_async(HALF) for _ in range(2)]
    first.add_done_callback(again)
    held.let_go()
    assert told.wait(120)
    wait([*taken, *added], 20)
    assert sorted(future.result(0) for future in (*taken, *added)) == [1, 2, 3, 4, 5]


def test_room_is_not_waited_for_under_the_lock_that_callbacks_take(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "OUTSTANDING_BYTES_MAX", 10)
    told = threading.Event()
    added: list[Future[int]] = []

    def again(_done: "Future[int]") -> None:
        added.append(writer.append_async(b"by a callback"))
        told.set()

    with held_writer(memory_rig) as (writer, held):
        later = Held(held.journal)
        held.hold()
        first = writer.append_async(b"first")
        first.add_done_callback(again)
        held.wait_for(2)
        second = writer.append_async(b"as much as has room")
        caller = threading.Thread(target=lambda: added.append(writer.append_async(b"late")))
        caller.start()
        caller.join(0.2)
        assert caller.is_alive()
        later.hold()
        memory_rig.faults.decide = later.decide
        held.let_go()
        is_told = told.wait(120)
        later.let_go()
        caller.join(120)
        assert is_told
        assert [future.result(120) for future in (first, second, *added)] == [0, 1, 2, 3]


def assert_lock_is_free_behind_the_roll(writer: LogWriter, held: Held, rig: Rig) -> None:
    """Let the roll go on to the next record's storing: by then nobody holds the writer's lock."""
    behind = Behind(held.journal)
    rig.faults.decide = behind.decide
    held.let_go()
    assert behind.arrived.wait(120)
    is_free = writer._lock.acquire(timeout=60)
    behind.gate.set()
    assert is_free
    writer._lock.release()


def test_what_waited_for_a_ledger_to_close_does_not_wait_for_room_again(
    rolling, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, held, first = rolling
    taken = [writer.append_async(b"x" * 100) for _ in range(3)]
    monkeypatch.setattr(backlog, "OUTSTANDING_BYTES_MAX", 10)
    assert_lock_is_free_behind_the_roll(writer, held, memory_rig)
    assert [future.result(120) for future in (first, *taken)] == [0, 1, 2, 3]


def test_nothing_passes_what_could_not_be_sent(rolling, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, held, first = rolling
    taken = [writer.append_async(value) for value in (b"a", b"b", b"c")]
    send = WriteHandle.append_at_once

    def all_but_b(handle: WriteHandle, entries: list[bytes]) -> "Future[int]":
        if entries == [b"b"]:
            raise LedgerClosedError("not b")
        return send(handle, entries)

    monkeypatch.setattr(WriteHandle, "append_at_once", all_but_b)
    held.let_go()
    assert [future.result(120) for future in (first, taken[0])] == [0, 1]
    for future in taken[1:]:
        with pytest.raises(LedgerClosedError, match="ended before this was sent"):
            future.result(120)
    with pytest.raises(LedgerClosedError, match="has ended"):
        writer.append(b"d")


def test_an_entry_that_is_none_stops_nobody(rolling) -> None:
    writer, held, first = rolling
    wrong, right = writer._add([], 0, 0), writer.append_async(b"right")
    held.let_go()
    assert [future.result(120) for future in (first, right)] == [0, 1]
    with pytest.raises(InvalidRequestError):
        wrong.result(120)


def test_whatever_ends_a_roll_ends_the_wait(rolling, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, held, first = rolling
    taken = writer.append_async(HALF)

    def fail(*_arguments: object) -> None:
        raise RuntimeError("no thread")

    monkeypatch.setattr(writer._segments, "begin", fail)
    held.let_go()
    assert first.result(120) == 0
    with pytest.raises(LedgerClosedError, match="ended before this was sent"):
        taken.result(120)
    with pytest.raises(LedgerClosedError, match="has ended"):
        writer.append(HALF)


def test_a_callback_of_what_a_roll_cannot_send_does_not_wait_for_room(
    rolling, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs under the writer's lock, and the callbacks behind which room is made take that."""
    writer, held, first = rolling
    added: list[Future[int]] = []
    taken = writer.append_async(b"as much as has room")
    wrong = writer.append_async(5)  # type: ignore[arg-type]
    wrong.add_done_callback(lambda _wrong: added.append(writer.append_async(b"in its place")))
    monkeypatch.setattr(backlog, "OUTSTANDING_BYTES_MAX", 10)
    assert_lock_is_free_behind_the_roll(writer, held, memory_rig)
    with pytest.raises(InvalidRequestError):
        wrong.result(120)
    assert [future.result(120) for future in (first, taken, *added)] == [0, 1, 2]


def test_who_waits_behind_a_callback_returns_and_is_told_what_is_undecided(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The callback holds up the writer's own task, which else ends the writer in time."""
    is_told, end = threading.Event(), threading.Event()

    def hold_up(_done: "Future[int]") -> None:
        is_told.set()
        assert end.wait(120)

    with held_writer(memory_rig) as (writer, held):
        later = Held(held.journal)
        held.hold()
        writer.append_async(b"first").add_done_callback(hold_up)
        held.wait_for(2)
        second = writer.append_async(b"second")
        later.hold()
        memory_rig.faults.decide = later.decide
        held.let_go()
        assert is_told.wait(120)
        latest = threading.Timer(20, lambda: (later.let_go(), end.set()))
        latest.start()
        monkeypatch.setattr(writer._segments, "wait_seconds_max", 0.1)
        with pytest.raises(
            OutcomeUnknownError, match=r"within 0[.]1 s; in log wal offset 1 is und"
        ):
            writer._wait_for(second)
        with pytest.raises(OutcomeUnknownError, match=r"no answer within 0[.]1 s"):
            writer.append(b"third")
        latest.cancel()
        later.let_go()
        end.set()
        assert second.result(120) == 1


# --- force ---------------------------------------------------------------------------------------


def test_force_covers_what_another_thread_has_added(memory_rig: Rig) -> None:
    with held_writer(memory_rig) as (writer, held):
        later = Held(held.journal)
        held.hold()
        first = writer.append_async(b"first")
        held.wait_for(2)
        added: list[Future[int]] = []
        other = threading.Thread(target=lambda: added.append(writer.append_async(b"other")))
        other.start()
        other.join(120)
        later.hold()
        memory_rig.faults.decide = later.decide
        forced = threading.Thread(target=writer.force)
        forced.start()
        held.let_go()
        assert first.result(120) == 0
        later.wait_for(2)
        forced.join(0.2)
        is_waiting = forced.is_alive()
        later.let_go()
        forced.join(120)
        assert (is_waiting, added[0].done()) == (True, True)


def test_force_covers_what_waits_for_a_ledger_to_close(rolling, memory_rig: Rig) -> None:
    writer, held, first = rolling
    taken = writer.append_async(HALF)
    behind = Behind(held.journal)
    memory_rig.faults.decide = behind.decide
    forced = threading.Thread(target=writer.force)
    forced.start()
    held.let_go()
    assert behind.arrived.wait(120)
    forced.join(0.2)
    is_waiting = forced.is_alive()
    behind.gate.set()
    forced.join(120)
    assert (is_waiting, taken.done(), first.result(120)) == (True, True, 0)


# --- futures -------------------------------------------------------------------------------------


def test_a_future_costs_nothing_until_its_caller_looks_at_it(memory_rig: Rig) -> None:
    with held_writer(memory_rig) as (writer, _held):
        writer.append(b"0")
        writer.roll()
        future = writer.append_async(b"1")
        assert writer.append(b"2") == 2
        assert isinstance(future, Promise)
        assert (future.is_awaited, future.result()) == (False, 1)


def test_an_entry_that_a_roll_overtook_goes_into_the_next_ledger(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held_writer(memory_rig) as (writer, _held):
        assert writer.append(b"0") == 0
        append, before = WriteHandle.append_async, writer.ledger_id

        def behind_a_roll(handle: WriteHandle, value: bytes) -> "Future[int]":
            if handle.ledger_id == before:
                writer.roll()
            return append(handle, value)

        monkeypatch.setattr(WriteHandle, "append_async", behind_a_roll)
        assert writer.append(b"1") == 1
        assert writer.ledger_id != before


def test_a_closed_writer_says_that_nothing_was_sent(memory_rig: Rig) -> None:
    with held_writer(memory_rig) as (writer, _held):
        writer.append(b"0")
        writer.close()
        with pytest.raises(LedgerClosedError, match="this writer of log wal has ended, so this"):
            writer.append(b"1")
