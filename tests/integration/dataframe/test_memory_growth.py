"""The memory of a task does not grow with its rows, writing or reading."""

import subprocess
import sys
from pathlib import Path

import pytest

from bkspark.cluster.cluster import init_cluster

pytestmark = pytest.mark.thorough

MEGABYTE = 2**20
GROWTH_MAX = 40 * MEGABYTE
"""Blocks in flight and allocator slack; the larger task moves 380 MB more than the smaller."""

TASK = """
import resource, sys
import pyarrow as pa
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.commit import commit
from bkspark.log.batch.preparing import prepare
from bkspark.log.batch.target import BlockSettings, WriteRequest
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slices import OffsetRange
from bkspark.log.reading.slice_reader import SliceReader

uri, batch_count = sys.argv[1], int(sys.argv[2])
name = f"log{batch_count}"
batch = pa.record_batch({"value": pa.array([bytes(1000)] * 2000, pa.binary())})
blocks = BlockSettings(65536, 2 * 2**20, "none")
target = prepare(WriteRequest(uri, name, batch.schema, None, None, Password(), blocks))
report = AttemptWriter(target, 0).write(batch for _ in range(batch_count))
commit(target, [report])
with Cluster(uri) as cluster:
    log = cluster.log(name).value
    tasks = plan_log(cluster, log, OffsetRange(0, log.end_offset), Password(), 2**40)
(task,) = tasks
rows = sum(found.num_rows for found in SliceReader(batch.schema).read(task))
assert rows == 2000 * batch_count
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.fixture
def uri(tmp_path: Path) -> str:
    init_cluster(f"file://{tmp_path}/meta", [f"file://{tmp_path}/b{n}" for n in range(3)])
    return f"file://{tmp_path}/meta"


def peak_bytes(uri: str, batch_count: int) -> int:
    command = [sys.executable, "-c", TASK, uri, str(batch_count)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_a_task_of_twenty_times_the_rows_needs_no_more_memory(uri: str) -> None:
    small, large = peak_bytes(uri, 10), peak_bytes(uri, 200)
    assert large - small < GROWTH_MAX, (small, large)
