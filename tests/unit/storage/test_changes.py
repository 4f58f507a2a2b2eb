"""The kernel tells of changes of files."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bkspark import environment
from bkspark.storage import changes
from bkspark.storage.changes import Changes, watch_all


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "journal"
    file.write_bytes(b"a")
    return file


@pytest.fixture
def watched() -> Iterator[Changes]:
    watched = Changes()
    yield watched
    watched.close()


def test_an_append_is_told_once(file: Path, watched: Changes) -> None:
    assert watched.watch(str(file))
    assert not watched.wait(0.0)
    with file.open("ab") as opened:
        opened.write(b"b")
    assert watched.wait(60.0)
    watched.forget()
    assert not watched.wait(0.0)


@pytest.mark.parametrize("name", ["new", "linked", "moved", "deleted"])
def test_other_changes_are_told(file: Path, watched: Changes, name: str) -> None:
    folder = file.parent / "record"
    folder.mkdir()
    assert watched.watch(str(folder if name != "deleted" else file))
    match name:
        case "new":
            (folder / "1").write_bytes(b"")
        case "linked":
            os.link(file, folder / "1")
        case "moved":
            file.rename(folder / "1")
        case _:
            file.unlink()
    assert watched.wait(60.0)


def test_all_must_be_watched(file: Path) -> None:
    missing = file.parent / "missing"
    for paths, is_told in (([file], True), ([file, missing], False)):
        watched, are_told = watch_all(map(str, paths))
        assert watched is not None
        assert are_told is is_told
        watched.close()


@pytest.mark.parametrize("names", [[], ["missing"]])
def test_nothing_is_kept_if_nothing_is_watched(tmp_path: Path, names: list[str]) -> None:
    before = os.listdir("/proc/self/fd")
    assert watch_all(str(tmp_path / name) for name in names) == (None, False)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_other_hosts_are_not_told_of(
    file: Path, watched: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "mount_of", lambda _path: None)
    assert not watched.watch(str(file))


def test_other_systems_tell_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_LIBRARY", object())
    watched = Changes()
    assert not watched.watch(str(file))
    watched.close()
    watched.close()


def test_other_tasks_tell(watched: Changes) -> None:
    """However often, and after the end too."""
    watched.tell()  # nothing is expected
    watched.expect()
    watched.expect()
    assert not watched.wait(0.0)
    for _ in range(100_000):
        watched.tell()
    assert watched.wait(60.0)
    watched.forget()
    assert not watched.wait(0.0)
    watched.close()
    watched.tell()


def test_a_wait_ends_when_another_task_tells(watched: Changes) -> None:
    watched.expect()
    task = environment.start(watched.tell, "tell")
    assert watched.wait(60.0)
    task.join(60.0)


def test_a_wait_without_anything_to_wait_for_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_LIBRARY", object())
    assert not Changes().wait(0.0)


def test_what_others_watch_counts_too(file: Path) -> None:
    for others, is_told in (([True], True), ([True, False], False)):
        watched, are_told = watch_all([], [lambda _changes, told=told: told for told in others])
        assert watched is not None
        assert are_told is is_told
        watched.close()


def test_changes_are_counted_by_what_was_watched(tmp_path: Path, watched: Changes) -> None:
    files = [tmp_path / name for name in ("a", "b", "c")]
    for file in files:
        file.write_bytes(b"")
        assert watched.watch(str(file))
    watched.expect()
    for number, file in enumerate(files):
        for _ in range(number):
            with file.open("ab") as opened:
                opened.write(b"x")
            assert watched.wait(60.0)
        if number == 1:  # the kernel may tell of changes in a row together
            first = watched.forget()
    watched.tell()
    folder = tmp_path / "folder"
    folder.mkdir()
    assert watched.watch(str(folder))
    (folder / "a name that is told too").touch()
    (folder / "2").touch()
    assert first == {str(files[1]): 1}
    found = watched.forget()
    assert found.keys() == {str(files[2]), str(folder), ""}
    assert found[str(folder)] == 2
    assert watched.forget() == {}
