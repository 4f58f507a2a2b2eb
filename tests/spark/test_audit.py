"""An audit as Spark tasks finds what one by threads finds."""

import json
import pickle
import shutil

import pytest
from test_jobs import submit

import bkspark
from bkspark import admin
from bkspark.cli import main


def test_tasks_find_what_threads_find(spark, wide_place):
    wide_place.write(spark.range(1000), ackQuorumSize=2)
    with bkspark.BookKeeper(wide_place.uri) as opened:
        handle = opened.create_ledger(digest_type="MAC", password="secret")
        handle.append(b"0")
        handle.close()
    clean = admin.audit(wide_place.uri, spark=spark)
    assert (clean.left, clean.done) == ([], {"ledgers": 2, "bookies": 5})
    found = sorted(path for bookie in wide_place.bookies for path in bookie.rglob("journal"))
    for path in found[:2]:
        shutil.rmtree(path)
    by_tasks = admin.audit(wide_place.uri, spark=spark)
    assert by_tasks == admin.audit(wide_place.uri)
    assert len(by_tasks.details["copies"]) == 2
    assert pickle.loads(pickle.dumps(by_tasks)) == by_tasks


@pytest.mark.thorough
def test_the_job_prints_one_line_and_ends_with_1_if_something_is_missing(spark, place, tmp_path):
    place.write(spark.range(10))
    shutil.rmtree(next(place.bookies[0].rglob("journal")))
    done = submit("audit.py", tmp_path, "--metadata", place.uri)
    assert done.returncode == 1, done.stderr[-3000:]
    [line] = done.stdout.splitlines()
    assert json.loads(line)["counters"]["NUM_UNDER_REPLICATED_LEDGERS"] == 1


def test_the_command_takes_the_session_that_is_there(spark, place, capsys):
    place.write(spark.range(10))
    assert main(["audit", "--spark", "--json", "--metadata", place.uri]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == {"ledgers": 1, "bookies": 3}
    assert spark.range(1).count() == 1
