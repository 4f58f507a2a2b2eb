"""What is decided is logged: who took over, whom a writer did without, when it rolled."""

import logging
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import bookie_client
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError, LedgerFencedError
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.ledger.recovery.recover import recover
from bkspark.log.batch.commit import commit
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.log.rolling import RollPolicy
from tests.integration.rig import LOG, Rig, partitions_of
from tests.integration.stream_driver import Driver
from tests.integration.waiting import wait_for_all_copies, wait_until

Said = Callable[..., list[str]]


def names_of(handle: WriteHandle) -> list[str]:
    return [member.bookie_id for member in handle.metadata.last_fragment.ensemble]


def test_a_bookie_that_fails_under_a_handle_is_told_of_and_so_is_who_takes_its_place(
    memory_rig: Rig, memory_keeper: BookKeeper, said: Said
) -> None:
    with memory_keeper.create_ledger() as handle:
        handle.append(b"0")
        wait_for_all_copies(handle)
        victim = names_of(handle)[1]
        assert handle.faults == {}
        memory_rig.faults.down = {victim}
        handle.append(b"1")
        wait_until(lambda: victim not in names_of(handle))
        successor = names_of(handle)[1]
        assert list(handle.faults) == [victim]
        reason = handle.faults[victim]
        handle.append(b"2")
    ledger = f"ledger {handle.ledger_id}"
    assert said(logging.WARNING, ledger, f"bookie {victim} is given up", reason)
    [line] = said(logging.INFO, ledger, f"bookie {successor} replaces {victim}")
    assert re.search("from entry [12] on", line)  # entry 1 may have had its ack by then
    assert reason in line
    gaps = said(logging.WARNING, ledger, "entries from 1 to 1 have", f"none on {victim}")
    assert len(gaps) == ("from entry 2 on" in line)


@pytest.mark.parametrize("why", ["no spare", "delayed"])
def test_a_handle_that_goes_on_with_fewer_copies_says_so(
    memory_rig: Rig, memory_keeper: BookKeeper, said: Said, why: str
) -> None:
    settings = WriterSettings(is_change_delayed=why == "delayed")
    handle = memory_keeper.create_ledger(ensemble_size=3, settings=settings)
    handle.append(b"0")
    wait_for_all_copies(handle)
    victim = names_of(handle)[0]
    left = set() if why == "delayed" else set(memory_rig.urls) - set(names_of(handle))
    memory_rig.faults.down = {victim} | left
    handle.append(b"1")
    wait_until(lambda: said(logging.WARNING, "fewer than 3 copies"))
    [line] = said(logging.WARNING, f"ledger {handle.ledger_id}", "fewer than 3 copies")
    assert "entries from 1 on get" in line
    assert f"none on {victim} ({handle.faults[victim]})" in line
    assert not said(logging.INFO, "replaces")
    handle.release()


def test_what_was_written_before_a_bookie_is_replaced_is_told_to_have_fewer_copies(
    memory_rig: Rig, memory_keeper: BookKeeper, said: Said
) -> None:
    settings = WriterSettings(is_change_delayed=True)
    handle = memory_keeper.create_ledger(ensemble_size=3, settings=settings)
    handle.append(b"0")
    wait_for_all_copies(handle)
    first, second, _ = names_of(handle)
    memory_rig.faults.down = {first}
    handle.append_many([b"1", b"2"])
    wait_for_all_copies(handle)
    memory_rig.faults.down = {first, second}
    handle.append(b"3")  # there are two copies of it only behind the change
    ledger = f"ledger {handle.ledger_id}"
    gap = "entries from 1 to 2 have, until they are repaired, fewer than 3 copies"
    [line] = said(logging.WARNING, ledger, gap)  # entry 3 may have two between the two changes
    assert f"none on {first} ({handle.faults[first]})" in line
    handle.release()


def test_a_log_writer_shows_the_faults_of_all_its_ledgers(
    memory_rig: Rig, memory_keeper: BookKeeper
) -> None:
    with memory_keeper.create_log("wal").writer() as writer:
        writer.append(b"0")
        victim = names_of(writer._segment.handle)[0]
        memory_rig.faults.down = {victim}
        writer.append(b"1")
        wait_until(lambda: writer.faults)
        memory_rig.faults.down = set()
        writer.roll()
        writer.append(b"2")
        assert list(writer.faults) == [victim]


def test_an_advanced_handle_shows_its_faults(memory_rig: Rig, memory_keeper: BookKeeper) -> None:
    with memory_keeper.create_ledger_adv() as handle:
        handle.append(0, b"0")
        victim = handle.metadata.last_fragment.ensemble[0].bookie_id
        memory_rig.faults.down = {victim}
        handle.append(1, b"1")
        wait_until(lambda: handle.faults)
        assert list(handle.faults) == [victim]


def test_a_batch_tells_who_steps_in_or_that_there_are_fewer_copies(
    make_rig: Callable[..., Rig], said: Said
) -> None:
    for bookie_count, has_spare in ((4, True), (3, False)):
        rig = make_rig(bookie_count=bookie_count)
        target = rig.target()
        victim = target.ensemble[0].bookie_id
        rig.lose(victim)
        result = commit_of(rig, target)
        ledger = f"ledger {result.ledger_id}"
        reason = result.failures[victim].removeprefix(f"bookie {victim}: ")
        assert said(logging.WARNING, ledger, f"bookie {victim} is given up", reason)
        changes = said(logging.INFO, ledger, f"replaces {victim}", reason)
        gaps = said(logging.WARNING, ledger, "entries from 0 on", "fewer than 3 copies", reason)
        assert (len(changes), len(gaps)) == ((1, 0) if has_spare else (0, 1))


