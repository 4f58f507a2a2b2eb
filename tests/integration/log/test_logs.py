"""What a log makes of its writes: schemas, generations, transactions."""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError, InvalidRequestError, OutcomeUnknownError
from bkspark.log.batch import commit as batch_commit
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import Transaction
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of, rows_from

Rigs = Callable[..., Rig]


def batch(**columns: pa.Array) -> list[list[pa.RecordBatch]]:
    return [[pa.record_batch(list(columns.values()), names=list(columns))]]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (pa.schema([("m", pa.int64())]), "unexpected column m"),
        (pa.schema([*SCHEMA, ("t", pa.string())]), "unexpected column t"),
        (pa.schema([("n", pa.float64()), ("s", pa.string())]), "n is double in place of int64"),
        (pa.schema([("s", pa.int64()), ("n", pa.int64())]), "s is int64 in place of string"),
    ],
)
def test_another_schema_is_an_error_that_shows_the_difference(
    rig: Rig, schema: pa.Schema, words: str
) -> None:
    rig.write(partitions_of(3))
    with pytest.raises(InvalidRequestError, match=words):
        rig.target(schema=schema)
    assert rig.rows() == flat(partitions_of(3))


def test_a_batch_of_another_schema_fails_its_task(rig: Rig) -> None:
    target = rig.target()
    other = pa.record_batch([pa.array([1])], names=["x"])
    with pytest.raises(InvalidRequestError, match="unexpected column x"):
        rig.tasks(target, [[other]])


def test_merge_schema_adds_columns_and_old_rows_have_nulls(rig: Rig) -> None:
    rig.write(partitions_of(2))
    wider = pa.schema([*SCHEMA, pa.field("t", pa.list_(pa.int32()))])
    rows = batch(n=pa.array([7]), s=pa.array(["x"]), t=pa.array([[1, 2]], pa.list_(pa.int32())))
    with pytest.raises(InvalidRequestError):
        rig.target(schema=wider)
    rig.write(rows, schema=wider, merges_schema=True)
    assert rig.rows() == [(0, "row 0", None), (1, "row 1", None), (7, "x", [1, 2])]


def test_merge_schema_takes_no_new_column_that_must_have_a_value(rig: Rig) -> None:
    rig.write(partitions_of(2))
    strict = pa.schema([*SCHEMA, pa.field("t", pa.int8(), nullable=False)])
    with pytest.raises(InvalidRequestError, match="must be nullable"):
        rig.target(schema=strict, merges_schema=True)


def test_two_writes_that_add_the_same_column_both_join(make_rig: Rigs) -> None:
    rig = make_rig()
    rig.write(partitions_of(1))
    wider = pa.schema([*SCHEMA, pa.field("t", pa.int8())])
    rows = batch(n=pa.array([7]), s=pa.array(["x"]), t=pa.array([1], pa.int8()))
    targets = [rig.target(schema=wider, merges_schema=True) for _ in range(2)]
    for target in targets:
        batch_commit.commit(target, rig.tasks(target, rows))
    assert rig.rows() == [(0, "row 0", None), (7, "x", 1), (7, "x", 1)]


def test_a_schema_that_changed_since_the_plan_stops_the_commit(make_rig: Rigs) -> None:
    rig = make_rig()
    target = rig.target()
    reports = rig.tasks(target, partitions_of(2))
    other = pa.schema([("x", pa.int8())])
    rig.write(batch(x=pa.array([1], pa.int8())), schema=other)
    with pytest.raises(InvalidRequestError, match="schema does not match"):
        batch_commit.commit(target, reports)
    batch_commit.abort(target)
    assert rig.rows() == [(1,)]


def test_overwrite_is_a_new_generation_with_offsets_from_0(rig: Rig) -> None:
    rig.write(partitions_of(5))
    rig.write(partitions_of(5, first=5))
    before = rig.log()
    assert before is not None
    other = pa.schema([("x", pa.string())])
    rig.write(batch(x=pa.array(["new"])), schema=other, is_overwrite=True)
    after = rig.log()
    assert after is not None
    assert rig.rows() == [("new",)]
    assert after.generation == before.generation + 1
    assert (after.first_offset, after.end_offset) == (0, 1)
    assert {x.ledger_id for x in before.ledgers} <= set(after.dropped.ids)


def test_until_an_overwrite_commits_the_old_rows_are_there(rig: Rig) -> None:
    rig.write(partitions_of(5))
    target = rig.target(is_overwrite=True)
    reports = rig.tasks(target, partitions_of(2, first=70))
    assert rig.rows() == flat(partitions_of(5))
    batch_commit.commit(target, reports)
    assert rig.rows() == flat(partitions_of(2, first=70))


def test_an_overwrite_by_nothing_empties_the_log_and_keeps_its_schema(rig: Rig) -> None:
    rig.write(partitions_of(5))
    rig.write([], is_overwrite=True)
    log = rig.log()
    assert log is not None
    assert log.ledgers == ()
    assert rig.rows() == []
    rig.write(partitions_of(1))
    assert rig.rows() == flat(partitions_of(1))


