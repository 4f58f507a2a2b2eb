"""What a process loads that Spark starts for a log: each query pays for it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from bkspark.cluster.cluster import Cluster
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


CLIENT = {"bkspark.cluster.cluster", "bkspark.cluster.records", "bkspark.metadata.files"}
"""What asks the metadata; a task does not."""

RARELY = {
    "bkspark.cluster.admission",
    "bkspark.ledger.handles.write_handle",
    "bkspark.ledger.recovery.recover",
    "bkspark.log.streams.commit",
    "bkspark.protocol.recovery.recovering",
    "importlib.metadata",
    "tomllib",
}
"""What few reads and writes need."""

COMMIT = {"bkspark.log.batch.commit", "bkspark.log.batch.record_writer"}
PLAN = {"bkspark.log.reading.read_slices", "bkspark.log.reading.ledger_files"}
TASK = {"bkspark.log.batch.attempt_writer", "bkspark.log.reading.slice_reader"}


def loaded_by(folder: Path, steps: str, *pickled: object) -> tuple[set[str], list[object]]:
    """The modules that a process of Spark's loads for ``steps``, and what these leave in ``found``.

    Args:
        steps: of Python; they find the ``pickled`` things in ``given``, as Spark's processes do.
    """
    (folder / "given").write_bytes(cloudpickle.dumps(pickled))
    program = f"""
import json, pickle, sys
from pathlib import Path
import pyarrow as pa
import pyspark.sql.worker.create_data_source, pyspark.sql.worker.plan_data_source_read
from pyspark import cloudpickle
before, folder, found = set(sys.modules), Path({str(folder)!r}), []
given = pickle.loads((folder / "given").read_bytes())
{steps}
loaded = sorted(set(sys.modules) - before)
(folder / "found").write_bytes(cloudpickle.dumps(found))
print(json.dumps(loaded))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = cloudpickle.loads((folder / "found").read_bytes())
    return set(json.loads(done.stdout.splitlines()[-1])), found


def source_of(uri: str) -> str:
    return f"""
from bkspark.spark.source import BookKeeperDataSource
source = BookKeeperDataSource({{"metadataServiceUri": {uri!r}, "path": "a"}})
"""


@pytest.mark.thorough
def test_each_process_of_a_write_loads_its_own_part(small_cluster, numbers, tmp_path) -> None:
    rows = numbers(0, 20).combine_chunks().to_batches()
    make = source_of(small_cluster.uri)
    options = make + "from bkspark.spark.option_table import Use; source._parsed(Use.BATCH_WRITE)"
    loaded, _ = loaded_by(tmp_path, options)
    assert not loaded & {*CLIENT, *RARELY, *COMMIT, *PLAN, *TASK, *NOT_NEEDED}

    schema = from_arrow_schema(rows[0].schema)
    loaded, [writer] = loaded_by(
        tmp_path, make + "found = [source.writer(given[0], False)]", schema
    )
    assert not loaded & {*RARELY, *PLAN, "bkspark.log.reading.slice_reader", *NOT_NEEDED}

    task = "found = [given[0].write(iter(given[1]))]"
    loaded, [message] = loaded_by(tmp_path, task, writer, rows)
    assert "bkspark.log.batch.attempt_writer" in loaded
    assert not loaded & {*CLIENT, *RARELY, *COMMIT, *PLAN, *NOT_NEEDED}

    loaded, _ = loaded_by(tmp_path, "given[0].commit(given[1])", writer, [message])
    assert loaded >= COMMIT
    assert not loaded & {*RARELY, *PLAN, "bkspark.log.reading.slice_reader", *NOT_NEEDED}
    with Cluster(small_cluster.uri) as cluster:
        assert cluster.log("a").value.end_offset == 20


@pytest.mark.thorough
def test_each_process_of_a_read_loads_its_own_part(small_cluster, numbers, tmp_path) -> None:
    small_cluster.append("a", [numbers(0, 20)])
    make = source_of(small_cluster.uri)
    loaded, [schema] = loaded_by(tmp_path, make + "found = [source.schema()]")
    assert not loaded & {*RARELY, *COMMIT, *PLAN, *TASK, *NOT_NEEDED}

    plan = "reader = source.reader(given[0]); found = [reader, *reader.partitions()]"
    loaded, [reader, part] = loaded_by(tmp_path, make + plan, schema)
    assert loaded >= PLAN
    assert not loaded & {*RARELY, *COMMIT, *TASK, *NOT_NEEDED}

    task = "found = [sum(batch.num_rows for batch in given[0].read(given[1]))]"
    loaded, [count] = loaded_by(tmp_path, task, reader, part)
    assert count == 20
    assert not loaded & {*CLIENT, *RARELY, *COMMIT, *PLAN, *NOT_NEEDED}


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
