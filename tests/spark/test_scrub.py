"""A scrub as Spark tasks finds what one by threads finds."""

import json

import pytest
from test_jobs import submit

from bkspark import admin


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.thorough
def test_tasks_find_what_threads_find_and_the_job_says_it(spark, place, tmp_path):
    place.write(spark.range(1000))
    clean = admin.scrub(place.uri, spark=spark)
    assert (clean.left, clean.done["ledgers"]) == ([], 1)
    flip(next(place.bookies[0].rglob("*.arrow")))
    flip(next(path for path in place.bookies[1].rglob("journal/*")))
    by_tasks = admin.scrub(place.uri, spark=spark)
    assert by_tasks == admin.scrub(place.uri)
    assert {row["bookie_id"] for row in by_tasks.details["damage"]} == {"bookie-1", "bookie-2"}
    done = submit("scrub.py", tmp_path, "--metadata", place.uri)
    assert done.returncode == 1, done.stderr[-3000:]
    [line] = done.stdout.splitlines()
    assert json.loads(line)["counters"]["NUM_DAMAGED_COPIES"] == 2
