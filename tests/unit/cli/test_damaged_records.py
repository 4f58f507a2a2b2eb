"""What is damaged is named, and hides nothing else: one metadata record, one file of one bookie."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from bkspark import BookKeeper
from bkspark.admin.absent_bookies import declare_lost
from bkspark.admin.survey import Survey
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError
from bkspark.format.recovery import StuckRecovery
from bkspark.metadata import directory, files
from bkspark.spark.options import VIEW_NAMES
from bkspark.spark.source import BookKeeperDataSource

from ...thorough import always  # noqa: TID252

Run = Callable[..., tuple[int, str, str]]

RECORDS = [
    "ledgers/0000000000000001",
    "logs/one",
    "bookies/bookie-2",
    "lost/bookie-6",
    "recoveries/0000000000000001",
    "counters/ledger",
]
CONTENTS: dict[str, Callable[[Path], object]] = {
    "garbage": lambda path: path.write_bytes(b"\xff" * 100),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "device": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "loop": lambda path: (path.unlink(), path.symlink_to(path.name)),
    "sparse": lambda path: os.truncate(path, 2**26),
}


@pytest.fixture
def used(small_cluster, numbers: Callable[[int, int], pa.Table]):
    """Two logs of two ledgers each, a lost bookie and a recovery that is stuck."""
    for name in ("one", "two", "one", "two"):
        small_cluster.append(name, [numbers(0, 30)])
    small_cluster.bookie("bookie-6").rename(small_cluster.folder / "away")
    with Cluster(small_cluster.uri) as cluster:
        declare_lost(cluster, "bookie-6")
        cluster.upkeep.recoveries.create("1", StuckRecovery(1, 1, None, (), "why", "what", 1))
    return small_cluster


def damage_record(used, key: str, kind: str) -> None:
    versions = [path for path in (used.folder / "metadata" / key).iterdir() if path.is_file()]
    CONTENTS[kind](max(versions))


EACH = [(record, "garbage") for record in RECORDS] + [(RECORDS[0], kind) for kind in CONTENTS]
ALL = [(record, kind) for record in RECORDS for kind in CONTENTS]


def test_ledgers_of_a_log_that_cannot_be_read_are_not_said_to_be_left_behind(
    used, run: Run
) -> None:
    """Nobody knows what is on its list: deleting one for good would be the wrong advice."""
    damage_record(used, "logs/one", "garbage")
    status, out, _ = run("status")
    assert status == 1
    assert "logs/one" in out
    assert "in no log" not in out


@pytest.mark.parametrize(("key", "kind"), always(EACH, ALL, are_rows=True))
def test_a_damaged_record_is_named_by_the_checks_and_the_rest_is_shown(
    run: Run, used, key: str, kind: str
) -> None:
    damage_record(used, key, kind)
    for command in ("status", "doctor"):
        status, out, err = run(command, "--json")
        assert (status, err) == (1, "")
        findings = json.loads(out)["findings"]
        [named] = [found for found in findings if found["subject"] == "metadata"]
        assert named["level"] == "fail"
        assert key in named["message"]
        assert any(found["subject"] == "bookies" for found in findings)


@pytest.mark.parametrize("kind", always(["garbage", "pipe"], CONTENTS))
def test_a_damaged_ledger_is_a_row_and_hides_no_other(run: Run, used, kind: str) -> None:
    damage_record(used, RECORDS[0], kind)
    status, out, err = run("ledgers", "--json")
    assert status == 1
    rows = json.loads(out)
    assert [row["ledger_id"] for row in rows] == [0, 1, 2, 3]
    assert [row["state"] for row in rows] == ["CLOSED", "UNREADABLE", "CLOSED", "CLOSED"]
    assert RECORDS[0] in err
    assert err.count("\n") == 1
    assert len(run("ledgers")[1].splitlines()) == 5


def test_other_listings_show_the_rest_and_name_it(run: Run, used) -> None:
    damage_record(used, "logs/one", "garbage")
    status, out, err = run("logs", "--json")
    assert (status, [row["log"] for row in json.loads(out)]) == (1, ["two"])
    assert "logs/one" in err
    assert run("log", "show", "two")[0] == 0
    damage_record(used, "bookies/bookie-2", "garbage")
    status, out, err = run("bookies", "--json")
    assert (status, len(json.loads(out))) == (1, 5)
    assert "bookies/bookie-2" in err


def test_nothing_is_decided_by_what_could_not_be_read(used) -> None:
    """Only who shows steps over: a bookie whose word is damaged might be a lost one."""
    damage_record(used, "lost/bookie-6", "garbage")
    with Survey(used.uri) as survey:
        assert survey.lost_members() == frozenset()
        assert list(survey.unreadable) == ["lost/bookie-6"]
    with Cluster(used.uri) as cluster, pytest.raises(BookKeeperError, match="lost/bookie-6"):
        cluster.lost_members()


def test_a_name_that_is_no_records_is_named(run: Run, used) -> None:
    (used.folder / "metadata/ledgers/photos").mkdir()
    (used.folder / "metadata/ledgers/photos" / f"{1:016x}").write_bytes(b"x")
    status, out, _ = run("status", "--json")
    assert status == 1
    assert "ledgers/photos" in out


def test_a_folder_that_cannot_be_looked_into_hides_no_other(
    run: Run, used, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = directory.PosixDirectory.exists

    def exists(self: directory.PosixDirectory, path: str) -> bool:
        if path.startswith(RECORDS[0]):
            raise PermissionError(13, "Permission denied")
        return real(self, path)

    monkeypatch.setattr(directory.PosixDirectory, "exists", exists)
    monkeypatch.setattr(files, "surely_newest", lambda *_: None)  # it cannot look, either
    status, out, _ = run("ledgers", "--json")
    assert status == 1
    assert [row["state"] == "UNREADABLE" for row in json.loads(out)] == [False, True, False, False]


def files_of(folder: Path) -> list[str]:
    """One file of each kind that a bookie has."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.setdefault(path.parent.name, str(path.relative_to(folder)))
    return list(found.values())


