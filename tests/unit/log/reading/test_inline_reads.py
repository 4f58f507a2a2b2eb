"""Planning and reading ledgers whose rows lie in their journals."""

import logging
import pickle
import shutil
from collections.abc import Iterator

import pyarrow as pa
import pytest

import bkspark
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import CorruptDataError, InvalidRequestError, UnauthorizedError
from bkspark.log.reading import ordered_read
from bkspark.log.reading.ordered_read import InlineRead, read_ledger_in_order
from bkspark.log.reading.read_slices import plan_ledger
from bkspark.log.reading.slice_reader import InlinePlace, SliceReader
from bkspark.log.reading.slices import InlineSlice, OffsetRange
from tests.thorough import always

WANTED = pa.schema([("value", pa.binary()), ("_entry_id", pa.int64()), ("_offset", pa.int64())])


@pytest.fixture
def opened(small_cluster):
    with bkspark.BookKeeper(small_cluster.uri) as bookkeeper:
        yield bookkeeper


@pytest.fixture
def cluster(small_cluster):
    with Cluster(small_cluster.uri) as found:
        yield found


def written(bookkeeper, groups, *, closes=True, **settings):
    """A ledger of groups of these sizes; entries are their ids as text."""
    handle = bookkeeper.create_ledger(**settings)
    number = 0
    for size in groups:
        handle.append_many([b"%d" % n for n in range(number, number + size)])
        number += size
    if closes:
        handle.close()
    else:
        handle.release()
    return handle


def read(cluster, ledger_id, begin, end, **options):
    password = options.get("password", Password())
    task_bytes = options.pop("task_bytes", 2**30)
    ledger = cluster.ledger(ledger_id).value
    tasks = plan_ledger(cluster, ledger, OffsetRange(begin, end), password, task_bytes)
    reader = SliceReader(WANTED, **options)
    tasks = pickle.loads(pickle.dumps(tasks))
    rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
    assert [int(row["value"]) for row in rows] == [row["_entry_id"] for row in rows]
    assert [row["_offset"] for row in rows] == [row["_entry_id"] for row in rows]
    return [row["_entry_id"] for row in rows]


@pytest.mark.parametrize("sizes", always([(5, 3, 2)], [(3, 3, 2), (5, 3, 2), (4, 2, 1), (1, 1, 1)]))
@pytest.mark.parametrize(("begin", "end"), [(0, 12), (0, 99), (4, 5), (2, 11), (7, 7), (12, 12)])
def test_ranges(opened, cluster, sizes, begin, end):
    e, qw, qa = sizes
    settings = {"ensemble_size": e, "write_quorum_size": qw, "ack_quorum_size": qa}
    handle = written(opened, [1, 4, 2, 5], **settings)
    assert read(cluster, handle.ledger_id, begin, end) == list(range(begin, min(end, 12)))


@pytest.mark.parametrize("closes", [True, False])
def test_recovered_or_closed_the_rows_are_shared_by_tasks(opened, cluster, closes):
    handle = written(opened, [2, 3, 4], closes=closes)
    opened.recover_ledger(handle.ledger_id)
    ledger = cluster.ledger(handle.ledger_id).value
    tasks = plan_ledger(cluster, ledger, OffsetRange(0, 9), Password(), task_bytes=3)
    pieces = [item for task in tasks for item in task.slices]
    assert all(isinstance(item, InlineSlice) for item in pieces)
    assert [item.begin_entry for item in pieces] == [0, 3, 6]
    assert [item.end_entry for item in pieces] == [3, 6, 9]
    assert [item.turn for item in pieces] == [0, 1, 2]
    assert read(cluster, handle.ledger_id, 0, 9, task_bytes=3) == list(range(9))


def test_what_was_planned_as_confirmed_is_read_though_the_task_sees_less(opened, cluster):
    handle = written(opened, [2, 3], closes=False)
    ledger = cluster.ledger(handle.ledger_id).value
    assert read(cluster, ledger.ledger_id, 0, 5) == [0, 1, 2, 3, 4]


def test_one_lost_bookie_is_stepped_over_and_named(small_cluster, opened, cluster):
    handle = written(opened, [4, 4])
    lost = handle.metadata.last_fragment.ensemble[handle.ledger_id % 3].bookie_id
    shutil.rmtree(small_cluster.bookie(lost))
    ledger = cluster.ledger(handle.ledger_id).value
    [task] = plan_ledger(cluster, ledger, OffsetRange(0, 8), Password(), 2**30)
    reader = SliceReader(WANTED)
    assert sum(batch.num_rows for batch in reader.read(task)) == 8
    assert [fault.bookie_id for fault in reader.faults] == [lost]


