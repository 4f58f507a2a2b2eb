"""``bkspark repair --watch``: a line a round, what goes wrong is told once, and how it ends."""

import json
import os
import shutil
import signal

import pytest

import bkspark
from bkspark import environment
from bkspark.cli.commands import spelled_out

from .rounds import Rounds, stop


def nothing():
    pass


@pytest.fixture
def watch(run):
    """``watch(*words, events=…)`` -> (status, out, err); the last event has to stop it."""

    def watch(*words, events):
        rounds = Rounds(*events)
        with environment.use(rounds):
            found = run("repair", "--watch", *words)
        watch.pauses = rounds.pauses
        return found

    return watch


@pytest.fixture
def lost(small_cluster, numbers, run):
    """The id of a bookie that is lost for ever, and had rows of a log."""
    small_cluster.append("events", [numbers(0, 9)])
    path = next(small_cluster.folder.glob("bookie-*/ledgers/*/*/journal"))
    bookie_id = path.relative_to(small_cluster.folder).parts[0]
    shutil.rmtree(small_cluster.folder / bookie_id)
    assert run("bookie", "lost", bookie_id, "--yes")[0] == 0
    return bookie_id


def test_it_goes_on_and_ends_with_the_status_of_its_last_round(watch, lost):
    status, out, err = watch(events=[nothing, stop])
    first, second = out.splitlines()
    assert status == 0
    assert " repair: 1 ledger, 1 place, " in first
    assert first.endswith(" bytes: all is well")
    assert second.endswith(" repair: 0 ledgers, 0 places, 0 bytes: all is well")
    assert err == "bkspark: stopped\n"
    assert [590 < pause <= 600 for pause in watch.pauses] == [True, True]


def test_what_is_left_is_in_the_line_and_in_the_status(watch, run, small_cluster, lost):
    for bookie in small_cluster.folder.glob("bookie-*"):
        if bookie.name != lost:
            assert run("bookie", "readonly", bookie.name)[0] == 0
    status, out, _ = watch("30", events=[stop])
    assert status == 1
    [line] = out.splitlines()
    assert ": 1 left; ledger " in line
    assert "no other bookie can take its place" in line
    assert [20 < pause <= 30 for pause in watch.pauses] == [True]


def test_each_round_is_a_line_of_json(watch, lost):
    status, out, _ = watch("--json", events=[nothing, stop])
    first, second = map(json.loads, out.splitlines())
    assert (status, first["done"]["places"], second["done"]["places"]) == (0, 1, 0)


def test_a_metadata_store_that_is_away_is_waited_for_and_told_once(watch, small_cluster, lost):
    folder = small_cluster.folder / "metadata"
    away = folder.with_name("away")
    status, out, err = watch(
        events=[lambda: folder.rename(away), nothing, nothing, lambda: away.rename(folder), stop]
    )
    assert status == 0
    assert len(out.splitlines()) == 2
    told, again, stopped = err.splitlines()
    assert told.startswith("bkspark: ")
    assert told.endswith("; trying again until it works")
    assert (again, stopped) == ("bkspark: continuing", "bkspark: stopped")
    assert max(watch.pauses[1:4]) <= 30


def test_who_is_stopped_while_something_is_wrong_ends_with_1(watch, small_cluster, lost):
    folder = small_cluster.folder / "metadata"
    away = folder.with_name("away")
    assert watch(events=[lambda: folder.rename(away), stop])[0] == 1


@pytest.mark.parametrize(
    "words",
    ["0", "-1", "--dry-run", "--lost-after -1", "--ledger 99", "--metadata file:///not/there"],
)
def test_a_call_that_has_to_be_changed_is_refused_at_once(watch, words):
    assert watch(*words.split(), events=[stop])[0] == 2


def test_sigterm_ends_it_and_is_as_before_then(watch, lost):
    before = signal.getsignal(signal.SIGTERM)
    assert watch(events=[lambda: os.kill(os.getpid(), signal.SIGTERM)])[0] == 0
    assert signal.getsignal(signal.SIGTERM) is before


def test_it_recovers_first_what_lost_its_writer_and_then_repairs_it(run, small_cluster):
    with bkspark.BookKeeper(small_cluster.uri) as keeper:
        handle = keeper.create_ledger()
        for number in range(3):
            handle.append(b"%d" % number)
        handle.release()
    [gone, *_] = sorted(small_cluster.folder.glob("bookie-*/ledgers/*/*/journal"))
    bookie_id = gone.relative_to(small_cluster.folder).parts[0]
    shutil.rmtree(small_cluster.folder / bookie_id)
    assert run("bookie", "lost", bookie_id, "--yes")[0] == 0
    status, _, err = run("repair")
    assert (status, "ledger 0: OPEN: " in err) == (1, True)
    planned = run("repair", "--open-grace", "0", "--dry-run")
    assert planned[2] == "repair: 1 ledger would be recovered first\n"
    status, out, _ = run("repair", "--open-grace", "0", "--json")
    document = json.loads(out)
    assert (status, [row["ledger_id"] for row in document["recovered"]]) == (0, [handle.ledger_id])
    assert run("audit")[0] == 0
    assert run("ledger", "read", handle.ledger_id)[0] == 0


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("repair --watch", "repair --watch 600"),
        ("repair --watch 5", "repair --watch 5"),
        ("repair --watch --yes", "repair --watch 600 --yes"),
        ("repair --watch=5", "repair --watch=5"),
        ("repair", "repair"),
    ],
)
def test_watch_without_seconds_is_every_ten_minutes(given, meant):
    assert spelled_out(given.split()) == meant.split()
