"""Callbacks of an append's future run in the writer: they may append, and must not wait for it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from bkspark.client.bookkeeper import BookKeeper
from bkspark.client.handles import committer
from bkspark.errors import InvalidRequestError
from tests.integration.hand_writer import Gate
from tests.integration.rig import Rig


def values(keeper: BookKeeper, ledger_id: int) -> list[bytes]:
    return [entry.value for entry in keeper.open_ledger(ledger_id).read()]


def test_a_callback_may_append_too(memory_rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where others would have to wait for room: all acknowledgements wait for the callback."""
    monkeypatch.setattr(committer, "OUTSTANDING_BYTES_MAX", 2)
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
