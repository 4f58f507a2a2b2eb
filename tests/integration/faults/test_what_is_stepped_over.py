"""A copy that is stepped over is told of, once, by whoever meets it."""

import logging
from collections.abc import Callable
from threading import Barrier

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.log.batch.commit import commit
from bkspark.log.reading import ordered_read
from bkspark.log.reading.log_view import look_at
from bkspark.log.reading.ordered_read import read_view_in_order
from tests.integration.dataframe.test_reads_with_faults import files_of
from tests.integration.ledger.test_durable_copies import is_change
from tests.integration.log.test_unbounded_appends import append
from tests.integration.log_scenes import SILENT
from tests.integration.rig import LOG, Rig, flat, partitions_of
from tests.integration.stream_driver import Driver
from tests.integration.waiting import wait_for_all_copies
from tests.kit.faulty import Crash, Fault, Operation, no_fault

Said = Callable[..., list[str]]


def names_of(handle: WriteHandle) -> list[str]:
    return [member.bookie_id for member in handle.metadata.last_fragment.ensemble]


def test_a_bad_copy_is_told_of_once_however_often_it_is_read(
    make_rig: Callable[..., Rig], said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_read, "WINDOW_ROWS", 5)
    rig = make_rig(bookie_count=3)
    result = rig.write(partitions_of(30), (3, 3, 2))
    victim = rig.ledger(result.ledger_id).last_fragment.ensemble[0].bookie_id
    bad = files_of(rig, victim)
    for name in bad:
        rig.replace_file(victim, name, None)
    for _ in range(3):
        with Cluster(rig.uri) as cluster:
            view = look_at(cluster, LOG, Password())
            found = read_view_in_order(cluster, view, None, None, Password())
            assert sum(table.num_rows for table in found) == 30
            assert [fault.bookie_id for fault in found.faults] == [victim]
    lines = said(logging.WARNING, "skipped a copy")
    assert (
        len(lines)
        == len(set(lines))
        == len(files_of(rig, rig.ledger(result.ledger_id).last_fragment.ensemble[1].bookie_id))
    )
    assert all(victim in line and "is missing" in line for line in lines)


def test_a_handle_tells_of_a_copy_once(
    memory_rig: Rig, memory_keeper: BookKeeper, said: Said
) -> None:
    with memory_keeper.create_ledger() as handle:
        for number in range(5):
            handle.append(b"%d" % number)
        wait_for_all_copies(handle)
        victim = names_of(handle)[handle.ledger_id % 3]  # whom a reader asks first
    memory_rig.faults.down = {victim}
    for _ in range(3):
        reader = memory_keeper.open_ledger(handle.ledger_id)
        for _ in range(3):
            assert len(list(reader.read())) == 5
    lines = said(logging.WARNING, "skipped a copy", f"ledger {handle.ledger_id}", victim)
    assert len(lines) == 1
    assert reader.faults[victim] in lines[0]


def test_looks_at_an_open_tail_tell_of_a_bookie_once(
    memory_rig: Rig, memory_keeper: BookKeeper, said: Said
) -> None:
    handle = memory_keeper.create_ledger()
    handle.append(b"0")
    wait_for_all_copies(handle)
    victim = names_of(handle)[0]
    memory_rig.faults.down = {victim}
    reader = memory_keeper.open_ledger(handle.ledger_id, recovery=False)
    for _ in range(3):
        reader.read_last_add_confirmed()
    assert len(said(logging.WARNING, "skipped a copy", f"ledger {handle.ledger_id}", victim)) == 1
    handle.release()


def test_a_journal_that_is_stepped_over_in_planning_is_told_of_once(
    make_rig: Callable[..., Rig], said: Said
) -> None:
    rig = make_rig(bookie_count=3)
    result = rig.write(partitions_of(6), (3, 3, 2))
    first = rig.ledger(result.ledger_id).last_fragment.ensemble[0].bookie_id
    for name in rig.names(first):
        if "/journal/" in name:
            rig.replace_file(first, name, b"damaged beyond reading")
    for _ in range(3):
        assert rig.rows() == flat(partitions_of(6))
    assert len(said(logging.WARNING, f"ledger {result.ledger_id} on bookie {first}")) == 1


