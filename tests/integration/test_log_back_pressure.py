"""What is added while a log's ledger closes waits, but only so much of it."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait

import pytest

from bkspark.client.handles import settings
from bkspark.client.handles.settings import WriterSettings
from bkspark.client.logs import log_writer
from bkspark.client.logs.log_writer import LogWriter
from bkspark.errors import LedgerClosedError, NotEnoughBookiesError

from .log_scenes import Held, held_writer
from .rig import Rig

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


def _roll(writer: LogWriter) -> None:
    try:
        writer.roll()
    except LedgerClosedError:
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
    caller.join(20)
    assert [future.result(20) for future in (first, *taken, *late)] == [0, 1, 2, 3]


def test_who_waits_for_too_long_is_told_and_nothing_was_sent(
    rolling, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, held, first = rolling
    taken = [writer.append_async(HALF) for _ in range(2)]
    monkeypatch.setattr(settings, "GRACE_SECONDS", 0)
    monkeypatch.setattr(writer, "_settings", WriterSettings(add_entry_quorum_timeout_seconds=0.1))
    with pytest.raises(NotEnoughBookiesError, match="2200 bytes wait for ledger 0 to close"):
        writer.append_async(HALF)
    held.let_go()
    assert [future.result(20) for future in (first, *taken)] == [0, 1, 2]
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
    assert told.wait(20)
    wait([*taken, *added], 20)
    assert sorted(future.result(0) for future in (*taken, *added)) == [1, 2, 3, 4, 5]
