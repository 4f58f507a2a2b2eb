"""Readers that began before all bookies of a ledger were emptied and taken away (RB-22)."""

import logging
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pytest

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import CorruptDataError
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange, ReadTask
from tests.integration.rig import SCHEMA, Rig, flat, rows_from

from .scenes import PARTITIONS, members, take, written
from .test_repair import VALUES

COUNT = sum(batch.num_rows for partition in PARTITIONS for batch in partition)


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", bookie_count=7)


def move_all(rig: Rig, ledger_id: int) -> None:
    """One bookie after the other is emptied, its disk is wiped, and gone."""
    before = members(rig, ledger_id)
    for name in before:
        assert verbs.decommission(rig.uri, bookies=[name]).left == []
        rig.wipe(name)
        rig.lose(name)
    assert set(before).isdisjoint(members(rig, ledger_id))


def planned(rig: Rig, count: int) -> Sequence[ReadTask]:
    with Cluster(rig.uri) as cluster:
        log = cluster.log(rig.log_name).value
        return plan_log(cluster, log, OffsetRange(0, count), Password(), 2**30)


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[object]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_rb_22_a_read_that_was_planned_before_finds_the_files_where_they_are(rig: Rig) -> None:
    ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    [task] = planned(rig, COUNT)
    move_all(rig, ledger_id)
    assert sorted(rows_of(SliceReader(SCHEMA).read(task))) == sorted(flat(PARTITIONS))


def test_rb_22_a_read_goes_on_where_it_was_when_all_went(rig: Rig) -> None:
    partitions = [[rows_from(0, 40)]]
    ledger_id = rig.write(partitions, (3, 3, 2)).ledger_id
    [task] = planned(rig, 40)
    batches = SliceReader(SCHEMA).read(task)
    first = next(batches)
    move_all(rig, ledger_id)
    assert rows_of(iter([first, *batches])) == flat(partitions)


def test_a_copy_that_was_made_good_since_it_was_stepped_over_is_read(
    make_rig: Callable[..., Rig],
) -> None:
    """The one that was read in its place is gone by then, and rows may be left out."""
    rig = make_rig(kind="file", bookie_count=2)
    partitions = [[rows_from(0, 40)]]
    rig.write(partitions, (2, 2, 1))
    [task] = planned(rig, 40)
    first, second = (address.bookie_id for address in task.slices[0].replicas)
    take(rig, first, "/entries/")
    reader = SliceReader(SCHEMA, fails_on_loss=False)
    batches = reader.read(task)
    begun = next(batches)
    assert [fault.bookie_id for fault in reader.faults] == [first]
    assert verbs.repair(rig.uri).left == []
    take(rig, second, "/entries/")
    assert rows_of(iter([begun, *batches])) == flat(partitions)


def test_what_nobody_has_any_more_is_an_error_as_before(rig: Rig) -> None:
    ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    [task] = planned(rig, COUNT)
    for name in members(rig, ledger_id):
        rig.lose(name)
    with pytest.raises(CorruptDataError, match="no replica gives offset 0"):
        list(SliceReader(SCHEMA).read(task))


def test_rb_22_an_open_reader_finds_bookies_that_were_added_since(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", bookie_count=3)
    ledger_id = written(rig)
    with BookKeeper(rig.uri) as keeper:
        reader = keeper.open_ledger(ledger_id)
        with Cluster(rig.uri) as cluster:
            for number in range(3):
                cluster.add_bookie("", f"{rig.urls['bookie-1']}-{number}", accepts_risk=True)
        move_all(rig, ledger_id)
        assert [entry.value for entry in reader.read()] == VALUES


def test_rb_22_who_follows_a_log_and_what_was_planned_of_it_go_on(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(rig.log_name)
        with log.writer() as writer:
            for value in VALUES[:6]:
                writer.append(value)
            writer.roll()
            for value in VALUES[6:]:
                writer.append(value)
        [task] = planned(rig, len(VALUES))
        followed = log.follow(timeout=0.0)
        found = [next(followed).value]
        for ledger_id in (0, 1):
            for name in members(rig, ledger_id):
                if len(rig.urls) > 4:
                    assert verbs.decommission(rig.uri, bookies=[name]).left == []
                    rig.lose(name)
                    del rig.urls[name]
        found += [entry.value for entry in followed]
    assert found == VALUES
    reader = SliceReader(pa.schema([("value", pa.binary())]))
    assert [row for (row,) in rows_of(reader.read(task))] == VALUES  # type: ignore[misc]


def test_a_ledger_that_moved_is_read_without_a_warning(
    rig: Rig, said: Callable[..., list[str]]
) -> None:
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(rig.log_name)
        with log.writer() as writer:
            for value in VALUES:
                writer.append(value)
        move_all(rig, 0)
        assert [entry.value for entry in log.read()] == VALUES
    assert [row for (row,) in rows_of(_planned_rows(rig))] == VALUES  # type: ignore[misc]
    assert said(logging.WARNING, "skipped a copy") == []


def test_rows_that_moved_are_planned_without_a_warning(
    rig: Rig, said: Callable[..., list[str]]
) -> None:
    move_all(rig, rig.write(PARTITIONS, (3, 3, 2)).ledger_id)
    assert sorted(rig.rows()) == sorted(flat(PARTITIONS))
    assert said(logging.WARNING, "skipped a copy") == []


def _planned_rows(rig: Rig) -> Iterator[pa.RecordBatch]:
    [task] = planned(rig, len(VALUES))
    return SliceReader(pa.schema([("value", pa.binary())])).read(task)
