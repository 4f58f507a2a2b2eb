"""One bookie, asked one thing at a time, on a thread that may hang."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from secrets import token_hex

import pytest

from bkspark.bookie.contract import BookieAddress
from bkspark.cluster import bookie_client, hanging
from bkspark.cluster.bookie_client import BookieClient, close_all, seconds_to_store
from bkspark.errors import BookieUnavailableError, CorruptDataError

from ...stopwatch import Stopwatch  # noqa: TID252


@pytest.fixture
def address() -> BookieAddress:
    return BookieAddress("bookie-1", token_hex(16), token_hex(16), "memory://none")


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    gate = threading.Event()
    yield gate
    gate.set()


def wait_for(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def give_up(line: BookieClient, gate: threading.Event) -> None:
    with pytest.raises(BookieUnavailableError, match=r"bookie-1 gave no answer within 0\.05 s"):
        line.ask(lambda: gate.wait(60), 0.05)


def test_an_answer_is_what_was_found_or_raised(address: BookieAddress) -> None:
    line = BookieClient(address)
    assert line.ask(lambda: 7) == 7
    for error in (CorruptDataError("bad"), TimeoutError("of the storage")):

        def fail(error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error)) as caught:
            line.ask(fail)
        assert caught.value is error
    assert line.ask(lambda: 8) == 8
    line.close()


def test_who_owes_an_answer_is_asked_again_when_it_has_come(
    address: BookieAddress, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    line, other = BookieClient(address), BookieClient(address)
    give_up(line, gate)
    assert "bookie-1 gave no answer within 0.05 s: it is given up" in caplog.text
    for each in (line, other):
        with pytest.raises(BookieUnavailableError, match="still does not answer"):
            each.ask(lambda: 1)
    gate.set()
    wait_for(lambda: line._last is None or line._last.done())
    assert (line.ask(lambda: 1), other.ask(lambda: 2)) == (1, 2)


def test_after_a_while_others_ask_again_but_never_the_channel_that_is_busy(
    address: BookieAddress, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has open is in use by the call that hangs."""
    line, other = BookieClient(address), BookieClient(address)
    give_up(line, gate)
    monkeypatch.setattr(hanging, "ASK_AGAIN_SECONDS", 0.0)
    assert other.ask(lambda: 2) == 2
    with pytest.raises(BookieUnavailableError):
        line.ask(lambda: 1)


def test_resources_are_closed_although_another_bookie_hangs(
    address: BookieAddress, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One task closes them, one after the other, unless one takes long."""
    monkeypatch.setattr(bookie_client, "READ_SECONDS", 0.05)
    closed, lines = threading.Event(), [BookieClient(address) for _ in range(2)]
    for line, end in zip(lines, (lambda: gate.wait(60), closed.set), strict=True):
        line.ask(partial(line.cleanup.callback, end))
    close_all(lines)
    assert closed.wait(60)


def test_what_is_open_is_closed_behind_the_last_answer(
    address: BookieAddress, gate: threading.Event
) -> None:
    closed: list[str] = []

    def open_late() -> None:
        line.cleanup.callback(closed.append, "early")
        gate.wait(60)
        line.cleanup.callback(closed.append, "late")

    line = BookieClient(address)
    with pytest.raises(BookieUnavailableError):
        line.ask(open_late, 0.05)
    line.close()
    assert closed == []
    gate.set()
    wait_for(lambda: len(closed) == 2)
    assert closed == ["late", "early"]


def test_closing_waits_only_so_long(
    address: BookieAddress, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_client, "READ_SECONDS", 0.05)
    line = BookieClient(address)
    line.close()
    line.ask(lambda: line.cleanup.callback(gate.wait, 10))
    watch = Stopwatch()
    line.close()
    assert watch.seconds < 5


def test_large_files_have_more_time() -> None:
    assert seconds_to_store(0) == bookie_client.STORE_SECONDS
    assert seconds_to_store(100 * 2**20) == bookie_client.STORE_SECONDS + 10


def test_to_decode_what_was_read_is_no_waiting(
    address: BookieAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only calls to storage have a time limit, and large reads have a longer one."""
    monkeypatch.setattr(bookie_client, "READ_SECONDS", 0.05)
    monkeypatch.setattr(bookie_client, "SLOWEST_BYTES_PER_SECOND", 10)

    class Root:
        def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
            time.sleep(0.2)
            return name.encode()[begin:length]

        def size(self, name: str) -> int | None:
            return len(name)

        def list(self, folder: str) -> list[str]:
            return [folder]

    line = BookieClient(address)
    monkeypatch.setattr(line, "root", Root)
    storage = line.storage()
    assert storage.list("a") == ["a"]
    assert storage.read("a long name") == b"a long name"
    assert storage.read("a long name", 0, 5) == b"a lon"
    with pytest.raises(BookieUnavailableError, match="gave no answer"):
        storage.read("x")
