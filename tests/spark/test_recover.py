"""Recovery as a Spark action and as a job, and reading what Python clients wrote as a DataFrame."""

import importlib.util
import json
import os
import pickle
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from local_session import REPOSITORY
from places import refusal

import bkspark
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    CorruptDataError,
    InvalidRequestError,
    LedgerFencedError,
    NoSuchEntryError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
    UnauthorizedError,
)
from bkspark.ledger.recovery import running
from bkspark.ledger.recovery.recover import recover
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.spark.actions import Done, Refused, SparkRunner, in_order
from tests.integration.waiting import wait_for_all_copies, wait_until

SECRET = "hunter2-never-shown"


@pytest.fixture
def opened(place):
    with bkspark.BookKeeper(place.uri) as bookkeeper:
        yield bookkeeper


def left_open(bookkeeper, count=5, **settings):
    """A ledger whose writer is still there, with entries ``b"0"``, ``b"1"`` and so on.

    The ack of the last one is known to nobody else.
    """
    quiet = bkspark.WriterSettings(explicit_lac_ms=0)
    handle = bookkeeper.create_ledger(settings=quiet, **settings)
    for number in range(count):
        handle.append(b"%d" % number)
        wait_for_all_copies(handle)  # the next record says who has this one
    return handle


def values(bookkeeper, ledger_id, **settings):
    found = bookkeeper.open_ledger(ledger_id, recovery=False, **settings)
    assert found.is_closed
    return [int(entry.value) for entry in found.read()]


def state_of(place, ledger_id):
    with Cluster(place.uri) as cluster:
        return cluster.ledger(ledger_id).value.state


# --- the action ----------------------------------------------------------------------------


def test_a_ledger_is_closed_with_every_entry_and_its_writer_refused(spark, place, opened):
    handle = left_open(opened)
    told = []
    report = bkspark.recover_ledger(spark, place.uri, handle.ledger_id, tell=told.append)
    assert (report.last_entry_id, report.kept) == (4, 1)
    assert told == report.notes
    assert values(opened, handle.ledger_id) == [0, 1, 2, 3, 4]
    with pytest.raises(LedgerFencedError):
        handle.append(b"late")
    handle.release()
    again = bkspark.recover_ledger(spark, place.uri, handle.ledger_id)
    assert (again.last_entry_id, again.kept) == (4, 0)


def test_each_step_is_one_job_with_a_task_for_each_bookie(spark, place, opened):
    handle = left_open(opened)
    handle.release()
    context = spark.sparkContext
    context.setJobGroup("recovery", "")
    try:
        bkspark.recover_ledger(spark, place.uri, handle.ledger_id)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("recovery")]
    assert len(jobs) == 2
    stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
    assert [stage.numTasks for stage in stages] == [3, 3]


def test_spark_and_threads_come_to_the_same_end(spark, place, opened):
    ends = []
    for recovered in (
        lambda ledger_id: bkspark.recover_ledger(spark, place.uri, ledger_id),
        opened.recover_ledger,
    ):
        handle = left_open(opened, 4)
        handle.release()
        shutil.rmtree(next(place.bookies[0].glob(f"ledgers/*/*{handle.ledger_id}/journal")))
        report = recovered(handle.ledger_id)
        assert "bookie-1 has lost data" in report.notes[3]
        decisions = report.notes[4:-1]  # the others name the ledger, or its ensemble in its order
        ends.append((report.last_entry_id, report.kept, decisions))
    assert ends[0] == ends[1]


def test_undecided_names_whom_it_waits_for_and_can_be_tried_again(spark, place, opened):
    handle = left_open(opened)
    handle.release()
    for bookie in place.bookies[:2]:
        bookie.rename(f"{bookie}.away")
    with pytest.raises(NotEnoughBookiesError, match=r"bookie-1.*bring back one of these bookies"):
        bkspark.recover_ledger(spark, place.uri, handle.ledger_id)
    assert state_of(place, handle.ledger_id) is LedgerState.IN_RECOVERY
    Path(f"{place.bookies[0]}.away").rename(place.bookies[0])
    assert bkspark.recover_ledger(spark, place.uri, handle.ledger_id).last_entry_id == 4


@pytest.mark.parametrize("how", ["literal", "file", "env"])
def test_a_password_reaches_the_tasks_and_is_shown_nowhere(
    spark, place, opened, how, tmp_path, monkeypatch, capfd
):
    handle = left_open(opened, digest_type="MAC", password=SECRET)
    handle.release()
    (tmp_path / "password").write_text(SECRET)
    monkeypatch.setenv("LEDGER_PASSWORD", SECRET)
    given = {
        "literal": {"password": SECRET},
        "file": {"password_file": str(tmp_path / "password")},
        "env": {"password_env": "LEDGER_PASSWORD"},
    }[how]
    if how == "env":  # Spark's Python workers were started without it: say so, close nothing wrong
        with pytest.raises(InvalidRequestError, match="LEDGER_PASSWORD") as caught:
            bkspark.recover_ledger(spark, place.uri, handle.ledger_id, **given)
        assert SECRET not in str(caught.value)
        assert state_of(place, handle.ledger_id) is LedgerState.IN_RECOVERY
        return
    report = bkspark.recover_ledger(spark, place.uri, handle.ledger_id, **given)
    assert values(opened, handle.ledger_id, password=SECRET) == [0, 1, 2, 3, 4]
    out, err = capfd.readouterr()
    assert SECRET not in "".join([*report.notes, repr(report), out, err])


