"""A collection as Spark tasks frees what one by threads frees."""

import json

import pytest
from test_jobs import submit

import bkspark
from bkspark import admin


def delete_a_ledger(place):
    with bkspark.BookKeeper(place.uri) as opened:
        with opened.create_ledger() as handle:
            handle.append(b"to be deleted")
        opened.delete_ledger(handle.ledger_id)


def test_tasks_free_what_threads_would(spark, place):
    place.write(spark.range(10))
    delete_a_ledger(place)
    planned = admin.collect(place.uri, dry_run=True)
    report = admin.collect(place.uri, spark=spark)
    assert (report.plan, report.left) == (planned.plan, [])
    assert report.done == {key: planned.plan[key] for key in ("ledgers", "files", "bytes", "pages")}
    assert report.done["ledgers"] == 1
    assert admin.collect(place.uri).plan["ledgers"] == 0
    assert admin.audit(place.uri).left == []


@pytest.mark.thorough
def test_the_job_prints_one_line(place, tmp_path):
    delete_a_ledger(place)
    done = submit("collect.py", tmp_path, "--metadata", place.uri, "--abandoned-after", "60")
    assert done.returncode == 0, done.stderr[-3000:]
    [line] = done.stdout.splitlines()
    assert json.loads(line)["counters"]["DELETED_LEDGER_COUNT"] == 1
