"""Handles that are dropped without having been closed leave nothing behind but a warning."""

import gc
import os
import threading
import warnings
from collections.abc import Callable

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import LedgerFencedError
from tests.integration.rig import Rig
from tests.integration.waiting import wait_until

COUNT = 100
Working = Callable[[], set[threading.Thread]]


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    gc.collect()  # what earlier tests dropped
    return make_rig(kind="file", bookie_count=3)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def working() -> Working:
    """The threads that serve ledgers, but for those that hang since an earlier test."""

    def found() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if "ledger-" in thread.name}

    before = found()
    return lambda: found() - before


def test_many_that_are_dropped_leave_no_descriptors_and_no_threads(
    rig: Rig, working: Working
) -> None:
    with BookKeeper(rig.uri) as keeper:
        with keeper.create_ledger() as first:
            first.append(b"0")
        wait_until(lambda: not working())
        open_before = descriptors()
        with warnings.catch_warnings(
            record=True, action="always", category=ResourceWarning
        ) as told:
            for _ in range(COUNT):
                keeper.create_ledger().append(b"0")
                list(keeper.open_ledger(first.ledger_id, recovery=False).read())
            wait_until(lambda: not working())
        wait_until(lambda: descriptors() <= open_before)
        # What an earlier test has dropped may be told of just now.
        cluster = keeper._cluster
        mine = [each for each in told if getattr(each.source, "_cluster", None) is cluster]
        assert len(mine) == COUNT
        assert all("unclosed WriteHandle(ledger " in str(each.message) for each in mine)


@pytest.mark.parametrize("must_roll", [False, True])
def test_a_log_writer_that_is_dropped_leaves_nothing(
    must_roll: bool, rig: Rig, working: Working
) -> None:
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log("wal")
        wait_until(lambda: not working())
        open_before = descriptors()
        writer = log.writer()
        future = writer.append_async(b"0")
        assert future.result(120) == 0
        if must_roll:
            writer.roll()
            assert writer.append(b"1") == 1
        del writer, future
        gc.collect()
        wait_until(lambda: not working())
        wait_until(lambda: descriptors() <= open_before)
        log.writer().close()
        assert len(list(log.read())) == 1 + must_roll


def test_what_was_appended_before_is_written_and_the_ledger_is_left_to_recovery(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        ledger_id, futures = handle.ledger_id, [handle.append_async(b"%d" % n) for n in range(50)]
        with pytest.warns(ResourceWarning, match=f"unclosed WriteHandle.ledger {ledger_id}"):
            del handle
        assert [future.result(120) for future in futures] == list(range(50))
        assert rig.ledger(ledger_id).last_entry_id is None
        assert keeper.recover_ledger(ledger_id).last_entry_id == 49


def test_one_that_was_closed_or_released_is_dropped_in_silence(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper, warnings.catch_warnings():
        warnings.simplefilter("error")
        keeper.create_ledger().close()
        keeper.create_ledger().release()
        fenced = keeper.create_ledger()
        fenced.append(b"0")
        keeper.recover_ledger(fenced.ledger_id)
        with pytest.raises(LedgerFencedError):
            fenced.append(b"1")
        fenced.release()
        del fenced
        gc.collect()


def test_a_connection_that_is_dropped_is_closed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, closed = Cluster(rig.uri), threading.Event()
    monkeypatch.setattr(cluster.store._inner, "close", closed.set, raising=False)
    with pytest.warns(ResourceWarning, match="unclosed connection to file://"):
        del cluster
    assert closed.wait(120)


def test_a_forked_process_ends_nothing_of_its_parent(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        child = os.fork()
        if not child:
            put: list[object] = []
            handle._writer._own_work = type("Inbox", (), {"put": put.append})()
            del handle
            os._exit(len(put))
        assert os.waitpid(child, 0)[1] == 0
        assert handle.append(b"1") == 1
        handle.close()
