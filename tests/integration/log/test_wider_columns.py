"""Ledgers of one log whose columns were stored in different types."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bkspark
from bkspark import verbs
from bkspark.errors import InvalidRequestError
from bkspark.log.batch import commit as batch_commit
from bkspark.log.log_handle import LogHandle
from bkspark.spark.source import BookKeeperDataSource
from tests.integration.log.test_columns_by_name import by_append, by_batch
from tests.integration.rig import Rig
from tests.integration.stream_driver import Driver, the_log

PART = pa.struct([("a", pa.int32())])
PARTS = pa.struct([("a", pa.int64()), ("b", pa.float64())])
LARGE = 2**40


def rows(kind: pa.DataType, values: Sequence[Any], part: pa.DataType = PART) -> pa.RecordBatch:
    parts: list[Any] = [{"a": value} for value in values]
    return pa.record_batch({"n": pa.array(values, kind), "s": pa.array(parts, part)})


def by_stream(rig: Rig, some: pa.RecordBatch, merges: bool) -> None:
    options = {"schema": some.schema, "merges_schema": merges}
    driver = Driver(rig, f"query of {some}", options=options)
    assert driver.commit(driver.planned(0, [[some], []]))


ways = pytest.mark.parametrize("append", [by_batch, by_append, by_stream])


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "cluster", "memory")


def opened(rig: Rig) -> LogHandle:
    return bkspark.BookKeeper(rig.uri).open_log(rig.log_name)


def numbers(rig: Rig) -> list[Any]:
    table = opened(rig).read_arrow()
    assert [part and part["a"] for part in table["s"].to_pylist()] == table["n"].to_pylist()
    return list(table["n"].to_pylist())


@ways
def test_narrower_rows_are_cast_and_wider_rows_widen_the_log(rig: Rig, append: Any) -> None:
    append(rig, rows(pa.int32(), [1, None]), False)
    append(rig, rows(pa.int16(), [2]), False)
    before = the_log(rig)
    with pytest.raises(InvalidRequestError, match="n is int64 in place of int32"):
        append(rig, rows(pa.int64(), [LARGE], PARTS), False)
    assert the_log(rig) == before
    append(rig, rows(pa.int64(), [LARGE], PARTS), True)
    append(rig, rows(pa.int8(), [3]), False)
    append(rig, rows(pa.int32(), [4]), True)
    assert numbers(rig) == [1, None, 2, LARGE, 3, 4]
    assert opened(rig).schema.types == [pa.int64(), PARTS]


def test_a_write_that_began_before_the_log_was_widened_joins_it(rig: Rig) -> None:
    by_stream(rig, rows(pa.int32(), [1]), False)
    late = Driver(rig, "late", options={"schema": rows(pa.int32(), []).schema})
    batch = late.planned(0, [[rows(pa.int32(), [2])]])
    target = rig.target(schema=rows(pa.int32(), []).schema)
    reports = rig.tasks(target, [[rows(pa.int32(), [3])]])
    by_batch(rig, rows(pa.int64(), [LARGE], PARTS), True)
    assert late.commit(batch)
    assert not Driver(rig, "late", options={"schema": rows(pa.int32(), []).schema}).commit(batch)
    batch_commit.commit(target, reports)
    assert numbers(rig) == [1, LARGE, 2, 3]


def test_a_repeated_batch_is_compared_in_the_wider_type(rig: Rig) -> None:
    by_stream(rig, rows(pa.int32(), [1]), False)
    narrow, wide = (
        Driver(rig, "one", options={"schema": rows(kind, [], part).schema, "merges_schema": True})
        for kind, part in ((pa.int32(), PART), (pa.int64(), PARTS))
    )
    late = narrow.planned(0, [[rows(pa.int32(), [2])]])
    assert wide.commit(wide.planned(0, [[rows(pa.int64(), [LARGE], PARTS)]]))
    with pytest.raises(InvalidRequestError, match="with other rows"):
        narrow.commit(late)
    assert numbers(rig) == [1, LARGE]


def test_two_writes_that_widen_a_column_apart_are_not_both_taken(rig: Rig) -> None:
    by_batch(rig, rows(pa.int32(), [1]), False)
    wide = rows(pa.float64(), [0.5], pa.struct([("a", pa.float64())]))
    target = rig.target(schema=wide.schema, merges_schema=True)
    reports = rig.tasks(target, [[wide]])
    by_batch(rig, rows(pa.int64(), [LARGE], PARTS), True)
    before = the_log(rig)
    with pytest.raises(InvalidRequestError, match="widen types without loss"):
        batch_commit.commit(target, reports)
    assert the_log(rig).ledgers == before.ledgers
    assert numbers(rig) == [1, LARGE]


@ways
def test_tables_and_compactions_go_on_in_the_wider_type(rig: Rig, append: Any) -> None:
    append(rig, rows(pa.int32(), [1]), False)
    append(rig, rows(pa.int32(), [2]), False)
    append(rig, rows(pa.int64(), [LARGE], PARTS), True)
    append(rig, rows(pa.int64(), [LARGE + 1], PARTS), False)
    with opened(rig).writer() as writer:
        writer.append_many(pa.table(rows(pa.int64(), [LARGE + 2], PARTS)))
        writer.append_many(pa.table(rows(pa.int16(), [5])))
    expected = [1, 2, LARGE, LARGE + 1, LARGE + 2, 5]
    assert numbers(rig) == expected
    verbs.compact(rig.uri, log=rig.log_name)
    assert numbers(rig) == expected


def test_a_handle_casts_whole_numbers_to_floats_and_decimals(rig: Rig) -> None:
    client = bkspark.BookKeeper(rig.uri)
    columns = pa.schema([("f", pa.float64()), ("d", pa.decimal128(12, 2))])
    log = client.create_log("tables", schema=columns)
    with log.writer() as writer:
        writer.append_many(
            pa.table({"f": pa.array([7], pa.int32()), "d": pa.array([8], pa.int8())})
        )
        with pytest.raises(InvalidRequestError, match="f is int64 in place of double"):
            writer.append_many(pa.table({"f": pa.array([7], pa.int64())}))
    [row] = log.read_arrow().to_pylist()
    assert (row["f"], str(row["d"])) == (7.0, "8.00")


# --- readers that began before -------------------------------------------------------------------


class Read:
    """A batch read of Spark, and its columns as they were when it was loaded."""

    def __init__(self, rig: Rig, **options: str) -> None:
        given = {"metadataServiceUri": rig.uri, "path": rig.log_name, **options}
        self.source = BookKeeperDataSource(given)
        self.columns = self.source.schema()
        self.reader = self.source.reader(self.columns)

    def rows(self) -> list[Any]:
        parts = pickle.loads(pickle.dumps(self.reader.partitions()))
        batches = [batch for part in parts for batch in self.reader.read(part)]
        return sorted(value for batch in batches for value in batch["n"].to_pylist())


def test_a_dataframe_loaded_before_is_loaded_again(rig: Rig) -> None:
    by_batch(rig, rows(pa.int32(), [1]), False)
    early, narrow = Read(rig), Read(rig, columns="n")
    by_batch(rig, rows(pa.int32(), [2], pa.struct([("a", pa.int32()), ("c", PART)])), True)
    with pytest.raises(InvalidRequestError, match=r"s was struct<a:int> and is .*; load"):
        early.rows()
    assert narrow.rows() == [1, 2]
    by_batch(rig, rows(pa.int64(), [LARGE], PARTS), True)
    with pytest.raises(InvalidRequestError, match="n was int and is bigint; load the log again"):
        narrow.rows()
    with pytest.raises(InvalidRequestError, match="'n' is bigint, not int; load the log again"):
        narrow.source.reader(narrow.columns)
    assert Read(rig).rows() == Read(rig, columns="n").rows() == [1, 2, LARGE]


def test_a_plan_made_before_reads_what_was_there(rig: Rig) -> None:
    by_batch(rig, rows(pa.int32(), [1]), False)
    early = Read(rig)
    parts = early.reader.partitions()
    by_batch(rig, rows(pa.int64(), [LARGE], PARTS), True)
    found = [
        row for part in parts for batch in early.reader.read(part) for row in batch.to_pylist()
    ]
    assert found == [{"n": 1, "s": {"a": 1}}]


def test_a_stream_that_reads_a_widened_column_is_restarted(rig: Rig) -> None:
    def stream(**options: str) -> Any:
        given = {"metadataServiceUri": rig.uri, "path": rig.log_name, **options}
        source = BookKeeperDataSource(given)
        return source.streamReader(source.schema())

    def read(reader: Any, begin: Any, end: Any) -> list[Any]:
        batches = [batch for part in reader.partitions(begin, end) for batch in reader.read(part)]
        return sorted(n for batch in batches for n in batch["n"].to_pylist())

    by_batch(rig, rows(pa.int32(), [1]), False)
    running, narrow = stream(), stream(columns="n")
    begin = running.initialOffset()
    end = running.latestOffset(begin, running.getDefaultReadLimit())
    assert read(running, begin, end) == [1]
    by_batch(rig, rows(pa.int32(), [2], PARTS), True)
    with pytest.raises(InvalidRequestError, match=r"s was .* restart the query with a new load"):
        running.latestOffset(end, running.getDefaultReadLimit())
    with pytest.raises(InvalidRequestError, match=r"s was .* restart the query with a new load"):
        running.partitions(begin, end)
    later = narrow.latestOffset(end, narrow.getDefaultReadLimit())
    assert read(narrow, begin, later) == [1, 2]
    by_batch(rig, rows(pa.int64(), [LARGE], PARTS), True)
    with pytest.raises(InvalidRequestError, match="n was int and is bigint"):
        narrow.latestOffset(later, narrow.getDefaultReadLimit())
    again = stream()
    last = again.latestOffset(end, again.getDefaultReadLimit())
    assert read(again, begin, last) == [1, 2, LARGE]
    for reader in (running, narrow, again):
        reader.stop()
