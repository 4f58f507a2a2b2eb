"""Commands that delete ask first, name what goes, and have --dry-run and --yes."""

import importlib.util
import json
from pathlib import Path

import pytest

import bkspark
from bkspark.admin import log_upkeep
from bkspark.admin.log_upkeep import RetainRequest
from bkspark.bookkeeper import BookKeeper
from bkspark.cli import session
from bkspark.errors import MetadataVersionError

JOB = Path(__file__).parents[3] / "jobs/retain.py"


@pytest.fixture
def keeper(small_cluster):
    with BookKeeper(small_cluster.uri) as keeper:
        yield keeper


@pytest.fixture(autouse=True)
def log(keeper):
    """Offsets 0 to 5 in three ledgers, a cursor at 5, and a ledger in no log."""
    log = keeper.create_log("wal")
    with log.writer() as writer:
        for number in range(6):
            writer.append(b"%d" % number)
            if number in (1, 3):
                writer.roll()
    log.cursor("mail", start=5)
    with keeper.create_ledger() as ledger:
        ledger.append(b"x")
    return log


DELETING = {
    "retain": ["log", "retain", "wal", "--max-bytes", "0"],
    "retain by age": ["log", "retain", "wal", "--max-seconds", "0.001"],
    "truncate": ["log", "truncate", "wal", "--before", "4"],
    "delete a log": ["log", "delete", "wal"],
    "delete a ledger": ["ledger", "delete", "3"],
    "delete a cursor": ["log", "cursors", "wal", "--delete", "mail"],
}
NAMED = {
    "retain": "4 entries of log wal (4 bytes, offsets 0 to 3, 2 whole ledgers, closed 20",
    "retain by age": "4 entries of log wal (4 bytes, offsets 0 to 3, 2 whole ledgers, closed 20",
    "truncate": "4 entries of log wal (4 bytes, offsets 0 to 3, 2 whole ledgers, closed 20",
    "delete a log": "log wal, 6 entries in 3 ledgers (6 bytes, offsets 0 to 5, last changed 20",
    "delete a ledger": "ledger 3, CLOSED with 1 entry (1 byte",
    "delete a cursor": "cursor mail of log wal, at offset 5",
}


def state(keeper):
    store = keeper._cluster.store
    prefixes = ("logs", "ledgers", "cursors/wal", "bookies")
    return [
        sorted((key, str(store.get(f"{p}/{key}"))) for key in store.get_all(p)) for p in prefixes
    ]


@pytest.mark.parametrize("name", DELETING)
def test_without_a_terminal_and_a_word_nothing_goes(run, keeper, name):
    before = state(keeper)
    status, out, err = run(*DELETING[name])
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("bkspark: cannot ask (no terminal): ")
    assert NAMED[name] in err
    assert err.endswith("; give --yes\n")
    assert state(keeper) == before


@pytest.mark.parametrize("name", DELETING)
def test_a_dry_run_names_what_would_go_and_changes_nothing(run, keeper, name):
    before = state(keeper)
    status, _, err = run(*DELETING[name], "--dry-run")
    assert status == 0
    assert "would delete " in err
    assert NAMED[name] in err
    assert json.loads(run(*DELETING[name], "--dry-run", "--json")[1])
    assert state(keeper) == before


@pytest.mark.parametrize("name", DELETING)
def test_who_says_no_keeps_all(run, keeper, monkeypatch, name):
    asked = []

    def says_no(question, *, yes):
        asked.append(question)
        return False

    monkeypatch.setattr(session, "has_consent", says_no)
    before = state(keeper)
    assert run(*DELETING[name])[0] == 1
    assert NAMED[name] in asked[0]
    assert state(keeper) == before


@pytest.mark.parametrize("name", DELETING)
def test_a_word_is_enough(run, keeper, name):
    before = state(keeper)
    assert run(*DELETING[name], "--yes")[0] == 0
    assert state(keeper) != before