def test_a_wrong_password_fences_nobody(spark, place, opened):
    handle = left_open(opened, digest_type="MAC", password=SECRET)
    with pytest.raises(UnauthorizedError):
        bkspark.recover_ledger(spark, place.uri, handle.ledger_id, password="guess")
    assert handle.append(b"5") == 5
    handle.release()


# --- the runner ----------------------------------------------------------------------------


ADDRESS = BookieAddress("bookie-1", "0" * 32, "0" * 32, "memory://none")


@dataclass(frozen=True)
class Say:
    what: object
    address: BookieAddress = ADDRESS

    def run(self, _beat):
        if isinstance(self.what, Exception):
            raise self.what
        return self.what


@dataclass(frozen=True)
class Die(Say):
    what: object = None

    def run(self, _beat):
        os._exit(3)


def test_results_come_in_order(spark):
    runner = SparkRunner(spark.sparkContext)
    assert runner([]) == []
    assert runner([Say(number) for number in range(7)]) == list(range(7))


@dataclass(frozen=True)
class Dawdle(Say):
    """Is long at work on the bookie that is called slow."""

    def run(self, _beat):
        time.sleep(2.5)
        return self.what


@pytest.mark.thorough
def test_the_driver_tells_whom_it_waits_for(spark, monkeypatch):
    monkeypatch.setattr(running, "TELL_SECONDS", 0.3)
    told = []
    quick = [Say(number, replace(ADDRESS, bookie_id=f"bookie-{number}")) for number in range(2)]
    slow = Dawdle(2, replace(ADDRESS, bookie_id="slow"))
    assert SparkRunner(spark.sparkContext).telling(told.append)([*quick, slow]) == [0, 1, 2]
    assert told[-1] == "still waiting for slow"
    count = len(told)
    assert SparkRunner(spark.sparkContext)(quick) == [0, 1]
    assert len(told) == count


def test_a_recovery_notes_whom_spark_waits_for(spark, place, opened, monkeypatch):
    monkeypatch.setattr(running, "TELL_SECONDS", 0.001)
    handle = left_open(opened)
    told = []
    report = bkspark.recover_ledger(spark, place.uri, handle.ledger_id, tell=told.append)
    handle.release()
    assert told == report.notes
    assert any(note.startswith("still waiting for bookie-") for note in report.notes)


def test_an_error_raised_on_purpose_is_raised_on_the_driver(spark):
    with pytest.raises(UnauthorizedError, match="no entry"):
        SparkRunner(spark.sparkContext)([Say(1), Say(UnauthorizedError("no entry"))])


@pytest.mark.parametrize("last", [Say(ValueError("a bug")), Die()])
def test_a_task_that_fails_is_no_answer(spark, last):
    with pytest.raises(OutcomeUnknownError, match="run it again"):
        SparkRunner(spark.sparkContext)([Say(1), last])


@pytest.mark.parametrize(
    "answers",
    [[], [Done(0, "a")], [Done(1, "b")], [Done(0, "a")] * 2, [Done(0, "a"), Done(2, "c")]],
)
def test_a_missing_result_is_a_failure_and_never_an_absence(answers):
    with pytest.raises(OutcomeUnknownError, match="2 bookies were asked"):
        in_order(answers, 2)
    with pytest.raises(UnauthorizedError):
        in_order([*answers, Refused(1, UnauthorizedError("x"))], 2)


def test_what_travels_can_be_pickled_and_comes_out_equal(place, opened):
    handle = left_open(opened, digest_type="MAC", password=SECRET)
    handle.release()
    travelled = []

    def run(instructions):
        results = []
        for instruction in instructions:
            copy = pickle.loads(pickle.dumps(instruction))
            assert copy == instruction
            assert SECRET not in repr(instruction)
            result = copy.run()
            assert pickle.loads(pickle.dumps(result)) == result
            travelled.extend([type(instruction).__name__, type(result).__name__])
            results.append(pickle.loads(pickle.dumps(result)))
        return results

    with Cluster(place.uri) as cluster:
        recover(cluster, handle.ledger_id, Password(literal=SECRET), run=run)
    assert set(travelled) == {"FenceAndRead", "MemberTail", "WriteCopies", "WrittenBack"}


# --- the job -------------------------------------------------------------------------------


