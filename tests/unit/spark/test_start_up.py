"""What a process loads that Spark starts for a log: each query pays for it."""

import json
import subprocess
import sys

NOT_NEEDED = {
    "asyncio",
    "boto3",
    "bkspark.bookie.memory",
    "bkspark.bookie.object_store",
    "bkspark.client.handles.read_handle",
    "bkspark.client.upkeep.views",
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
    assert "bkspark.client.reading.slice_reader" in loaded
    assert NOT_NEEDED.isdisjoint(loaded), NOT_NEEDED.intersection(loaded)