@pytest.mark.parametrize("kind", always(["garbage", "pipe"], CONTENTS))
def test_status_survives_any_file_of_a_bookie(run: Run, used, kind: str) -> None:
    places = [used.bookie(f"bookie-{number}") for number in (1, 2)]
    for place in places:
        for name in files_of(place):
            (place / name).rename(used.folder / "kept")
            (place / name).write_bytes((used.folder / "kept").read_bytes())
            CONTENTS[kind](place / name)
            status, out, err = run("status", "--json")
            assert (status, err) in ((0, ""), (1, "")), name
            assert json.loads(out)["findings"]
            if (place / name).is_dir():
                (place / name).rmdir()
            (used.folder / "kept").replace(place / name)


NAMING = [
    ("audit", "--log", "one"),
    ("recover", "1"),
    ("log", "show", "one"),
    ("repair", "--log", "one"),
    ("scrub", "--ledger", "1"),
]


@pytest.mark.parametrize("words", always(NAMING[:2], NAMING), ids=" ".join)
def test_what_is_named_and_cannot_be_read_is_not_said_to_be_missing(
    run: Run, used, words: tuple[str, ...]
) -> None:
    key = "logs/one" if "one" in words else RECORDS[0]
    damage_record(used, key, "garbage")
    status, _, err = run(*words)
    assert status == 1
    assert f"record '{key}' does not begin like a record" in err
    assert "`bkspark metadata damaged`" in err


def test_a_log_is_shown_although_the_record_of_a_ledger_cannot_be_read(run: Run, used) -> None:
    damage_record(used, RECORDS[0], "garbage")
    status, out, err = run("log", "show", "two")
    assert (status, "ledger 1\toffsets 0 to 29" in out, RECORDS[0] in err) == (1, True, True)
    assert run("log", "show", "one")[0] == 0


LISTED = [RECORDS[0], "logs/one", "bookies/bookie-2", "lost/bookie-6"]


@pytest.mark.parametrize("key", always(LISTED[:1], LISTED))
def test_lists_in_python_and_views_in_spark_hide_no_other(used, key: str) -> None:
    damage_record(used, key, "garbage")
    with BookKeeper(used.uri) as keeper:
        assert keeper.list_logs() == ["one", "two"]
        assert keeper.list_ledgers() == [0, 1, 2, 3]
        found = {status.record.bookie_id for status in keeper.list_bookies()}
    everything = {f"bookie-{number}" for number in range(1, 7)}
    assert found == everything - ({"bookie-2"} if key == "bookies/bookie-2" else set())
    for view in VIEW_NAMES:
        source = BookKeeperDataSource({"metadataServiceUri": used.uri, "view": view})
        reader = source.reader(source.schema())
        [part] = reader.partitions()
        assert sum(batch.num_rows for batch in reader.read(part)) > (1 if view == "ledgers" else -1)


def test_a_bookie_is_added_although_the_record_of_another_cannot_be_read(
    run: Run, used, tmp_path: Path
) -> None:
    damage_record(used, "bookies/bookie-2", "garbage")
    (tmp_path / "new").mkdir()
    status, _, err = run("bookie", "add", (tmp_path / "new").as_uri())
    assert (status, "bookie-7" in err) == (0, True)
    assert run("bookie", "add", used.bookie("bookie-2").as_uri())[0] == 2  # it has a cookie
    assert run("bookie", "add", "--id", "bookie-2", (tmp_path / "other").as_uri())[0] == 2


def test_a_truncation_that_leaves_a_ledger_ends_with_1_as_a_retention_does(run: Run, used) -> None:
    damage_record(used, "ledgers/0000000000000000", "garbage")
    status, _, err = run("log", "truncate", "one", "--before", "30", "--yes")
    assert (status, "1 more could not be deleted" in err) == (1, True)
    assert run("log", "retain", "one", "--yes")[0] == 1
    assert run("log", "read", "one")[1].count("\n") == 30
