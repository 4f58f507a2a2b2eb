"""A repair as Spark tasks does what one by threads does."""

import json
import shutil

import pytest
from test_jobs import submit

import bkspark
from bkspark import admin
from bkspark.cli import main


def lose(place, number):
    """A bookie's disk is gone for ever."""
    shutil.rmtree(place.bookies[number])
    with bkspark.BookKeeper(place.uri) as opened:
        opened.declare_bookie_lost(f"bookie-{number + 1}")


def test_tasks_make_the_copies(spark, wide_place):
    wide_place.write(spark.range(1000))
    with bkspark.BookKeeper(wide_place.uri) as opened:
        handle = opened.create_ledger(digest_type="MAC", password="secret")
        handle.append(b"0")
        handle.close()
    for number in (0, 1):
        lose(wide_place, number)
        report = admin.repair(wide_place.uri, spark=spark, password="secret")
        assert report.left == []
    assert admin.audit(wide_place.uri).left == []
    assert wide_place.read().count() == 1000


@pytest.mark.thorough
def test_the_job_prints_one_line_and_ends_with_1_if_something_is_left(spark, place, tmp_path):
    place.write(spark.range(10))
    lose(place, 0)
    done = submit("repair.py", tmp_path, "--metadata", place.uri)
    assert done.returncode == 1, done.stderr[-3000:]
    [line] = done.stdout.splitlines()
    assert "no other bookie" in json.loads(line)["left"][0]["reason"]
    assert main(["repair", "--spark", "--json", "--metadata", place.uri]) == 1
