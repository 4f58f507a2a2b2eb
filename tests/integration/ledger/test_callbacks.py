"""Callbacks of an append's future run in the writer: they may append, and must not wait for it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.ledger.handles import backlog, settings
from bkspark.ledger.handles.settings import WriterSettings
from tests.integration.hand_writer import Gate
from tests.integration.rig import Rig
from tests.stopwatch import patience


def values(keeper: BookKeeper, ledger_id: int) -> list[bytes]:
    return [entry.value for entry in keeper.open_ledger(ledger_id).read()]


def test_a_callback_may_append_too(memory_rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where others would have to wait for room: all acknowledgements wait for the callback."""
    monkeypatch.setattr(backlog, "OUTSTANDING_BYTES_MAX", 2)
    gate, ids, many = Gate(memory_rig.faults), list[int](), threading.Event()
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        with keeper.create_ledger() as handle:

            def go_on(done: "Future[int]") -> None:
                ids.append(done.result())
                if len(ids) >= 20:
                    many.set()
                    return
                for _ in range(2):
                    handle.append_async(b"%03d" % len(ids)).add_done_callback(go_on)

            gate.close(*memory_rig.urls)
            handle.append_async(b"0").add_done_callback(go_on)
            gate.open()
            assert many.wait(120)
        assert ids == list(range(len(ids)))
        assert len(values(keeper, handle.ledger_id)) == len(ids)


@pytest.mark.parametrize("what", ["append", "append_many", "force", "close", "release"])
def test_what_would_wait_for_itself_in_a_callback_is_refused(what: str, memory_rig: Rig) -> None:
    gate, refused = Gate(memory_rig.faults), list[str]()
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        with keeper.create_ledger() as handle:
            calls: dict[str, Callable[[], object]] = {
                "append": lambda: handle.append(b"b"),
                "append_many": lambda: handle.append_many([b"b"]),
                "force": handle.force,
                "close": handle.close,
                "release": handle.release,
            }

            def call(_done: "Future[int]") -> None:
                with pytest.raises(InvalidRequestError, match="would wait for itself"):
                    calls[what]()
                refused.append(what)

            gate.close(*memory_rig.urls)
            handle.append_async(b"a").add_done_callback(call)
            gate.open()
            assert handle.append(b"c") == 1
        assert refused == [what]
        assert values(keeper, handle.ledger_id) == [b"a", b"c"]


def test_what_is_added_beside_a_callback_is_sent_when_that_has_ended(memory_rig: Rig) -> None:
    """Nobody adds anything behind it: who lets it go has it sent."""
    is_told, may_go_on = threading.Event(), threading.Event()

    def stay(_done: "Future[int]") -> None:
        is_told.set()
        assert may_go_on.wait(120)

    gate = Gate(memory_rig.faults)
    with (
        memory_rig.faults.installed(),
        BookKeeper(memory_rig.uri) as keeper,
        keeper.create_ledger(settings=WriterSettings(explicit_lac_ms=0)) as handle,
    ):
        gate.close(*memory_rig.urls)
        handle.append_async(b"0").add_done_callback(stay)
        gate.open()
        assert is_told.wait(120)
        behind = [handle.append_async(b"%d" % n) for n in range(1, 4)]
        may_go_on.set()
        assert [future.result(120) for future in behind] == [1, 2, 3]


@pytest.mark.parametrize("what", ["room", "append", "append_many", "force", "close"])
def test_a_caller_does_not_wait_for_ever_for_a_callback(
    what: str, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent, nothing told and nothing closed behind a callback that does not return."""
    monkeypatch.setattr(backlog, "OUTSTANDING_BYTES_MAX", 10)
    monkeypatch.setattr(settings, "GRACE_SECONDS", patience(0.2))
    is_told, may_go_on = threading.Event(), threading.Event()

    def stay(_done: "Future[int]") -> None:
        is_told.set()
        may_go_on.wait(patience(6))

    impatient = WriterSettings(add_entry_quorum_timeout_seconds=patience(0.5))
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        handle = keeper.create_ledger(settings=impatient)
        handle.append_async(b"0").add_done_callback(stay)
        assert is_told.wait(120)
        second = handle.append_async(b"0123456789" if what == "room" else b"1")
        calls: dict[str, Callable[[], object]] = {
            "room": lambda: handle.append(b"2"),
            "append": lambda: handle.append(b"2"),
            "append_many": lambda: handle.append_many([b"2"]),
            "force": handle.force,
            "close": handle.close,
        }
        expected = "was not accepted" if what == "room" else "no answer within"
        with pytest.raises(BookKeeperError, match=expected):
            calls[what]()
        may_go_on.set()
        assert second.result(120) == 1
        handle.close()