def test_a_transaction_is_in_the_log_once(rig: Rig) -> None:
    for version, expected in ((1, 2), (1, 2), (0, 2), (2, 4), (1, 4)):
        rig.write(partitions_of(2), transaction=Transaction("app", version))
        assert len(rig.rows()) == expected
    rig.write(partitions_of(2), transaction=Transaction("other", 0))
    assert len(rig.rows()) == 6


def test_a_done_transaction_writes_nothing_and_reports_nothing(rig: Rig) -> None:
    done = Transaction("app", 1)
    rig.write(partitions_of(2), transaction=done)
    files = {bookie_id: rig.names(bookie_id) for bookie_id in rig.urls}
    target = rig.target(transaction=done)
    assert target.is_done
    result = batch_commit.commit(target, rig.tasks(target, partitions_of(2)))
    assert result.row_count == 0
    batch_commit.abort(target)
    assert {bookie_id: rig.names(bookie_id) for bookie_id in rig.urls} == files


def test_of_two_writes_of_one_transaction_at_a_time_one_joins(rig: Rig) -> None:
    done = Transaction("app", 1)
    targets = [rig.target(transaction=done) for _ in range(2)]
    reports = [rig.tasks(target, partitions_of(3)) for target in targets]
    counts = [
        batch_commit.commit(target, report).row_count for target, report in zip(targets, reports)
    ]
    assert counts == [3, 0]
    assert rig.rows() == flat(partitions_of(3))
    log = rig.log()
    assert log is not None
    assert targets[1].ledger_id in log.dropped.ids


def test_an_empty_write_commits_its_transaction(rig: Rig) -> None:
    done = Transaction("app", 1)
    result = rig.write(partitions_of(0, 0), transaction=done)
    assert result.row_count == 0
    rig.write(partitions_of(3), transaction=done)
    assert rig.rows() == []


def test_transactions_survive_an_overwrite(rig: Rig) -> None:
    done = Transaction("app", 5)
    rig.write(partitions_of(2), transaction=done)
    rig.write(partitions_of(1, first=9), is_overwrite=True)
    rig.write(partitions_of(2), transaction=done)
    rig.write(partitions_of(2), transaction=done, is_overwrite=True)
    assert rig.rows() == flat(partitions_of(1, first=9))


def test_an_aborted_write_never_joins(rig: Rig) -> None:
    target = rig.target()
    reports = rig.tasks(target, partitions_of(2))
    batch_commit.abort(target)
    batch_commit.abort(target)
    assert rig.log() is None
    with pytest.raises(OutcomeUnknownError):
        batch_commit.commit(target, reports)
    assert rig.log() is None
    rig.write(partitions_of(4))
    with pytest.raises(BookKeeperError):
        batch_commit.commit(target, reports)
    assert rig.rows() == flat(partitions_of(4))


def test_a_second_commit_of_one_target_does_not_double_its_rows(rig: Rig) -> None:
    target = rig.target()
    reports = rig.tasks(target, partitions_of(4))
    batch_commit.commit(target, reports)
    with pytest.raises(BookKeeperError):
        batch_commit.commit(target, reports)
    assert rig.rows() == flat(partitions_of(4))


def test_a_log_keeps_the_settings_it_was_made_with(rig: Rig) -> None:
    rig.write(partitions_of(1), (4, 3, 2))
    assert rig.target().quorum == Quorum(4, 3, 2)
    with pytest.raises(InvalidRequestError, match="4/3/2"):
        rig.target((3, 3, 2))
    with pytest.raises(InvalidRequestError, match="digestType"):
        rig.target(digest_type="MAC")


def test_a_read_pins_one_version_of_the_log(rig: Rig) -> None:
    from bkspark.cluster.password import Password
    from bkspark.log.reading.read_slices import plan_log
    from bkspark.log.reading.slice_reader import SliceReader
    from bkspark.log.reading.slices import OffsetRange

    rig.write([[rows_from(0, 5)]])
    with Cluster(rig.uri) as cluster:
        log = cluster.log(rig.log_name).value
        tasks = plan_log(cluster, log, OffsetRange(0, 5), Password(), 2**30)
    rig.write(partitions_of(5, first=5))
    rig.write(partitions_of(1, first=90), is_overwrite=True)
    rows = [row for task in tasks for b in SliceReader(SCHEMA).read(task) for row in b.to_pylist()]
    assert [row["n"] for row in rows] == list(range(5))
    assert replace(log).end_offset == 5


def test_aborting_a_write_that_was_done_before_changes_nothing(rig: Rig) -> None:
    once = {"transaction": Transaction("app", 1)}
    rig.write(partitions_of(4), **once)
    target, before = rig.target(**once), rig.log()
    assert target.is_done
    batch_commit.abort(target)
    assert rig.log() == before
    assert rig.rows() == flat(partitions_of(4))
