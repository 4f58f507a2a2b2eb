"""A compaction as Spark tasks does what one by threads does, and queries go on over it."""

import json

import pytest
from test_jobs import submit

from bkspark import admin


def write_some(spark, place, count):
    for number in range(count):
        place.write(spark.range(10 * number, 10 * number + 10).coalesce(1))


def test_tasks_compact_under_a_dataframe_that_was_planned_before(spark, place):
    write_some(spark, place, 3)
    before = place.read(includeMetadata="true")
    rows = sorted((row["_offset"], row["id"]) for row in before.collect())
    planned = admin.compact(place.uri, log="events", dry_run=True)
    report = admin.compact(place.uri, log="events", spark=spark)
    assert (report.plan, list(report.left)) == (planned.plan, [])
    assert report.done["ledgers"] == 3
    assert sorted((row["_offset"], row["id"]) for row in before.collect()) == rows
    after = place.read(includeMetadata="true").collect()
    assert sorted((row["_offset"], row["id"]) for row in after) == rows
    assert len({row["_ledger_id"] for row in after}) == 1


@pytest.mark.thorough
def test_the_job_prints_one_line(spark, place, tmp_path):
    write_some(spark, place, 2)
    done = submit("compact.py", tmp_path, "events", "--metadata", place.uri)
    assert done.returncode == 0, done.stderr[-3000:]
    [line] = done.stdout.splitlines()
    assert json.loads(line)["done"]["ledgers"] == 2
