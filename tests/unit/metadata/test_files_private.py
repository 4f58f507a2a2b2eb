"""What others could have changed of a store in a folder is not believed, wherever they could."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.errors import InvalidRequestError, NothingSentError, OutcomeUnknownError
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.directory import Directory, open_directory
from bkspark.metadata.files import FileMetadataStore
from bkspark.metadata.versioned_store import MARKER
from bkspark.storage.access import NotPrivateError

from .test_files import CALLS, KEY, put_until


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "meta"


@pytest.fixture
def store(root: Path) -> FileMetadataStore:
    store = FileMetadataStore(root.as_uri())
    store.format()
    return store


def test_folders_and_files_are_private(store: FileMetadataStore, root: Path) -> None:
    put_until(store, 40)
    store.delete("logs/a")
    for found in [root, *root.rglob("*")]:
        assert found.stat().st_mode & 0o777 == (0o700 if found.is_dir() else 0o600), found


@pytest.mark.parametrize("name", ["", MARKER, "ledgers", KEY, f"{KEY}/{1:016x}"])
def test_what_everybody_can_write_is_not_believed(
    store: FileMetadataStore, root: Path, name: str
) -> None:
    put_until(store, 1)
    (root / name).chmod(0o777)
    with pytest.raises(NothingSentError, match="is writable by all users; chmod"):
        store.get(KEY)


@pytest.mark.parametrize("name", ["", MARKER, "ledgers", KEY, f"{KEY}/{1:016x}"])
def test_what_belongs_to_somebody_else_is_not_believed(
    store: FileMetadataStore, root: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_until(store, 1)
    if os.geteuid() == 0:
        os.chown(root / name, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(NothingSentError, match="belongs to user"):
        store.get(KEY)


@pytest.mark.parametrize("call", CALLS)
def test_a_folder_that_everybody_can_write_is_asked_nothing(
    store: FileMetadataStore, root: Path, call: Callable[[FileMetadataStore], object]
) -> None:
    """Whoever removed the newest version there would have made the one before it the newest."""
    put_until(store, 2)
    (root / KEY / f"{2:016x}").unlink()
    (root / "ledgers").chmod(0o777)
    before = sorted(root.rglob("*"))
    hint = f"{root}/ledgers is writable by all users; chmod 700 {root}/ledgers"
    with pytest.raises(NothingSentError, match=re.escape(hint)):
        call(store)
    assert sorted(root.rglob("*")) == before


LOOKS: dict[str, Callable[[Directory], object]] = {
    "read": lambda found: found.read(f"{KEY}/{1:016x}"),
    "exists": lambda found: found.exists(f"{KEY}/{9:016x}"),
    "list": lambda found: found.list(KEY),
    "put_if_absent": lambda found: found.put_if_absent(f"{KEY}/{9:016x}", b"v9"),
    "make_folder": lambda found: found.make_folder(f"{KEY}/below"),
}


@pytest.mark.parametrize("level", ["ledgers", KEY])
@pytest.mark.parametrize("kind", LOOKS)
def test_a_look_of_any_kind_is_into_private_folders(
    store: FileMetadataStore, root: Path, kind: str, level: str
) -> None:
    put_until(store, 1)
    (root / level).chmod(0o777)
    with open_directory(str(root)) as found:
        for _ in range(2):
            with pytest.raises(NotPrivateError, match=f"{level} is writable"):
                LOOKS[kind](found)


def test_a_folder_that_everybody_can_write_hides_no_other(
    store: FileMetadataStore, root: Path
) -> None:
    put_until(store, 1)
    put_until(store, 1, "ledgers/2")
    (root / KEY).chmod(0o777)
    assert store.list("ledgers") == ["1", "2"]
    assert store.get("ledgers/2") == VersionedBytes(b"v1", 1)
    # A deletion has left its tombstone by then.
    for call, error in ((store.get, NothingSentError), (store.delete, OutcomeUnknownError)):
        with pytest.raises(error, match="ledgers/1 is writable by all users"):
            call(KEY)


@pytest.mark.parametrize("level", ["ledgers", KEY])
def test_a_link_in_place_of_a_folder_is_not_followed(
    store: FileMetadataStore, root: Path, level: str
) -> None:
    put_until(store, 1)
    (root / level).rename(root.with_name("elsewhere"))
    (root / level).symlink_to(root.with_name("elsewhere"))
    with pytest.raises(OutcomeUnknownError, match=f"{level} is no folder"):
        store.get(KEY)


def test_format_refuses_what_everybody_can_write(root: Path) -> None:
    root.mkdir()
    root.chmod(0o777)
    with pytest.raises(InvalidRequestError, match="chmod 700"):
        FileMetadataStore(root.as_uri()).format()
    assert list(root.iterdir()) == []
