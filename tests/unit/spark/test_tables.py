"""A write that would fill a new table is told from others by what its tasks are told."""

import secrets
from collections.abc import Mapping

import pytest
from pyspark import TaskContext
from pyspark.sql.types import LongType, StructField, StructType

from bkspark.cluster.cluster import init_cluster
from bkspark.errors import InvalidRequestError
from bkspark.spark.options import parse, require_no_new_table
from bkspark.spark.writer import BookKeeperWriter


class Task:
    """A task with these local properties."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = properties

    def partitionId(self) -> int:
        return 0

    def getLocalProperty(self, key: str) -> str | None:
        return self.properties.get(key)


FILLS_A_TABLE = Task({"spark.sql.execution.id": "3", "spark.sql.execution.root.id": "2"})

OTHERS = {
    "no task": None,
    "a job without SQL": Task({}),
    "an execution of its own": Task(
        {"spark.sql.execution.id": "2", "spark.sql.execution.root.id": "2"}
    ),
    "a Spark that names no root": Task({"spark.sql.execution.id": "2"}),
    "a root that names no execution": Task({"spark.sql.execution.root.id": "2"}),
    "a function of a micro-batch": Task(
        {
            "spark.sql.execution.id": "3",
            "spark.sql.execution.root.id": "2",
            "streaming.sql.batchId": "0",
        }
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_writes_are_let_through(case: str) -> None:
    require_no_new_table(OTHERS[case])


def test_a_table_is_refused_before_a_row_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    uri = f"memory://{secrets.token_hex(8)}"
    init_cluster(uri, [f"memory://{secrets.token_hex(8)}" for _ in range(3)])
    options = parse({"metadataServiceUri": uri, "path": "events"})
    writer = BookKeeperWriter(options, StructType([StructField("id", LongType())]), overwrite=False)
    monkeypatch.setattr(TaskContext, "get", lambda: FILLS_A_TABLE)
    rows = iter([])
    with pytest.raises(InvalidRequestError, match=r"use save\(NAME\) in place of saveAsTable"):
        writer.write(rows)
