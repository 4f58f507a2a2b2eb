"""DataFrame writes and reads while bookies hang: another one serves, in bounded time."""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress

import pyarrow as pa
import pytest

from bkspark.admin.auditing import audit as auditing
from bkspark.admin.auditing.audit import gaps_of
from bkspark.cluster import bookie_client
from bkspark.cluster import hanging as hang_memory
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import CorruptDataError, NotEnoughBookiesError
from bkspark.ledger.recovery import running
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.commit import CommitResult
from bkspark.log.batch.target import BatchTarget
from bkspark.log.reading.log_view import look_at
from bkspark.log.reading.ordered_read import read_view_in_order
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from tests.integration.faults.test_hanging_bookies import Gates
from tests.integration.rig import LOG, SCHEMA, Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows, the_log
from tests.kit.faulty import Fault, Moment, Operation, StorageFaults
from tests.stopwatch import Stopwatch, patience
from tests.thorough import always

PARTITIONS = partitions_of(9, 0, 14, 1)
ROWS = flat(PARTITIONS)
WITH_OFFSET = pa.schema([("_offset", pa.int64()), *SCHEMA])
IN_TASKS = ["open_root", "create", "write", "finish", "size"]
IN_COMMIT = ["open_journal", "append", "has_journal"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", patience(0.5))
    monkeypatch.setattr(bookie_client, "READ_SECONDS", patience(0.5))
    monkeypatch.setattr(bookie_client, "STORE_SECONDS", patience(0.5))
    monkeypatch.setattr(running, "TELL_SECONDS", 0.05)
    monkeypatch.setattr(auditing, "SHOWN_TELL_SECONDS", 0.05)


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Iterator[Rig]:
    """Five bookies that may hang."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    with rig.faults.installed():
        yield rig


@pytest.fixture
def gates(rig: Rig) -> Iterator[Gates]:
    gates = Gates(rig.faults)
    yield gates
    gates.open()


def members(target: BatchTarget) -> list[str]:
    return [address.bookie_id for address in target.ensemble]


def write(rig: Rig, gates: Gates, call: str, hanging: range) -> tuple[BatchTarget, CommitResult]:
    """A write during which members of its ensemble begin to hang; what they answer is too late."""
    target = rig.target((3, 3, 2))
    reports = None if call in IN_TASKS else rig.tasks(target, PARTITIONS)
    gates.closed = {(members(target)[index], call) for index in hanging}
    watch = Stopwatch()
    try:
        result = batch_commit.commit(target, reports or rig.tasks(target, PARTITIONS))
    finally:
        assert watch.seconds < patience(8)
        gates.open()
    return target, result


# --- writes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", always(["write", "append"], IN_TASKS + IN_COMMIT))
@pytest.mark.parametrize("count", always([1], [1, 2]))
def test_bookies_that_hang_during_a_write_are_replaced(
    count: int, call: str, rig: Rig, gates: Gates
) -> None:
    target, result = write(rig, gates, call, range(count))
    hanging = set(members(target)[:count])
    assert hanging <= result.failures.keys()
    placed = rig.ledger(result.ledger_id).last_fragment.ensemble
    assert not hanging & {member.bookie_id for member in placed}
    time.sleep(0.05)  # by now they have answered
    assert rig.rows() == ROWS
    assert all(len(on) == 3 for on in rig.good_copies(result.ledger_id).values())
    rig.assert_survives_losses(ROWS, 1, set(rig.urls))


@pytest.mark.parametrize("call", always(["finish"], IN_TASKS + IN_COMMIT))
def test_without_spares_a_write_holds_on_qa_or_fails_in_time(
    call: str, make_rig: Callable[..., Rig]
) -> None:
    for count in (1, 2):
        rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
        with rig.faults.installed():
            gates = Gates(rig.faults)
            if count == 1:
                target, _ = write(rig, gates, call, range(2, 3))
                lost = rig.lose(members(target)[2])
                assert rig.rows() == ROWS
                rig.bring_back(members(target)[2], lost)
            else:
                with pytest.raises(NotEnoughBookiesError):
                    write(rig, gates, call, range(1, 3))
                assert rig.log() is None


def test_a_spare_that_hangs_while_it_joins_is_passed_over(rig: Rig, gates: Gates) -> None:
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, PARTITIONS)
    victim, bad = members(target)[0], target.spares[0].bookie_id
    gates.closed = {(victim, "append"), (bad, "put_new")}
    result = batch_commit.commit(target, reports)
    placed = {member.bookie_id for member in rig.ledger(result.ledger_id).last_fragment.ensemble}
    assert not placed & {victim, bad}


def test_a_late_append_of_a_bookie_that_was_given_up_is_not_counted(
    rig: Rig, gates: Gates, make_rig: Callable[..., Rig]
) -> None:
    """With Qa = 3 of three bookies the record stays without an ack, whatever comes later."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    with rig.faults.installed():
        gates = Gates(rig.faults)
        target = rig.target((3, 3, 3))
        reports = rig.tasks(target, PARTITIONS)
        gates.closed = {(members(target)[1], "append")}
        with pytest.raises(NotEnoughBookiesError):
            batch_commit.commit(target, reports)
        gates.open()
        assert rig.log() is None


# --- whose fault a copy is -----------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["hangs", "damaged"])
def test_a_source_that_is_no_good_is_named_and_not_the_target(
    fault: str, rig: Rig, gates: Gates
) -> None:
    """The third member dies, so that the first one is to be copied from, and the second is good."""
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, PARTITIONS)
    bad, _, dead = members(target)
    spares = {spare.bookie_id for spare in target.spares}
    rig.faults.down = {dead}
    if fault == "hangs":
        gates.closed = {(bad, "read")}
    else:
        for name in [name for name in rig.names(bad) if name.endswith(".arrow")]:
            rig.replace_file(bad, name, b"x" * len(rig.file_bytes(bad, name)))
    result = batch_commit.commit(target, reports)
    assert result.failures.keys() == {bad, dead}
    placed = {member.bookie_id for member in rig.ledger(result.ledger_id).last_fragment.ensemble}
    assert spares <= placed
    gates.open()
    assert all(len(on) == 3 for on in rig.good_copies(result.ledger_id).values())