def test_only_lost_groups_are_left_out(small_cluster, opened, cluster, caplog):
    settings = {"ensemble_size": 3, "write_quorum_size": 1, "ack_quorum_size": 1}
    handle = written(opened, [1] * 7, **settings)
    lost = handle.metadata.last_fragment.ensemble[1].bookie_id
    shutil.rmtree(small_cluster.bookie(lost))
    with pytest.raises(CorruptDataError, match=f"no bookie gives entry 1 of .*{lost}"):
        read(cluster, handle.ledger_id, 0, 7)
    with caplog.at_level(logging.WARNING):
        found = read(cluster, handle.ledger_id, 0, 7, fails_on_loss=False)
    assert found == [0, 2, 3, 5, 6]
    assert sum("left out 1 rows" in record.message for record in caplog.records) == 2


def test_a_password_is_needed(opened, cluster):
    handle = written(opened, [3], digest_type="MAC", password="secret")
    assert read(cluster, handle.ledger_id, 0, 3, password=Password(literal="secret")) == [0, 1, 2]
    with pytest.raises(UnauthorizedError):
        read(cluster, handle.ledger_id, 0, 3)


@pytest.mark.parametrize("window", [1, 4, 100])
def test_in_order_in_windows(opened, cluster, monkeypatch, window):
    monkeypatch.setattr(ordered_read, "WINDOW_ROWS", window)
    handle = written(opened, [3, 1, 5])
    ledger = cluster.ledger(handle.ledger_id).value
    found = read_ledger_in_order(cluster, ledger, 1, 8, Password())
    assert isinstance(found, InlineRead)
    table = pa.concat_tables(found)
    assert table.column_names == ["_entry_id", "value"]
    assert table["_entry_id"].to_pylist() == list(range(1, 8))


def test_the_read_handle_says_how_to_read_a_dataframes_ledger(small_cluster, opened, numbers):
    ledger_id = small_cluster.append("log", [numbers(0, 9)])
    reader = opened.open_ledger(ledger_id)
    with pytest.raises(InvalidRequestError, match="bkspark ledger read"):
        reader.read_arrow()


@pytest.fixture
def log(opened):
    """A log with two entries, and a follower that has read the first."""
    log = opened.create_log("a")
    with log.writer() as writer:
        writer.append_many([b"0", b"1"])
        assert log.wait_for(1, 60)
        yield log


def read_entry(log, offset, place):
    view = log._watch.look()
    rows = ordered_read.read_view_in_order(
        log._cluster, view, offset, offset + 1, Password(), place
    )
    [table] = rows
    assert table.to_pylist() == [{"_offset": offset, "value": b"%d" % offset}]
    return rows.faults


def test_a_reader_goes_on_in_an_open_ledger(log):
    place = InlinePlace()
    read_entry(log, 0, place)
    handle = place.handle
    read_entry(log, 1, place)
    assert handle is not None
    assert place.handle is handle
    assert place.take(handle.ledger_id + 1) is None


class Stuck:
    """A handle that knows places of bookies that are elsewhere now."""

    ledger_id: int

    def go_on(self, _metadata: object) -> None:
        pass

    def batches(self, _first: int, _last: int) -> Iterator[object]:
        raise CorruptDataError("its bookies are elsewhere")
        yield


def test_if_it_cannot_go_on_it_looks_the_bookies_up_again(log):
    place = InlinePlace()
    read_entry(log, 0, place)
    stuck = Stuck()
    stuck.ledger_id = place.handle.ledger_id
    place.handle = stuck
    assert not read_entry(log, 1, place)
    assert place.handle is not stuck


def test_it_does_not_go_on_after_a_fault(small_cluster, log):
    place = InlinePlace()
    ledger_id = list(log._watch.look().metadata)[-1]
    members = log._cluster.ledger(ledger_id).value.last_fragment.ensemble
    shutil.rmtree(small_cluster.bookie(members[ledger_id % 3].bookie_id))
    assert read_entry(log, 0, place)
    assert place.handle is None


def test_the_plan_of_a_logs_ledger_of_bytes_reads_no_journal(small_cluster, log):
    view = log._watch.look()
    ledger = list(view.metadata.values())[-1]
    for member in ledger.last_fragment.ensemble:
        shutil.rmtree(small_cluster.bookie(member.bookie_id))
    [task] = plan_ledger(log._cluster, ledger, OffsetRange(0, 2), Password(), 2**30)
    assert [type(item) for item in task.slices] == [InlineSlice]