def test_a_bookie_that_does_not_say_how_far_a_tail_goes_is_told_of_once(
    memory_rig: Rig, memory_keeper: BookKeeper, said: Said
) -> None:
    with memory_keeper.create_log("wal").writer(settings=SILENT) as writer:
        writer.append(b"0")
        wait_for_all_copies(writer._segment.handle)
        victim = names_of(writer._segment.handle)[0]
        memory_rig.faults.down = {victim}
        with Cluster(memory_rig.uri) as cluster:
            for _ in range(3):
                look_at(cluster, "wal", Password())
        ledger = f"ledger {writer.ledger_id} on bookie {victim}"
        assert len(said(logging.WARNING, "skipped a copy", ledger)) == 1
        memory_rig.faults.down = set()


@pytest.mark.parametrize("way", ["DataFrame", "handle"])
def test_nobody_is_blamed_for_what_a_later_writer_changed_during_a_look(
    memory_rig: Rig, said: Said, way: str
) -> None:
    """Two appends go on in the ledger between the look at its metadata and that at its bookies."""
    append(memory_rig, 0)

    def append_twice() -> None:
        memory_rig.faults.decide = no_fault
        append(memory_rig, 10)
        append(memory_rig, 20)

    all_three = Barrier(3, append_twice, timeout=60)  # none of them answers before

    def decide(_number: int, operation: Operation) -> None:
        if "/terms" in operation.name or "/journal" in operation.name:
            all_three.wait()

    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        cluster = keeper._cluster
        [ledger_id] = cluster.log(LOG).value.tail
        memory_rig.faults.decide = decide
        if way == "DataFrame":
            assert look_at(cluster, LOG, Password()).end_offset == 30
        else:
            reader = keeper.open_ledger(ledger_id, recovery=False)
            assert (reader.last_add_confirmed, reader.faults) == (29, {})
        assert memory_rig.faults.decide is no_fault
    assert not said(logging.WARNING, "skipped a copy")


def damaged_copies(rig: Rig, bookie_id: str) -> int:
    names = files_of(rig, bookie_id)
    for name in names:
        rig.replace_file(bookie_id, name, None)
    return len(names)


def test_a_bad_copy_that_a_commit_would_have_copied_is_told_of(
    make_rig: Callable[..., Rig], said: Said
) -> None:
    rig = make_rig(bookie_count=4)
    with rig.faults.installed():
        target = rig.target((3, 3, 2))
        away, bad, _good = (address.bookie_id for address in target.ensemble)
        rig.faults.down = {away} | {spare.bookie_id for spare in target.spares}
        reports = rig.tasks(target, partitions_of(3))
        rig.faults.down = set()
    assert damaged_copies(rig, bad) == 1
    commit(target, reports)
    assert len(said(logging.WARNING, "skipped a copy: entry log", f"on bookie {bad}")) == 1


def test_a_bad_copy_that_a_recovery_meets_is_told_of(
    make_rig: Callable[..., Rig], said: Said, caplog: pytest.LogCaptureFixture
) -> None:
    rig = make_rig(bookie_count=3)
    target = rig.target()
    reports = rig.tasks(target, partitions_of(3))

    def dies_before_it_closes(_number: int, operation: Operation) -> Fault | None:
        return Fault(error=Crash) if is_change(operation) else None

    rig.faults.decide = dies_before_it_closes
    with rig.faults.installed(), pytest.raises(Crash):
        commit(target, reports)
    rig.faults.forget()
    bad = target.ensemble[0].bookie_id
    assert damaged_copies(rig, bad) == 1
    with BookKeeper(rig.uri) as keeper:
        keeper.recover_ledger(target.ledger_id)
    assert len(said(logging.WARNING, "skipped a copy: entry log", f"on bookie {bad}")) == 1
    warned = {record.name for record in caplog.records if record.levelno == logging.WARNING}
    assert warned == {"bkspark.ledger.recovery.fencing"}  # before it was copied anew


def test_a_bad_copy_of_rows_that_go_into_another_ledger_is_told_of(
    make_rig: Callable[..., Rig], said: Said
) -> None:
    rig = make_rig(bookie_count=3)
    driver = Driver(rig)
    driver.run(0)
    batch = driver.planned(1)
    rig.write(partitions_of(3, first=1000))  # it takes the tail away
    bad = batch.staging.bookies[0].bookie_id
    assert damaged_copies(rig, bad)
    assert driver.commit(batch)
    assert said(logging.WARNING, "skipped a copy: entry log", f"on bookie {bad}")
