"""Bookies are emptied, and evened out, by Spark tasks, beside queries that were planned before."""

import json
import shutil

import pytest
from test_jobs import submit

from bkspark import admin


@pytest.mark.thorough
def test_tasks_empty_bookies_under_a_query_and_even_them_out(spark, wide_place):
    for first in range(0, 3000, 1000):
        wide_place.write(spark.range(first, first + 1000))
    frame = wide_place.read(maxBytesPerPartition="2000")
    rows = frame.toLocalIterator()
    found = [next(rows)["id"]]
    report = admin.decommission(wide_place.uri, bookies=["bookie-1"], spark=spark)
    assert (report.left, report.done["bookies"]) == ([], 1)
    shutil.rmtree(wide_place.bookies[0])
    report = admin.rebalance(wide_place.uri, spark=spark, threshold=0.01)
    assert report.left == []
    report = admin.decommission(wide_place.uri, bookies=["bookie-2"], spark=spark)
    assert report.left == []
    shutil.rmtree(wide_place.bookies[1])
    found += [row["id"] for row in rows]
    assert sorted(found) == list(range(3000))
    assert admin.audit(wide_place.uri).left == []


@pytest.mark.thorough
def test_the_jobs_print_one_line(spark, wide_place, tmp_path):
    wide_place.write(spark.range(10))
    for name, words in (("decommission", ["--yes", "bookie-1"]), ("rebalance", [])):
        done = submit(f"{name}.py", tmp_path, "--metadata", wide_place.uri, *words)
        assert done.returncode == 0, done.stderr[-3000:]
        [line] = done.stdout.splitlines()
        assert json.loads(line)["verb"] == name
