"""What a table's owner does while it is read, what a log must not rely on, and what is refused."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bkspark.errors import TableChangedError, UnsupportedTableError
from bkspark.table.reading import read_range
from bkspark.table.table import open_table

from .layouts import ROWS, Owner

Conf = Callable[[dict[str, str]], AbstractContextManager[None]]
SCHEMA = pa.schema([("v", pa.string())])


def begun(place: str, schema: pa.Schema = SCHEMA) -> Iterator[pa.RecordBatch]:
    """A read of all rows of which nothing has been asked yet."""
    table = open_table(place)
    snapshot = table.snapshot()
    return read_range(table, snapshot, 0, ROWS, schema, snapshot.columns)


def test_a_read_goes_on_while_its_files_are_optimized_and_vacuumed(
    delta_spark: SparkSession, place: str
) -> None:
    owner = Owner(delta_spark, place)
    owner.create()
    whole = pa.Table.from_batches(list(begun(place))).sort_by("_offset")
    reads = [begun(place) for _ in range(2)]
    first = [next(reads[0])]
    owner.sql("OPTIMIZE TABLE_HERE ZORDER BY (v)")
    owner.sql("VACUUM TABLE_HERE RETAIN 0 HOURS")
    for read, given in zip(reads, [first, []], strict=True):
        found = pa.Table.from_batches([*given, *read]).sort_by("_offset")
        assert found.equals(whole)


def test_commits_say_what_changed_rows(delta_spark: SparkSession, place: str) -> None:
    owner = Owner(delta_spark, place)
    owner.create()
    how = {"txnAppId": "log", "txnVersion": "7", "userMetadata": "intent"}
    owner.append(owner.rows(ROWS, ROWS + 1), **how)
    for statement in (
        "DELETE FROM TABLE_HERE WHERE _offset = 5",
        "OPTIMIZE TABLE_HERE",
        "ALTER TABLE TABLE_HERE SET TBLPROPERTIES ('bkspark.log' = 'x')",
        "RESTORE TABLE TABLE_HERE TO VERSION AS OF 3",
    ):
        owner.sql(statement)
    table = open_table(place)
    newest = table.snapshot()
    found = table.commits(2, newest.version)
    assert [
        (commit.operation, commit.adds_rows, commit.removes_rows, commit.changes_metadata)
        for commit in found
    ] == [
        ("WRITE", True, False, False),
        ("DELETE", True, True, False),
        ("OPTIMIZE", False, False, False),
        ("SET TBLPROPERTIES", False, False, True),
        ("RESTORE", True, True, True),
    ]
    assert (found[0].transactions, found[0].user_metadata) == ({"log": 7}, "intent")
    assert all(commit.time_ms for commit in found)
    # The transaction stays, whatever became of its rows: it proves nothing.
    assert newest.transactions == {"log": 7}


def test_a_shallow_clone_is_refused(delta_spark: SparkSession, place: str) -> None:
    owner = Owner(delta_spark, place)
    owner.create()
    delta_spark.sql(f"CREATE TABLE delta.`{place}-clone` SHALLOW CLONE {owner.table}")
    with pytest.raises(UnsupportedTableError, match="outside of its folder"):
        open_table(f"{place}-clone").snapshot()


def test_an_unknown_feature_is_refused_by_its_name(delta_spark: SparkSession, place: str) -> None:
    delta_spark.sql(f"CREATE TABLE delta.`{place}` (_offset bigint, v variant) USING delta")
    with pytest.raises(UnsupportedTableError, match="variantType"):
        open_table(place).snapshot()


@pytest.mark.parametrize(
    "column", ["date'1500-01-01' AS c", "timestamp'1500-01-01 00:00:00Z' AS c"]
)
def test_dates_of_the_julian_calendar_are_refused(
    delta_spark: SparkSession, conf: Conf, place: str, column: str
) -> None:
    settings = {
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    }
    with conf(settings):
        rows = delta_spark.range(ROWS).selectExpr("id AS _offset", column)
        rows.write.format("delta").save(place)
    wanted: Any = rows.limit(0).toArrow().schema
    with pytest.raises(TableChangedError, match="Julian calendar"):
        list(begun(place, wanted))
