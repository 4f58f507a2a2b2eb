"""Tables of a catalog are refused before a row is written; what only looks alike is not."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from places import LOG, Place, refusal
from pyspark.sql import DataFrame, SparkSession

from bkspark.errors import InvalidRequestError

from ..thorough import always  # noqa: TID252

REFUSED = "tables are not supported: use save(NAME) in place of saveAsTable"


@pytest.fixture
def three(spark: SparkSession, place: Place) -> Place:
    """A log of three rows."""
    place.write(spark.range(3))
    return place


def _create(place: Place, rows: DataFrame) -> object:
    writer = rows.writeTo("t").using("bookkeeper").option("path", LOG)
    return writer.option("metadataServiceUri", place.uri)


NEW_TABLES: dict[str, Callable[[Place, DataFrame], None]] = {
    "saveAsTable": lambda place, rows: _to_log(place, rows).mode("append").saveAsTable("t"),
    "saveAsTable, default mode": lambda place, rows: _to_log(place, rows).saveAsTable("t"),
    "saveAsTable, overwrite": lambda place, rows: (
        _to_log(place, rows).option("truncate", "true").mode("overwrite").saveAsTable("t")
    ),
    "create": lambda place, rows: _create(place, rows).create(),
    "createOrReplace": lambda place, rows: (
        _create(place, rows).option("truncate", "true").createOrReplace()
    ),
}


def _to_log(place: Place, rows: DataFrame):
    writer = rows.write.format("bookkeeper").option("path", LOG)
    return writer.option("metadataServiceUri", place.uri)


@pytest.mark.parametrize("case", always(("saveAsTable", "create"), NEW_TABLES))
def test_a_new_table_is_refused_again_and_again_and_nothing_is_written(spark, three: Place, case):
    make, before = partial(NEW_TABLES[case], three, spark.range(2)), _files(three)
    for _ in range(2):
        assert refusal(InvalidRequestError, make).startswith(REFUSED)
        assert not spark.catalog.tableExists("t")
    assert three.ids() == [0, 1, 2]
    assert _files(three) == before


def _files(place: Place) -> list[Path]:
    return [file for bookie in range(3) for file in place.entry_logs(bookie)]


@pytest.mark.thorough
def test_statements_of_sql_around_a_write_are_none_of_a_table(spark, three: Place):
    spark.range(3, 5).createOrReplaceTempView("more")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW logged USING bookkeeper "
        f"OPTIONS (metadataServiceUri '{three.uri}', path '{LOG}')"
    )
    insert = "INSERT INTO logged SELECT id FROM more"
    spark.sql("FROM more INSERT INTO logged SELECT id INSERT INTO logged SELECT id")
    spark.sql(f"EXECUTE IMMEDIATE '{insert}'")
    spark.sql(f"BEGIN DECLARE x INT = 1; {insert}; END")
    spark.sql(f"WITH q AS (SELECT * FROM more) {insert.replace('more', 'q')}")
    spark.sql(f"{insert} WHERE id > (SELECT min(id) FROM more)")
    assert three.ids() == [0, 1, 2, *[3, 4] * 5, 4]


def test_the_function_of_a_micro_batch_writes_to_a_log(spark, three: Place, tmp_path: Path):
    def copy(rows: DataFrame, number: int) -> None:
        three.write(rows, "copy", txnAppId="copy", txnVersion=number)

    query = three.follow().writeStream.foreachBatch(copy)
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert three.ids("copy") == [0, 1, 2]