def job(name):
    spec = importlib.util.spec_from_file_location(f"job_{name}", REPOSITORY / "jobs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def test_the_job_prints_one_line_of_json(spark, place, opened, capsys):
    handle = left_open(opened)
    handle.release()
    arguments = ["--metadata", place.uri, "--ledger", str(handle.ledger_id)]
    assert job("recover")(arguments) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert json.loads(out) == {
        "ledger_id": handle.ledger_id,
        "state": "CLOSED",
        "last_entry_id": 4,
        "groups_kept": 1,
        "losses": [],
    }
    assert "IN_RECOVERY" in err


def test_the_job_says_in_one_line_that_it_cannot_be_decided(spark, place, opened, capsys):
    handle = left_open(opened)
    handle.release()
    for bookie in place.bookies[1:]:
        shutil.rmtree(bookie)
    arguments = ["--metadata", place.uri, "--ledger", str(handle.ledger_id)]
    assert job("recover")(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("bkspark: ledger")
    assert job("recover")(["--metadata", place.uri, "--ledger", "99"]) == 2


# --- reading inline rows as a DataFrame ------------------------------------------------------

TABLE = pa.table({"n": pa.array(range(40), pa.int64()), "s": [f"row {n}" for n in range(40)]})


def rows_of(place, ledger_id, **options):
    frame = place.read(None, ledgerId=ledger_id, includeMetadata=True, **options)
    return sorted(frame.collect(), key=lambda row: row._entry_id)


def test_a_closed_ledger_of_rows(place, opened):
    with opened.create_ledger(schema=TABLE.schema) as handle:
        for begin in range(0, 40, 8):
            handle.append_many(TABLE.slice(begin, 8))
    found = rows_of(place, handle.ledger_id)
    assert [tuple(row)[:-1] for row in found] == [
        (n, f"row {n}", n, handle.ledger_id, n) for n in range(40)
    ]
    times = [row._timestamp for row in found]
    assert times == sorted(times)
    part = rows_of(place, handle.ledger_id, startingOffsets=5, endingOffsets=21)
    assert [row.n for row in part] == list(range(5, 21))
    projected = place.read(None, ledgerId=handle.ledger_id, schema="s string, _entry_id bigint")
    assert projected.where("_entry_id = 7").collect() == [("row 7", 7)]
    assert place.read(None, ledgerId=handle.ledger_id).count() == 40
    with_loss = rows_of(place, handle.ledger_id, failOnDataLoss=False)
    assert with_loss == found
    assert "ends at offset 40" in refusal(
        NoSuchEntryError, lambda: rows_of(place, handle.ledger_id, endingOffsets=41)
    )


def test_an_open_ledger_is_read_to_its_confirmed_end_and_its_writer_goes_on(place, opened):
    handle = left_open(opened, 6)
    assert [int(row.value) for row in rows_of(place, handle.ledger_id)] == [0, 1, 2, 3, 4]
    beyond = rows_of(place, handle.ledger_id, failOnDataLoss=False, endingOffsets=99)
    assert [int(row.value) for row in beyond] == [0, 1, 2, 3, 4]  # never what is not confirmed
    assert state_of(place, handle.ledger_id) is LedgerState.OPEN
    handle.append(b"6")
    handle.close()
    assert [int(row.value) for row in rows_of(place, handle.ledger_id)] == list(range(7))
    empty = opened.create_ledger()
    assert rows_of(place, empty.ledger_id) == []
    empty.close()
    assert rows_of(place, empty.ledger_id) == []


def test_a_recovered_ledger_whose_ensemble_changed_and_a_bookie_is_lost(wide_place):
    place = wide_place
    with bkspark.BookKeeper(place.uri) as bookkeeper:
        handle = left_open(bookkeeper, 5)
        first = handle.metadata.last_fragment.ensemble[0].bookie_id
        shutil.rmtree(place.bookies[int(first.removeprefix("bookie-")) - 1])
        handle.append(b"5")
        wait_until(lambda: len(handle.metadata.fragments) > 1)
        for number in range(6, 12):
            handle.append(b"%d" % number)
        handle.release()
        bkspark.recover_ledger(place.spark, place.uri, handle.ledger_id)
        with Cluster(place.uri) as cluster:
            assert len(cluster.ledger(handle.ledger_id).value.fragments) > 1
        assert [int(row.value) for row in rows_of(place, handle.ledger_id)] == list(range(12))


def test_rows_that_no_bookie_gives_are_an_error_or_left_out_alone(place, opened):
    settings = {"ensemble_size": 3, "write_quorum_size": 1, "ack_quorum_size": 1}
    handle = left_open(opened, 9, **settings)
    handle.close()
    shutil.rmtree(place.bookies[0])
    message = refusal(CorruptDataError, lambda: rows_of(place, handle.ledger_id))
    assert "no bookie gives entry" in message
    left = [int(row.value) for row in rows_of(place, handle.ledger_id, failOnDataLoss=False)]
    lost = handle.metadata.last_fragment.ensemble
    gone = [member.bookie_id for member in lost].index("bookie-1")
    assert left == [number for number in range(9) if number % 3 != gone]
