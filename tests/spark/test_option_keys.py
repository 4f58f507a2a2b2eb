"""Spark's own option keys, by every method of readers and writers, here and on Spark Connect."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from local_session import worker_environment
from option_keys import SCENARIOS, outcomes
from places import Place, make_place

pytestmark = pytest.mark.thorough

BATCH = [0, 1]
STREAM = [0, 1, 2]
NO_TABLES = "InvalidRequestError: tables are not supported"
RANGE = "startingOffsets and endingOffsets limit the read; view=history"

EXPECTED: dict[str, list[int] | str] = {
    "save": BATCH,
    "save-path-option": BATCH,
    "save-arguments": BATCH,
    "save-twice-named": "'path' option set and save() is called with a path",
    "save-overwrite": BATCH,
    "save-partitionBy": "partitioning or clustering columns do not match",
    "save-clusterBy": "partitioning or clustering columns do not match",
    "save-bucketBy": "'save' does not support bucketBy",
    "saveAsTable": NO_TABLES,
    "insertInto": [0, 1, 2, 3],
    "create-properties": NO_TABLES,
    "create-partitionedBy": NO_TABLES,
    "load-path-option": STREAM,
    "load-schema": STREAM,
    "load-many": "InvalidRequestError: only one log can be read or written at a time\n",
    "stream": STREAM,
    "stream-path-option": STREAM,
    "stream-queryName": STREAM,
    "stream-arguments": STREAM,
    "stream-outputMode": STREAM,
    "stream-update": "bookkeeper does not support Update mode",
    "stream-complete": "Invalid streaming output mode: complete",
    "stream-once": STREAM,
    "stream-interval": STREAM,
    "stream-continuous": "bookkeeper does not support continuous processing",
    "stream-realTime": "not in the sink allowlist for Real-Time Mode",
    "stream-partitionBy": STREAM,  # Spark tells a sink nothing of it
    "stream-clusterBy": STREAM,
    "toTable": "no log is named: use load(NAME), save(NAME) or ledgerId (tables are not supported",
    "foreachBatch": STREAM,
    "follow-path-option": STREAM,
    "follow-schema": STREAM,
    "read-subscribe": "unknown option 'subscribe': give the log's name to load(NAME)",
    "read-snapshot-id": f"unknown option 'snapshot-id': {RANGE}",
    "read-startingVersion": f"unknown option 'startingversion': {RANGE}",
    "follow-minOffsetsPerTrigger": (
        "unknown option 'minoffsetspertrigger': maxEntriesPerTrigger limits a micro-batch"
    ),
    "read-numPartitions": "unknown option 'numpartitions': maxBytesPerPartition limits",
    "write-kafka": "unknown option 'kafka.bootstrap.servers': there are no brokers",
    "follow-startingTimestamp": STREAM,
}


def _others(found: dict[str, list[int] | str]) -> dict[str, list[int] | str]:
    """What came out other than expected."""
    return {
        name: outcome
        for name, outcome in found.items()
        if not (
            outcome == EXPECTED[name]
            or (isinstance(outcome, str) and str(EXPECTED[name]) in outcome)
        )
    }


def test_on_a_session_of_its_own(spark, place: Place, tmp_path: Path):
    found = outcomes(spark, place.uri, str(tmp_path))
    assert found.keys() == EXPECTED.keys() == SCENARIOS.keys()
    assert _others(found) == {}


@pytest.mark.skipif(find_spec("grpc") is None, reason="needs pyspark[connect]")
def test_on_spark_connect(tmp_path: Path):
    place = make_place(None, tmp_path)
    program = Path(__file__).with_name("option_keys.py")
    done = subprocess.run(
        [sys.executable, str(program), place.uri, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, **worker_environment(), "SPARK_TESTING": "1"},  # any free port
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("recover_ledger") == (
        "a Spark Connect session cannot run a recovery: it has no SparkContext; "
        "use `bkspark ledger recover ID` or BookKeeper(URI).recover_ledger(ID) "
        "where the bookies are mounted, or spark-submit jobs/recover.py"
    )
    assert found.keys() == EXPECTED.keys()
    assert _others(found) == {}