def test_a_batch_that_is_taken_over_tells_by_whom(memory_rig: Rig, said: Said) -> None:
    target = memory_rig.target()
    with Cluster(memory_rig.uri) as cluster:
        seen, place = cluster.ledger(target.ledger_id), (target.digester(), target.ensemble)
        with RecordWriter(cluster, seen, *place, term=target.term, token=target.token) as writer:
            writer.require_current()
            recover(cluster, target.ledger_id, Password())
            with pytest.raises(LedgerFencedError, match="run it again"):
                writer.require_current()
    assert said(logging.INFO, f"ledger {target.ledger_id}: its writer ends", "CLOSED, term 2")


def commit_of(rig: Rig, target: Any) -> Any:
    return commit(target, rig.tasks(target, partitions_of(9, 3)))


def test_a_bookie_that_hangs_is_told_of_once_by_who_looks_for_one(
    memory_rig: Rig, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", 0.05)
    gate = threading.Event()
    monkeypatch.setattr(Cluster, "_look_at", lambda *_: lambda: gate.wait(60))
    with Cluster(memory_rig.uri) as cluster:
        for _ in range(2):
            assert all(status.problem for status in cluster.probe())
        gate.set()
    for name in memory_rig.urls:
        assert len(said(logging.WARNING, f"bookie {name} gave no answer within 0.05 s: it")) == 1


def test_a_takeover_a_recovery_and_the_fence_of_the_writer_are_told(
    memory_rig: Rig, memory_keeper: BookKeeper, said: Said
) -> None:
    handle = memory_keeper.create_ledger()
    handle.append(b"0")
    wait_for_all_copies(handle)
    memory_keeper.recover_ledger(handle.ledger_id)
    ledger = f"ledger {handle.ledger_id}"
    assert said(logging.INFO, f"recovery of {ledger}", "is IN_RECOVERY in term 2")
    assert said(logging.INFO, f"recovery of {ledger}", "fenced and read")
    assert said(logging.INFO, f"recovery of {ledger}", "is CLOSED at entry 0")
    with pytest.raises(LedgerFencedError):
        handle.append(b"1")
    assert said(logging.INFO, ledger, "the writer of term 1 is fenced")
    wait_until(lambda: said(logging.INFO, ledger, "its writer ends"))
    assert not said(logging.WARNING)


def test_a_recovery_warns_of_bookies_that_do_not_help_and_of_what_is_in_doubt(
    memory_rig: Rig, memory_keeper: BookKeeper, said: Said
) -> None:
    handle = memory_keeper.create_ledger()
    handle.append(b"0")
    wait_for_all_copies(handle)
    victim = names_of(handle)[0]
    memory_rig.faults.down = {victim}
    memory_keeper.recover_ledger(handle.ledger_id)
    recovery = f"recovery of ledger {handle.ledger_id}"
    assert said(logging.WARNING, recovery, "no answer", victim)


def test_rolls_are_told_with_their_reason(memory_keeper: BookKeeper, said: Said) -> None:
    log = memory_keeper.create_log("wal")
    with log.writer(roll_entries=2) as writer:
        first = writer.ledger_id
        assert said(logging.INFO, "log wal: taken over", f"ledger {first}", "offset 0")
        writer.append(b"0")
        writer.roll()
        second = writer.ledger_id
        asked = f"rolled from ledger {first} to {second} at offset 1: the caller asked for it"
        assert said(logging.INFO, "log wal", asked)
        writer.append(b"1")
        writer.append(b"2")
        wait_until(lambda: said(logging.INFO, "log wal", f"rolled from ledger {second}"))
    [line] = said(logging.INFO, "log wal", f"rolled from ledger {second}")
    assert "at offset 3: it has 2 entries" in line


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (RollPolicy(max_records=1), "it has 1 records"),
        (RollPolicy(max_bytes=1), "bytes"),
        (RollPolicy(max_seconds=1e-9), "it is 1e-09 s old"),
    ],
    ids=["records", "bytes", "age"],
)
def test_a_sink_tells_of_its_rolls(
    make_rig: Callable[..., Rig], said: Said, limits: RollPolicy, reason: str
) -> None:
    Driver(make_rig(), limits=limits).run(0)
    assert said(
        logging.INFO,
        f"log {LOG}: closed ledger",
        "and the next micro-batch begins another ledger",
        reason,
    )


def test_a_sink_tells_who_goes_on_in_a_ledger(make_rig: Callable[..., Rig], said: Said) -> None:
    driver = Driver(make_rig())
    driver.run(0)
    driver.held.rest()
    driver.run(1)
    assert said(logging.INFO, f"log {LOG}: continues in ledger", "in term 2")


def test_loggers_are_named_like_their_subsystems(
    memory_rig: Rig, memory_keeper: BookKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bkspark")
    handle = memory_keeper.create_ledger()
    memory_keeper.recover_ledger(handle.ledger_id)
    with pytest.raises(BookKeeperError):
        handle.append(b"late")
    with memory_keeper.create_log("wal").writer():
        pass
    wait_until(lambda: "bkspark.ledger.handles.writer" in {r.name for r in caplog.records})
    names = {record.name for record in caplog.records}
    for subsystem in ("bkspark.ledger.recovery", "bkspark.ledger.handles", "bkspark.log"):
        assert any(name.startswith(f"{subsystem}.") for name in names)
