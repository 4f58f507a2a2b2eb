"""What a process loads that Spark starts for a log: each query pays for it."""

import json
import subprocess
import sys

import pytest
from pyspark.sql.types import StructType

from bkspark.errors import InvalidRequestError
from bkspark.spark import source
from bkspark.spark.schema import utc_for

NOT_NEEDED = {
    "asyncio",
    "boto3",
    "bkspark.bookie.memory",
    "bkspark.bookie.object_store",
    "bkspark.ledger.handles.read_handle",
    "bkspark.admin.views",
    "bkspark.metadata.object_store",
    "bkspark.metadata.zookeeper",
    "fsspec",
    "kazoo",
    "pyarrow.compute",
    "s3fs",
}


def test_a_query_over_files_loads_no_other_storage_and_no_handles(small_cluster, numbers) -> None:
    small_cluster.append("a", [numbers(0, 20)])
    program = f"""
import json, sys
import pyspark.sql.streaming.python_streaming_source_runner
before = set(sys.modules)
from bkspark.spark.source import BookKeeperDataSource
source = BookKeeperDataSource({{"metadataServiceUri": {small_cluster.uri!r}, "path": "a"}})
reader = source.streamReader(source.schema())
start = reader.initialOffset()
[part] = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
assert sum(batch.num_rows for batch in reader.read(part)) == 20
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert "bkspark.log.reading.slice_reader" in loaded
    assert NOT_NEEDED.isdisjoint(loaded), NOT_NEEDED.intersection(loaded)


def test_a_spark_before_4_2_is_told_that_it_cannot_read_a_log_as_a_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It lacks the module; everything else of the source works without."""
    monkeypatch.setattr(source, "find_spec", lambda _name: None)
    made = source.BookKeeperDataSource({"metadataServiceUri": "file:///nowhere", "path": "a"})
    reader = made.streamReader(StructType([]))
    for question in (reader.initialOffset, reader.latestOffset):
        with pytest.raises(InvalidRequestError, match=r"as a stream needs Spark 4\.2, and this is"):
            question()


def test_times_are_utc_for_each_spark() -> None:
    def spark_4_1(schema: object, timestamp_utc: bool = True) -> object:
        return schema, timestamp_utc

    def spark_4_2(schema: object, *, timezone: str | None = None) -> object:
        return schema, timezone

    assert utc_for(spark_4_1) == {}
    assert utc_for(spark_4_2) == {"timezone": "UTC"}
