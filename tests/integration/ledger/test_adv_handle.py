"""The advanced write handle: ids of the user's choice, out of order in, in order acknowledged."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerFencedError,
    OutcomeUnknownError,
)
from bkspark.ledger.handles.adv_handle import AdvWriteHandle
from bkspark.ledger.handles.promise import Promise
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.ledger.recovery.recover import recover
from tests.integration.hand_writer import Gate
from tests.integration.rig import Rig


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def values(keeper: BookKeeper, handle: AdvWriteHandle) -> list[bytes]:
    return [entry.value for entry in keeper.open_ledger(handle.ledger_id).read()]


def value(number: int) -> bytes:
    return b"entry %d" % number


@pytest.mark.parametrize("seed", range(3))
def test_2_1_4_out_of_order_in_and_in_order_acknowledged(
    seed: int, keeper: BookKeeper, memory_rig: Rig
) -> None:
    ids = list(range(200))
    random.Random(seed).shuffle(ids)
    told: list[int] = []
    gate = Gate(memory_rig.faults)
    with keeper.create_ledger_adv(ensemble_size=5) as handle:
        gate.close(*memory_rig.urls)  # a callback that comes too late is called by whoever adds it
        for number in ids:
            future = handle.append_async(number, value(number))
            future.add_done_callback(lambda done: told.append(done.result()))
        gate.open()
        handle.force()
        assert handle.last_add_pushed == handle.last_add_confirmed == 199
    assert told == list(range(200))
    assert values(keeper, handle) == [value(number) for number in range(200)]


def test_2_1_4_many_threads_share_the_ids(keeper: BookKeeper) -> None:
    def add(handle: AdvWriteHandle, number: int) -> None:
        for entry_id in range(number, 120, 6):
            assert handle.append(entry_id, value(entry_id)) == entry_id

    with keeper.create_ledger_adv() as handle:
        threads = [threading.Thread(target=add, args=(handle, number)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert values(keeper, handle) == [value(number) for number in range(120)]


def test_2_1_4_a_hole_blocks_all_later_acknowledgements(keeper: BookKeeper) -> None:
    with keeper.create_ledger_adv() as handle:
        later = [handle.append_async(number, value(number)) for number in (3, 1, 2)]
        assert handle.last_add_pushed == -1
        assert not any(future.done() for future in later)
        assert handle.append(0, value(0)) == 0
        assert [future.result(120) for future in later] == [3, 1, 2]


def test_2_1_4_an_id_is_given_once(keeper: BookKeeper) -> None:
    with keeper.create_ledger_adv() as handle:
        handle.append(0, b"acknowledged")
        waiting = handle.append_async(2, b"waits")
        for taken in (0, 2):
            with pytest.raises(InvalidRequestError, match=f"entry {taken} was added before"):
                handle.append_async(taken, b"again")
        with pytest.raises(InvalidRequestError, match="below 0"):
            handle.append_async(-1, b"")
        with pytest.raises(InvalidRequestError, match="must be bytes"):
            handle.append_async(1, "text")  # type: ignore[arg-type]
        handle.append(1, b"fills the hole")
        assert waiting.result(120) == 2
    assert values(keeper, handle) == [b"acknowledged", b"fills the hole", b"waits"]


def test_close_ends_at_the_last_dense_entry_and_fails_what_waits(keeper: BookKeeper) -> None:
    handle = keeper.create_ledger_adv()
    dense = [handle.append_async(number, value(number)) for number in (1, 0)]
    waiting = [handle.append_async(number, value(number)) for number in (5, 3)]
    handle.close()
    assert [future.result(120) for future in dense] == [1, 0]
    for future in waiting:
        with pytest.raises(LedgerClosedError, match="because entry 2 never was"):
            future.result(120)
    with pytest.raises(LedgerClosedError):
        handle.append_async(2, b"too late")
    assert values(keeper, handle) == [value(0), value(1)]


def test_an_exception_in_a_with_block_does_not_seal(keeper: BookKeeper, memory_rig: Rig) -> None:
    handle = keeper.create_ledger_adv()
    handle.append(0, b"a")
    waiting = handle.append_async(2, b"c")
    with pytest.raises(ZeroDivisionError), handle:
        raise ZeroDivisionError
    assert isinstance(waiting.exception(120), LedgerClosedError)
    assert memory_rig.ledger(handle.ledger_id).state.value == "OPEN"
    assert values(keeper, handle) == [b"a"]


def test_what_waits_is_bounded_and_the_missing_entry_always_passes(keeper: BookKeeper) -> None:
    with keeper.create_ledger_adv(waiting_bytes_max=300, gap_timeout_seconds=0.2) as handle:
        waiting = [handle.append_async(number, bytes(100)) for number in (1, 2, 3)]
        with pytest.raises(InvalidRequestError, match=r"entry 0 is missing.*entry 4 was not added"):
            handle.append_async(4, bytes(100))
        assert handle.append(0, bytes(1000)) == 0
        assert [future.result(120) for future in waiting] == [1, 2, 3]
        assert handle.append(4, bytes(1000)) == 4


def test_one_that_is_held_up_goes_on_when_there_is_room(keeper: BookKeeper) -> None:
    with keeper.create_ledger_adv(waiting_bytes_max=100) as handle:
        handle.append_async(1, bytes(100))
        held_up: list[Future[int]] = []
        thread = threading.Thread(target=lambda: held_up.append(handle.append_async(2, bytes(9))))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        assert not held_up
        handle.append(0, b"")
        thread.join(120)
        assert held_up[0].result(120) == 2


def test_a_wait_for_a_missing_entry_ends(keeper: BookKeeper) -> None:
    handle = AdvWriteHandle(keeper.create_ledger(), gap_timeout_seconds=0.1, wait_seconds_max=0.1)
    with pytest.raises(OutcomeUnknownError, match="the first that is missing is 0"):
        handle.append(1, b"b")
    handle.close()


def test_a_writer_that_was_fenced_tells_those_that_wait(keeper: BookKeeper) -> None:
    handle = keeper.create_ledger_adv()
    handle.append(0, b"a")
    waiting = handle.append_async(2, b"c")
    recover(keeper._cluster, handle.ledger_id, Password())
    with pytest.raises(LedgerFencedError):
        handle.append(1, b"b")
    assert isinstance(waiting.exception(120), LedgerClosedError | LedgerFencedError)
    with pytest.raises(LedgerFencedError):
        handle.append_async(3, b"d")
    with pytest.raises(LedgerFencedError):
        handle.close()


def test_those_behind_a_gap_hear_of_the_end_of_the_writer(keeper: BookKeeper) -> None:
    """The caller of an entry on its way waits, and no other call comes."""
    handle = keeper.create_ledger_adv()
    handle.append(0, b"a")
    waiting = handle.append_async(3, b"d")
    recover(keeper._cluster, handle.ledger_id, Password())
    assert isinstance(handle.append_async(1, b"b").exception(120), LedgerFencedError)
    with pytest.raises(LedgerClosedError, match="because entry 2 never was"):
        waiting.result(120)
    with pytest.raises(LedgerFencedError):
        handle.append_async(2, b"c")
    with pytest.raises(LedgerFencedError):
        handle.close()


@pytest.mark.parametrize("seed", range(3))
def test_with_deferred_sync_an_id_is_given_once_all_before_it_were_added(
    keeper: BookKeeper, seed: int
) -> None:
    ids = list(range(50))
    random.Random(seed).shuffle(ids)
    with keeper.create_ledger_adv(settings=WriterSettings(is_sync_deferred=True)) as handle:
        futures = {number: handle.append_async(number, value(number)) for number in ids[:-1]}
        missing = ids[-1]
        assert all(future.done() is (number < missing) for number, future in futures.items())
        assert handle.append(missing, value(missing)) == missing
        assert all(future.result(0) == number for number, future in futures.items())
        assert handle.last_add_confirmed == -1
        handle.force()
        assert handle.last_add_confirmed == 49
    assert values(keeper, handle) == [value(number) for number in range(50)]


def test_callbacks_may_append_but_not_wait(keeper: BookKeeper) -> None:
    done = threading.Event()
    refusals: list[BaseException] = []

    def go_on(_future: "Future[int]") -> None:
        try:
            handle.append(1, b"b")
        except InvalidRequestError as error:
            refusals.append(error)
        handle.append_async(1, b"b").add_done_callback(lambda _future: done.set())

    with keeper.create_ledger_adv() as handle:
        handle.append_async(0, b"a").add_done_callback(go_on)
        assert done.wait(120)
    assert len(refusals) == 1
    assert "wait for itself" in str(refusals[0])
    assert values(keeper, handle) == [b"a", b"b"]


def test_close_waits_for_what_is_on_its_way(keeper: BookKeeper, memory_rig: Rig) -> None:
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger_adv()
    gate.close(*memory_rig.urls)
    futures = [handle.append_async(number, value(number)) for number in (2, 1, 0)]
    threading.Timer(0.2, gate.open).start()
    handle.close()
    assert [future.result(0) for future in futures] == [2, 1, 0]


def test_rows_of_a_schema_have_no_chosen_ids(keeper: BookKeeper) -> None:
    with pytest.raises(InvalidRequestError, match="of bytes only"):
        keeper.create_ledger_adv(schema=None)


def test_while_one_thread_hands_over_no_other_does(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on, real = threading.Event(), threading.Event(), WriteHandle.append_for

    def held(self: WriteHandle, future: Promise, data: bytes) -> int | None:
        if data == value(0):
            begun.set()
            goes_on.wait(120)
        return real(self, future, data)

    monkeypatch.setattr(WriteHandle, "append_for", held)
    with keeper.create_ledger_adv() as handle:
        thread = threading.Thread(target=handle.append, args=(0, value(0)))
        thread.start()
        assert begun.wait(120)
        second = handle.append_async(1, value(1))
        goes_on.set()
        assert second.result(120) == 1
        thread.join(120)
    assert values(keeper, handle) == [value(0), value(1)]