def test_where_no_source_is_good_nothing_is_committed_and_the_sources_are_named(
    rig: Rig, gates: Gates
) -> None:
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, PARTITIONS)
    first, second, dead = members(target)
    rig.faults.down = {dead}
    gates.closed = {(first, "read"), (second, "read")}
    with pytest.raises(NotEnoughBookiesError) as caught:
        batch_commit.commit(target, reports)
    assert all(name in str(caught.value.hint) for name in (first, second))
    assert rig.log() is None


def test_a_task_does_not_count_a_source_that_is_no_good(
    make_rig: Callable[..., Rig], rig: Rig
) -> None:
    """What it wrote to one bookie is bad when another one needs a copy of it."""
    target = rig.target((3, 3, 2))
    bad, _, dead = members(target)

    def damage(_number: int, operation: Operation) -> Fault | None:
        if operation.place == dead and operation.call == "finish":
            return Fault(Moment.BEFORE)
        if operation.place != bad and operation.call == "create" and operation.place != dead:
            for name in [name for name in rig.names(bad) if name.endswith(".arrow")]:
                rig.replace_file(bad, name, b"x" * len(rig.file_bytes(bad, name)))
        return None

    rig.faults.decide = damage
    [report] = rig.tasks(target, [PARTITIONS[0]])
    assert report is not None
    assert dict(report.failures).keys() == {bad, dead}
    assert all(bad not in log.bookie_ids for log in report.logs)
    assert all(len(log.bookie_ids) == 3 for log in report.logs)


# --- reads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", always(["read"], ["open_root", "read", "size"]))
@pytest.mark.parametrize("index", always([0, 2], range(3)))
def test_a_read_goes_on_at_another_replica(index: int, call: str, rig: Rig, gates: Gates) -> None:
    target = rig.target((3, 3, 2))
    batch_commit.commit(target, rig.tasks(target, PARTITIONS))
    hanging = members(target)[index]
    gates.closed = {(hanging, call)}
    watch, before = Stopwatch(), len(rig.faults.trace)
    assert rig.rows() == ROWS
    reader = SliceReader(WITH_OFFSET)
    assert sum(batch.num_rows for batch in rig.batches(reader, 0, len(ROWS), 1)) == len(ROWS)
    assert watch.seconds < patience(4)
    if call != "size":
        assert {fault.bookie_id for fault in reader.faults} == {hanging}
    with Cluster(rig.uri) as cluster:
        view = look_at(cluster, LOG, Password())
        ordered = read_view_in_order(cluster, view, None, None, Password())
        assert sum(table.num_rows for table in ordered) == len(ROWS)
    # It was asked once, by whoever came first, and nobody else has waited for it.
    asked = [(op.place, op.call) for op in rig.faults.trace[before:]]
    assert asked.count((hanging, call)) <= 1


