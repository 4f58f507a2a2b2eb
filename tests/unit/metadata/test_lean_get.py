"""The lean look of a ``get``: it finds what the full look-ups find, or leaves it to them."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.errors import BookKeeperError
from bkspark.format.strict_json import RECORD_BYTES_MAX
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.directory import open_directory, surely_newest
from bkspark.metadata.files import FileMetadataStore
from bkspark.metadata.versioned_store import MARKER, look_ups

from .test_lean_look import CHANGES, KEY, NAMES, PLACES, VALUE, root

__all__ = ["root"]


def newest(root: Path) -> tuple[str, bytes] | None:
    with open_directory(str(root)) as directory:
        return surely_newest(directory, KEY, lambda own: look_ups(KEY, int(own, 16)))


def test_it_finds_the_newest_version(root: Path) -> None:
    (root / KEY / f"{2:016x}").write_bytes(b"older")
    (root / KEY / ".temp").write_bytes(b"")
    assert newest(root) == (NAMES.own, VALUE)


@pytest.mark.parametrize("name", [*NAMES.absent, "../~1"])
def test_a_sign_of_a_later_version_that_the_listing_lacks_is_seen(
    root: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / KEY / name).touch()
    monkeypatch.setattr(os, "listdir", lambda _folder: [NAMES.own])
    assert newest(root) is None


@pytest.mark.parametrize("listed", [[], [f"{4:016x}"], ["pruned-0000000000000010"]])
def test_without_a_listed_version_it_finds_nothing(
    root: Path, listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "listdir", lambda _folder: listed)
    assert newest(root) is None


@pytest.mark.parametrize(
    ("what", "place"),
    [(what, place) for what, (_, places) in CHANGES.items() for place in places if place],
)
def test_what_others_may_have_changed_is_not_taken(root: Path, what: str, place: str) -> None:
    CHANGES[what][0](root / place)
    assert newest(root) is None


@pytest.mark.parametrize("place", PLACES[1:])
def test_what_belongs_to_another_user_is_not_taken(
    root: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    number, fstat, stat = (root / place).stat().st_ino, os.fstat, os.stat

    def owned(status: os.stat_result) -> os.stat_result:
        fields = [*status[:10]]
        fields[4] = 12345 if status.st_ino == number else status.st_uid
        return os.stat_result(fields)

    monkeypatch.setattr(os, "fstat", lambda descriptor: owned(fstat(descriptor)))
    monkeypatch.setattr(os, "stat", lambda *names, **how: owned(stat(*names, **how)))
    assert newest(root) is None


@pytest.mark.parametrize("is_pipe", [True, False])
def test_what_is_no_record_is_not_taken(root: Path, is_pipe: bool) -> None:
    own = root / KEY / NAMES.own
    own.unlink()
    if is_pipe:
        os.mkfifo(own, 0o600)
    else:
        own.touch()
        os.truncate(own, RECORD_BYTES_MAX + 1)
    assert newest(root) is None


def test_a_version_is_durable_before_it_is_returned(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda folder: synced.append(os.fstat(folder).st_ino))
    assert newest(root) is not None
    assert synced == [(root / KEY).stat().st_ino]


def test_descriptors_are_closed(root: Path) -> None:
    before = os.listdir("/proc/self/fd")
    assert newest(root)
    (root / KEY / NAMES.own).unlink()
    assert newest(root) is None
    assert os.listdir("/proc/self/fd") == before


# --- many keys -----------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> FileMetadataStore:
    store = FileMetadataStore((tmp_path / "store").as_uri())
    store.format()
    return store


def told(answer: Callable[[], VersionedBytes | None]) -> object:
    try:
        return answer()
    except BookKeeperError as error:
        return type(error), str(error)


def test_many_keys_are_answered_as_each_of_them(store: FileMetadataStore, tmp_path: Path) -> None:
    for number in range(3):
        store.put(f"logs/{number}", b"%d" % number, None)
    for version in range(1, 40):
        store.put("logs/2", b"version %d" % version, version)
    store.delete("logs/1")
    (tmp_path / "store/logs/pipe").mkdir(mode=0o700)
    os.mkfifo(tmp_path / f"store/logs/pipe/{1:016x}", 0o600)
    keys = ["logs/0", "logs/absent", "logs/1", "logs/2", "Logs/../x", "logs/pipe", "none/x"]
    answers = store.get_keys(keys)
    assert list(answers) == keys
    assert {key: told(answer) for key, answer in answers.items()} == {
        key: told(lambda key=key: store.get(key))  # type: ignore[misc]
        for key in keys
    }
    assert answers["logs/2"]() == VersionedBytes(b"version 39", 40)


@pytest.mark.parametrize("what", ["gone", "without a marker", "another"])
def test_a_place_without_the_store_says_why_for_each_key(
    store: FileMetadataStore, tmp_path: Path, what: str
) -> None:
    store.put("logs/a", b"a", None)
    place = tmp_path / "store"
    if what == "gone":
        shutil.rmtree(place)
    elif what == "without a marker":
        (place / MARKER).unlink()
    else:
        shutil.rmtree(place)
        FileMetadataStore(place.as_uri()).format()
    for key in ("logs/a", "logs/b"):
        answer = told(store.get_keys(["logs/a", "logs/b"])[key])
        assert isinstance(answer, tuple)
        assert answer == told(lambda key=key: store.get(key))  # type: ignore[misc]