def test_a_limit_is_asked_for_though_nothing_goes_now(run, keeper):
    before = state(keeper)
    status, _, err = run("log", "retain", "wal", "--max-bytes", "1000000")
    assert (status, "delete no entry of log wal now" in err) == (2, True)
    assert state(keeper) == before


def test_what_deletes_nothing_does_not_ask(run):
    assert run("log", "retain", "wal")[0] == 0
    assert run("log", "retain", "wal", "--forever")[0] == 0


def test_no_more_goes_than_was_named(keeper, log):
    """Entries that are added while the operator reads the question stay."""

    def consent(plan):
        assert plan.before_offset == 4
        with log.writer() as writer:
            for _ in range(3):
                writer.append(b"new")
                writer.roll()

    log_upkeep.retain(
        keeper._cluster, RetainRequest("wal", 0, respects_cursors=False), consent=consent
    )
    assert log.first_offset == 4
    log.retain(respects_cursors=False)
    assert log.first_offset > 4


@pytest.mark.parametrize("command", ["retain", "truncate"])
def test_a_log_that_was_made_anew_meanwhile_stays(run, keeper, log, monkeypatch, command):
    def made_anew(question, *, yes):
        keeper.delete_log("wal")
        again = keeper.create_log("wal")
        with again.writer() as writer:
            for _ in range(6):
                writer.append(b"x")
                writer.roll()
        return True

    monkeypatch.setattr(session, "has_consent", made_anew)
    words = {"retain": ["--max-bytes", "0"], "truncate": ["--before", "4"]}[command]
    status, _, err = run("log", command, "wal", *words)
    assert (status, "generation" in err) == (1, True)
    assert keeper.open_log("wal").first_offset == 0


def test_settings_are_shown(run, log):
    log.keep(max_bytes=7000, max_seconds=90.5)
    shown = json.loads(run("log", "show", "wal", "--json")[1])
    assert (shown["retention_bytes"], shown["retention_seconds"]) == (7000, 90.5)
    lines = run("log", "show", "wal")[1].splitlines()
    names = {line.partition("\t")[0] for line in lines}
    assert {"retention_bytes", "retention_seconds", "is_unbounded", "digest_type"} <= names
    assert {"guarantees_write_quorum", "ensemble_size"} <= names


def test_an_unbounded_log_names_its_fragments(run, keeper):
    log = keeper.create_log("long", unbounded=True)
    with log.writer(roll_entries=2) as writer:
        for _ in range(6):
            writer.append(b"123")
    status, _, err = run("log", "retain", "long", "--max-bytes", "0", "--dry-run")
    assert status == 0, err
    first = keeper.open_log("long")
    first.keep(max_bytes=0)
    first.retain()
    gone = first.first_offset
    assert gone
    assert f"{gone} entries of log long ({3 * gone} bytes, offsets 0 to {gone - 1}" in err


def test_the_call_and_the_job_do_what_the_command_does(keeper, log, small_cluster, capsys):
    report = bkspark.admin.retain(small_cluster.uri, log="wal", max_bytes=0, dry_run=True)
    assert (report.plan["entries"], report.plan["bytes"], log.first_offset) == (4, 4, 0)
    spec = importlib.util.spec_from_file_location("job_retain", JOB)
    job = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(job)
    words = ["--metadata", small_cluster.uri, "wal", "--max-bytes", "0"]
    assert job.main(words) == 2
    assert "give --yes" in capsys.readouterr().err
    assert job.main([*words, "--dry-run"]) == 0
    assert log.first_offset == 0
    capsys.readouterr()
    assert job.main([*words, "--yes"]) == 0
    done = json.loads(capsys.readouterr().out)["done"]
    assert (done, log.first_offset) == ({"entries": 4, "ledgers": 2}, 4)


def test_a_plan_of_another_generation_is_refused(keeper, log):
    plan = log_upkeep.plan_of(keeper._cluster, RetainRequest("wal", max_bytes=0))
    keeper.delete_log("wal")
    keeper.create_log("wal")
    with pytest.raises(MetadataVersionError):
        log_upkeep.truncation.retain(keeper._cluster, "wal", plan=plan)
