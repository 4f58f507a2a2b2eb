"""Compactions that lose, and readers of what was compacted under them."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bkspark import verbs
from bkspark.admin.collecting.collection import TO_FREE
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    NoSuchEntryError,
)
from bkspark.log import compaction
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from bkspark.log.truncation import truncate
from bkspark.protocol.log.data_loss import LogGeneration
from tests.integration.log_scenes import fill, values
from tests.integration.rig import LOG, SCHEMA, Rig, flat, partitions_of

from .small_ledgers import compacted, filled, ids

WITH_OFFSETS = pa.schema([("_offset", pa.int64()), *SCHEMA])


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=4)


def planned(rig: Rig) -> tuple[Any, SliceReader]:
    """All of the log as a reader has planned it, who has not begun."""
    with Cluster(rig.uri) as cluster:
        log = cluster.log(LOG).value
        tasks = plan_log(cluster, log, OffsetRange(0, log.end_offset), Password(), None)
    return tasks, SliceReader(WITH_OFFSETS)


def offsets_of(tasks: Any, reader: SliceReader) -> list[int]:
    found = [batch.column(0).to_pylist() for task in tasks for batch in reader.read(task)]
    return sorted(offset for batch in found for offset in batch)


# --- what goes wrong ------------------------------------------------------------------------------


def changed_tables(monkeypatch: pytest.MonkeyPatch, change: Callable[[pa.Table], pa.Table]) -> None:
    """Whoever reads in order gets other tables than there are."""
    real = compaction.OrderedRead.__iter__
    monkeypatch.setattr(compaction.OrderedRead, "__iter__", lambda self: map(change, real(self)))


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.take(list(range(table.num_rows))[::-1]),
        lambda table: pa.concat_tables([table.slice(0, 1), table.slice(0, 1), table.slice(2)]),
    ],
)
def test_rows_that_come_out_of_order_or_twice_are_not_written(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, change: Callable[[pa.Table], pa.Table]
) -> None:
    rows = filled(rig, 2)
    with monkeypatch.context() as patched:
        changed_tables(patched, change)
        [left] = verbs.compact(rig.uri, log=LOG).left
        assert "did not give each offset from 0 on exactly once" in left.reason
    assert rig.rows() == rows


def test_rows_that_do_not_come_are_missed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = filled(rig, 2)
    with monkeypatch.context() as patched:
        changed_tables(patched, lambda table: table.slice(0, 13))
        [left] = verbs.compact(rig.uri, log=LOG).left
        assert "gives no offset 13, before 14" in left.reason
    assert rig.rows() == rows


def before_the_exchange(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    real = compaction._Rewriting._swap

    def swap(self: Any, ledger_id: int) -> None:
        act()
        real(self, ledger_id)

    monkeypatch.setattr(compaction._Rewriting, "_swap", swap)


def test_who_loses_the_exchange_drops_what_it_wrote(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = filled(rig, 4)

    def truncated() -> None:
        with Cluster(rig.uri) as cluster:
            truncate(cluster, LOG, 7)

    with monkeypatch.context() as patched:
        before_the_exchange(patched, truncated)
        [left] = verbs.compact(rig.uri, log=LOG).left
        assert "was truncated, overwritten or compacted from offset 0 to 27" in left.reason
    log = rig.log()
    assert log is not None
    assert (rig.rows(), log.has_any_dropped) == (rows[7:], False)
    with Cluster(rig.uri) as cluster:
        states = {i: cluster.ledgers.get(str(i)) for i in cluster.ledger_ids()}
    deleted = [i for i, seen in states.items() if seen and seen.value.state.value == "DELETING"]
    assert len(deleted) == 2
    assert set(states) - set(deleted) == set(log.listed_ids)


def test_a_log_made_anew_is_told_apart(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(rig, 2)
    other = partitions_of(4, first=90)
    with monkeypatch.context() as patched:
        before_the_exchange(patched, lambda: rig.write(other, is_overwrite=True))
        [left] = verbs.compact(rig.uri, log=LOG).left
        assert "it is at generation 2, not 1 any more" in left.reason
    assert rig.rows() == flat(other)


# --- readers --------------------------------------------------------------------------------------


def test_who_has_planned_to_read_goes_on_for_a_day(rig: Rig) -> None:
    filled(rig, 3)
    tasks, reader = planned(rig)
    old = ids(rig)
    compacted(rig)
    assert verbs.collect(rig.uri).done["ledgers"] == 0
    assert offsets_of(tasks, reader) == list(range(21))
    assert rig.ledger(old[0]).last_entry_id == 6  # by its id, too
    report = verbs.collect(rig.uri, abandoned_after=0)
    assert report.done["ledgers"] == 3
    assert rig.rows() == filled_rows(3)


def test_what_a_collection_leaves_to_readers_is_said_in_bytes(rig: Rig) -> None:
    filled(rig, 3)
    compacted(rig)
    report = verbs.collect(rig.uri)
    later = report.plan["bytes_later"]
    assert (report.plan["bytes"], report.counters[TO_FREE]) == (0, later)
    report = verbs.collect(rig.uri, abandoned_after=0)
    assert (report.done["bytes"], report.counters[TO_FREE]) == (later, 0)
    assert later > 0


def filled_rows(count: int) -> list[tuple[Any, ...]]:
    return [row for n in range(count) for row in flat(partitions_of(3, 4, first=10 * n))]


def test_who_takes_longer_is_told_and_reads_again(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(LOG)
        sent = fill(log, 2, 2)
        with Cluster(rig.uri) as cluster:
            record = cluster.log(LOG).value
            tasks = plan_log(cluster, record, OffsetRange(0, 4), Password(), None)
            compacted(rig)
            assert verbs.collect(rig.uri, abandoned_after=0).done["ledgers"] == 2
            with pytest.raises(NoSuchEntryError, match="was compacted"):
                plan_log(cluster, record, OffsetRange(0, 4), Password(), None)
        schema = pa.schema([("value", pa.binary())])
        for fails_on_loss in (True, False):
            slices = SliceReader(
                schema, fails_on_loss=fails_on_loss, log=LogGeneration(LOG, record.generation)
            )
            with pytest.raises(NoSuchEntryError, match="the offsets have not changed"):
                list(slices.read(tasks[0]))
        assert values(log) == sent
