"""Many ledgers are recovered by the tasks of one Spark job."""

import json

import pytest
from test_jobs import submit

import bkspark
from bkspark import admin


def left_open(uri, count):
    found = []
    with bkspark.BookKeeper(uri) as keeper:
        for _ in range(count):
            handle = keeper.create_ledger()
            handle.append(b"0")
            handle.release()
            found.append(handle.ledger_id)
    return found


@pytest.mark.thorough
def test_tasks_recover_a_ledger_each_and_the_job_says_which(spark, place, tmp_path):
    ids = left_open(place.uri, 3)
    report = admin.recover(place.uri, spark=spark, ledgers=ids[:2])
    assert [row["ledger_id"] for row in report.details["recovered"]] == ids[:2]
    assert [row["last_entry_id"] for row in report.details["recovered"]] == [0, 0]
    done = submit("recover.py", tmp_path, "--metadata", place.uri, "--all", "--open-grace", "0")
    assert done.returncode == 0, done.stderr[-3000:]
    [line] = done.stdout.splitlines()
    assert [row["ledger_id"] for row in json.loads(line)["recovered"]] == ids[2:]