def test_a_read_whose_bookies_all_hang_fails_in_time_and_is_well_again_later(
    rig: Rig, gates: Gates
) -> None:
    target = rig.target((3, 3, 2))
    batch_commit.commit(target, rig.tasks(target, PARTITIONS))
    with Cluster(rig.uri) as cluster:
        log = cluster.log(LOG).value
        tasks = plan_log(cluster, log, OffsetRange(0, len(ROWS)), Password(), 2**30)
    gates.closed = {(name, "read") for name in members(target)}
    with pytest.raises(CorruptDataError, match=r"gave no answer within [\d.]+ s"):
        list(SliceReader(SCHEMA).read(tasks[0]))
    gates.open()
    deadline = time.monotonic() + 120
    while True:
        try:
            assert rig.rows() == ROWS
            break
        except CorruptDataError:
            assert time.monotonic() < deadline


def test_few_threads_are_left_behind_however_often_a_bookie_is_asked_that_hangs(
    rig: Rig, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = rig.target((3, 3, 2))
    batch_commit.commit(target, rig.tasks(target, PARTITIONS))
    hanging = members(target)[0]
    gates.closed = {(hanging, "open_root")}

    def waiting() -> int:
        return sum(thread.name == f"ask-{hanging}" for thread in threading.enumerate())

    for _ in range(5):
        assert rig.rows() == ROWS
    assert waiting() == 1
    monkeypatch.setattr(hang_memory, "ASK_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(bookie_client, "READ_SECONDS", patience(0.1))
    for _ in range(12):
        assert rig.rows() == ROWS
    assert waiting() == hang_memory.UNANSWERED_MAX


def test_a_look_at_what_is_missing_does_not_wait_for_ever(rig: Rig, gates: Gates) -> None:
    target = rig.target((3, 3, 2))
    result = batch_commit.commit(target, rig.tasks(target, PARTITIONS))
    gates.closed = {(members(target)[0], "list")}
    watch = Stopwatch()
    with Cluster(rig.uri) as cluster:
        found = gaps_of(cluster, [result.ledger_id])
    assert watch.seconds < patience(4)
    assert {gap.member.bookie_id for gap in found} == {members(target)[0]}


# --- micro-batches -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call", always(["create", "append", "read"], [*IN_TASKS, *IN_COMMIT, "read"])
)
def test_micro_batches_go_on_while_a_bookie_hangs(call: str, rig: Rig, gates: Gates) -> None:
    """Also where a new commit process has to copy what lies in another ledger."""
    driver = Driver(rig)
    driver.run(0)
    [ledger_id] = the_log(rig).tail
    gates.closed = {(rig.ledger(ledger_id).last_fragment.ensemble[0].bookie_id, call)}
    driver.run(1)
    batch = driver.planned(2)
    watch = Stopwatch()
    rig.write(partitions_of(3, first=20))  # closes the tail under the batch
    driver.with_new_process().commit(batch)
    assert watch.seconds < patience(8)
    gates.open()
    assert settled_rows(rig) == [*expected(0, 1), *flat(partitions_of(3, first=20)), *expected(2)]


# --- all at once ---------------------------------------------------------------------------------


class Meeting:
    """Operations of one call that end when all of ``places`` are in it at once."""

    def __init__(self, faults: StorageFaults, call: str, places: Collection[str]) -> None:
        self.count = 0
        self._call = call
        self._places = places
        self._barrier = threading.Barrier(len(places), self._met)
        faults.decide = self._wait

    def _met(self) -> None:
        self.count += 1

    def _wait(self, _number: int, operation: Operation) -> None:
        if operation.call == self._call and operation.place in self._places:
            with suppress(threading.BrokenBarrierError):
                self._barrier.wait(60)


@pytest.mark.parametrize("call", IN_COMMIT)
def test_all_members_store_a_record_at_once(call: str, rig: Rig) -> None:
    target = rig.target((5, 5, 3))
    reports = rig.tasks(target, PARTITIONS)
    meeting = Meeting(rig.faults, call, members(target))
    batch_commit.commit(target, reports)
    assert meeting.count == 1


def test_all_members_are_told_of_a_micro_batch_at_once(rig: Rig) -> None:
    """Its record on all of them, and then, on all of them, that readers may see it."""
    driver = Driver(rig)
    driver.run(0)
    [ledger_id] = the_log(rig).tail
    names = [member.bookie_id for member in rig.ledger(ledger_id).last_fragment.ensemble]
    meeting = Meeting(rig.faults, "append", names)
    driver.run(1)
    assert meeting.count == 2


def test_who_hangs_keeps_no_other_member_from_storing(rig: Rig, gates: Gates) -> None:
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, PARTITIONS)
    hanging, *others = members(target)
    gates.closed = {(hanging, "append")}
    began = len(rig.faults.trace)
    batch_commit.commit(target, reports)
    trace = rig.faults.trace[began:]
    own = [n for n, op in enumerate(trace) if op.call == "append" and op.place in others]
    joins = [n for n, op in enumerate(trace) if op.call == "put_new"]
    assert len(own) == 2
    assert max(own) < min(joins)
