"""Several drivers append to one log at the same time: batch appends never fence one another."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from places import LOG, Place
from pyspark.sql import SparkSession
from submitted import environment, submission

from bkspark.cluster.cluster import Cluster

pytestmark = pytest.mark.thorough

ROWS = 10
TURNS = 5
STRIDE = 1_000_000

WITH_SPARK = """\
    import sys
    from pathlib import Path
    from pyspark.sql import SparkSession

    uri, folder, first, turns, rows = *sys.argv[1:3], *map(int, sys.argv[3:])
    spark = SparkSession.builder.getOrCreate()
    Path(folder, "ready").touch()
    for begin in range(first, first + turns * rows, rows):
        log = spark.range(begin, begin + rows, 1, 2).write.format("bookkeeper").mode("append")
        log.option("metadataServiceUri", uri).save("events")
"""

WITHOUT_SPARK = """\
    import sys, time
    from pathlib import Path
    import pyarrow as pa
    from bkspark.log.batch import commit as batch_commit
    from bkspark.log.batch.attempt_writer import AttemptWriter
    from bkspark.log.batch.preparing import prepare
    from bkspark.log.batch.target import WriteRequest
    from bkspark.log.batch.target import BlockSettings
    from bkspark.cluster.password import Password

    uri, folder, first, turns, rows = *sys.argv[1:3], *map(int, sys.argv[3:])
    schema = pa.schema([("id", pa.int64())])
    blocks = BlockSettings(64, 2**20, "none")
    while not Path(folder, "ready").exists():
        time.sleep(0.05)
    for begin in range(first, first + turns * rows, rows):
        ids = pa.record_batch({"id": pa.array(range(begin, begin + rows), pa.int64())})
        target = prepare(WriteRequest(uri, "events", schema, None, None, Password(), blocks))
        batch_commit.commit(target, [AttemptWriter(target, 0).write([ids])])
        time.sleep(0.5)
"""


def test_four_drivers_append_to_one_log_at_once(spark: SparkSession, place: Place, tmp_path: Path):
    def start(program: str, number: int, turns: int) -> subprocess.Popen[bytes]:
        script = tmp_path / f"driver-{number}.py"
        script.write_text(dedent(program))
        arguments = [place.uri, str(tmp_path), *map(str, (STRIDE * number, turns, ROWS))]
        command = [sys.executable, str(script), *arguments]
        if program is WITH_SPARK:
            command = submission(script, tmp_path, {}, arguments)
        return subprocess.Popen(command, env=environment(), cwd=tmp_path)

    others = [start(WITH_SPARK, 1, TURNS)]
    others += [start(WITHOUT_SPARK, number, 2 * TURNS) for number in (2, 3)]
    try:
        turns = 0
        while others[0].poll() is None:
            place.write(spark.range(turns * ROWS, (turns + 1) * ROWS, 1, 2))
            turns += 1
        assert [other.wait(timeout=60) for other in others] == [0, 0, 0]
    finally:
        for other in others:
            other.kill()
            other.wait()
    found = place.ids(LOG)
    pieces = [found[begin : begin + ROWS] for begin in range(0, len(found), ROWS)]
    assert all(piece == list(range(piece[0], piece[0] + ROWS)) for piece in pieces)
    by_driver = [[piece[0] for piece in pieces if piece[0] // STRIDE == n] for n in range(4)]
    for number, (begins, count) in enumerate(zip(by_driver, (turns, TURNS, 2 * TURNS, 2 * TURNS))):
        assert begins == [STRIDE * number + ROWS * turn for turn in range(count)]
    with Cluster(place.uri) as cluster:
        ledgers = list(cluster.log(LOG).value.every_ledger())
    assert [ledger.entry_count for ledger in ledgers] == [ROWS] * len(pieces)
