"""The store in a folder: finding it, what lies in it, and how much."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark.errors import InvalidRequestError, MetadataVersionError, OutcomeUnknownError
from bkspark.metadata import directory, files
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.directory import open_directory
from bkspark.metadata.files import FileMetadataStore
from bkspark.metadata.versioned_store import MARKER, VersionedRecords
from bkspark.storage import posix_calls
from tests.kit.faulty import FaultyOs

KEY = "ledgers/1"
CALLS: list[Callable[[FileMetadataStore], object]] = [
    lambda store: store.get(KEY),
    lambda store: store.put(KEY, b"x", None),
    lambda store: store.put(KEY, b"x", 1),
    lambda store: store.is_current(KEY, VersionedBytes(b"x", 1)),
    lambda store: store.list("ledgers"),
    lambda store: store.delete(KEY),
]


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


def put_until(store: FileMetadataStore | VersionedRecords, last: int, key: str = KEY) -> None:
    for version in range(1, last + 1):
        store.put(key, b"v%d" % version, version - 1 or None)


def test_order_and_number_of_look_ups_of_the_metadata_check(
    store: FileMetadataStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each append waits for it."""
    put_until(store, 3)
    seen = store.get(KEY)
    assert seen is not None
    system = FaultyOs()
    for module in (directory, files, posix_calls):
        monkeypatch.setattr(module, "os", system)
    assert store.is_current(KEY, seen)
    assert [name for call, name in system.trace if call in ("open", "stat")] == [
        str(root),
        "ledgers",
        KEY,
        f"{4:016x}",
        *(f"pruned-{mark:016x}" for mark in (16, 256, 4096, 65536)),
        "ledgers/~1",
        f"{3:016x}",
    ]


def test_large_record_is_read_to_its_end(store: FileMetadataStore) -> None:
    value = os.urandom(100_000)
    seen = VersionedBytes(value, store.put(KEY, value, None))
    assert store.get(KEY) == seen
    assert store.is_current(KEY, seen)
    assert not store.is_current(KEY, VersionedBytes(value[:-1], seen.version))


def test_record_that_comes_in_pieces_is_read_to_its_end(
    store: FileMetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pieces(FaultyOs):
        def pread(self, descriptor: int, length: int, begin: int) -> bytes:
            return os.pread(descriptor, min(length, 10), begin)

    seen = VersionedBytes(b"x" * 1000, store.put(KEY, b"x" * 1000, None))
    monkeypatch.setattr(posix_calls, "os", Pieces())
    assert store.get(KEY) == seen


STRANGE: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": lambda path: path.mkdir(),
    "link": lambda path: path.symlink_to("/dev/zero"),
    "sparse": lambda path: (path.write_bytes(b""), os.truncate(path, 2**40)),
}
if os.geteuid() == 0:  # others cannot make one
    STRANGE["device"] = lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))


@pytest.mark.parametrize("name", [f"{KEY}/{2:016x}", MARKER])
@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_record_is_neither_waited_for_nor_read(
    store: FileMetadataStore, root: Path, name: str, kind: str
) -> None:
    """A pipe would hang every client for ever, a device would take all memory."""
    seen = VersionedBytes(b"v2", 2)
    put_until(store, 2)
    (root / name).unlink()
    STRANGE[kind](root / name)
    with pytest.raises(OutcomeUnknownError):
        store.get(KEY)
    if name != MARKER:
        with pytest.raises(OutcomeUnknownError):
            store.is_current(KEY, seen)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("place", ["missing", "empty", "file", "below a file"])
def test_what_is_no_store_is_not_an_empty_store(
    tmp_path: Path, place: str, call: Callable[[FileMetadataStore], object]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"")
    path = tmp_path / {"below a file": "file/x"}.get(place, place)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidRequestError, match=r"no bkspark cluster at .*bkspark init file://"):
        call(FileMetadataStore(path.as_uri()))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("call", CALLS)
def test_store_that_was_unmounted_is_not_empty(
    store: FileMetadataStore, root: Path, call: Callable[[FileMetadataStore], object]
) -> None:
    store.put(KEY, b"x", None)
    root.rename(root.with_name("away"))
    root.mkdir()
    with pytest.raises(InvalidRequestError, match="no bkspark cluster"):
        call(store)
    root.rmdir()
    root.with_name("away").rename(root)
    assert store.get(KEY) == VersionedBytes(b"x", 1)


def test_another_format_is_refused(store: FileMetadataStore, root: Path) -> None:
    (root / MARKER).write_bytes(b"bkspark metadata store, format 2\n")
    with pytest.raises(InvalidRequestError, match="another format"):
        store.get(KEY)


def test_format_refuses_what_is_in_use(store: FileMetadataStore, root: Path) -> None:
    put_until(store, 1)
    with pytest.raises(InvalidRequestError, match="exists already"):
        store.format()
    (root / MARKER).rename(root / "photos")
    with pytest.raises(InvalidRequestError, match="other files"):
        store.format()


def test_format_takes_a_fresh_file_system(root: Path) -> None:
    (root / "lost+found").mkdir(parents=True)
    (root / ".tmp-0123").write_bytes(b"")
    store = FileMetadataStore(root.as_uri())
    store.format()
    assert store.get(KEY) is None


@pytest.mark.parametrize("path", ["missing/meta", "file", "file/meta"])
def test_format_makes_no_parents(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InvalidRequestError, match="no such folder"):
        FileMetadataStore((tmp_path / path).as_uri()).format()


@pytest.mark.parametrize("call", CALLS)
def test_file_in_place_of_a_folder_is_unknown(
    store: FileMetadataStore, root: Path, call: Callable[[FileMetadataStore], object]
) -> None:
    (root / "ledgers").write_bytes(b"")
    with pytest.raises(OutcomeUnknownError):
        call(store)


@pytest.mark.parametrize("version", [1, 2])
def test_a_folder_in_place_of_a_version_is_named(
    version: int, store: FileMetadataStore, root: Path
) -> None:
    """It is no record that others change all the time, and no absence either."""
    store.put("a/1", b"one", None)
    path = root / "a/1" / f"{version:016x}"
    path.unlink(missing_ok=True)
    path.mkdir()
    with pytest.raises(
        OutcomeUnknownError, match=f"folder {path.name}/ in place of a version"
    ) as caught:
        store.get("a/1")
    assert caught.value.hint.startswith("bring back the file")


def test_a_value_is_a_plain_file(store: FileMetadataStore, root: Path) -> None:
    put_until(store, 2)
    store.delete("logs/a")
    names = [str(path.relative_to(root)) for path in sorted(root.rglob("*")) if path.is_file()]
    assert names == [MARKER, f"{KEY}/{1:016x}", f"{KEY}/{2:016x}", "logs/~a"]
    assert (root / KEY / f"{2:016x}").read_bytes() == b"v2"


def test_deleted_record_leaves_one_file(store: FileMetadataStore, root: Path) -> None:
    put_until(store, 40)
    (root / KEY / ".tmp-left").write_bytes(b"")
    store.delete(KEY)
    assert [path.name for path in (root / "ledgers").iterdir()] == ["~1"]


@pytest.mark.parametrize("version", [1, 2, 15, 16, 17, 40])
def test_pruned_name_that_is_made_again_counts_for_nothing(
    store: FileMetadataStore, root: Path, version: int
) -> None:
    put_until(store, 80)
    path = root / KEY / f"{version:016x}"
    assert not path.exists()
    for again in (b"made again", b"v%d" % version):
        path.write_bytes(again)
        assert not store.is_current(KEY, VersionedBytes(again, version))
        with pytest.raises(MetadataVersionError):
            store.put(KEY, b"next", version)
        assert store.get(KEY) == VersionedBytes(b"v80", 80)
    put_until(store, 1, "ledgers/2")
    put_at = [store.put(KEY, b"v", number) for number in range(80, 97)]
    assert put_at[-1] == 97
    assert not path.exists()


def test_overtaken_put_is_unknown(
    store: FileMetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A put that wins and is superseded and pruned before it looks: it did happen."""
    put_until(store, 1)
    real = directory.PosixDirectory.put_if_absent

    def overtaken(self: directory.PosixDirectory, path: str, data: bytes) -> bool:
        is_created = real(self, path, data)
        if data == b"slow":
            for version in range(2, 50):
                store.put(KEY, b"fast", version)
        return is_created

    monkeypatch.setattr(directory.PosixDirectory, "put_if_absent", overtaken)
    with pytest.raises(OutcomeUnknownError, match="newer versions before"):
        store.put(KEY, b"slow", 1)


def test_get_that_is_always_overtaken_ends(
    store: FileMetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_until(store, 1)
    real = directory.PosixDirectory.read
    version = 1

    def overtaken(self: directory.PosixDirectory, path: str) -> bytes | None:
        nonlocal version
        if path.startswith(KEY):
            version = store.put(KEY, b"v%d" % version, version)
        return real(self, path)

    monkeypatch.setattr(directory.PosixDirectory, "read", overtaken)
    with pytest.raises(OutcomeUnknownError, match="changed during each"):
        store.get(KEY)


def test_a_put_costs_the_same_after_many_versions(
    store: FileMetadataStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    for version in range(1, 1301):
        faults = FaultyOs()
        monkeypatch.setattr(directory, "os", faults)
        store.put(KEY, b"x", version - 1 or None)
        costs.append(len(faults.trace))
    assert max(costs[1000:]) <= max(costs[:300])
    # 17 to 32 versions, 15 marks a level; 1296 is a multiple of 16.
    assert len(list((root / KEY).iterdir())) <= 32 + 15 + 5


def test_marks_of_every_level_are_used_and_pruned(tmp_path: Path) -> None:
    with open_directory(str(tmp_path)) as found:
        records = VersionedRecords(found, block=2, mark_levels=3)
        put_until(records, 60)
        marks = [int(name[-16:], 16) for name in found.list(KEY) if name.startswith("pruned-")]
        assert marks == [8, 16, 24, 32, 40, 48, 56, 58]
        for version in range(1, 60):
            with pytest.raises(MetadataVersionError):
                records.put(KEY, b"late", version - 1 or None)
        assert records.get(KEY) == VersionedBytes(b"v60", 60)


def test_pruning_catches_up_little_by_little(store: FileMetadataStore, root: Path) -> None:
    put_until(store, 31)
    for version in range(32, 200):
        # As if every client had been killed before it pruned.
        (root / KEY / f"{version:016x}").write_bytes(b"x")
    for version in range(200, 300):
        store.put(KEY, b"x", version - 1)
    assert len(list((root / KEY).iterdir())) < 60


@pytest.mark.parametrize(
    "uri",
    [
        "file://host/dir",
        "file:relative",
        "file://",
        "file:///dir?mode=w",
        "file:///dir#x",
        "file:///a%00b",
        "http:///dir",
        "/dir",
        "file://[/dir",
    ],
)
def test_address_that_is_no_folder_is_refused(uri: str) -> None:
    with pytest.raises(InvalidRequestError):
        FileMetadataStore(uri)


def test_address_is_kept_in_one_form(tmp_path: Path) -> None:
    path = tmp_path / "50% of #1? é"
    store = FileMetadataStore(f"{path.as_uri()}/")
    store.format()
    store.put(KEY, b"x", None)
    assert store.uri == path.as_uri()
    assert FileMetadataStore(store.uri).get(KEY) == VersionedBytes(b"x", 1)
    assert FileMetadataStore(store.uri.replace("file://", "file://localhost")).uri == store.uri
    shutil.rmtree(path)


# --- what is durable when -------------------------------------------------------------------------


def changes(system: FaultyOs) -> list[tuple[str, str]]:
    return [call for call in system.trace if call[0] in ("mkdir", "fsync", "link", "unlink")]


def test_the_name_of_a_store_is_durable_when_it_was_made(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = FaultyOs()
    for module in (directory, files, posix_calls):
        monkeypatch.setattr(module, "os", system)
    FileMetadataStore(root.as_uri()).format()
    assert system.trace[-2:] == [("open", str(root.parent)), ("fsync", str(root.parent))]


def test_folders_that_a_killed_client_left_are_made_durable_before_a_record_is_in_them(
    store: FileMetadataStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / KEY).mkdir(parents=True)
    system = FaultyOs()
    monkeypatch.setattr(directory, "os", system)
    store.put(KEY, b"x", None)
    made = ["mkdir ledgers", "fsync .", "mkdir 1", "fsync ledgers"]
    assert [" ".join(call) for call in changes(system)[:4]] == made


def test_versions_are_removed_behind_a_tombstone_that_is_durable_whoever_made_it(
    store: FileMetadataStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_until(store, 1)
    (root / "ledgers" / "~1").touch()
    system = FaultyOs()
    monkeypatch.setattr(directory, "os", system)
    store.delete(KEY)
    names = [("fsync", "ledgers"), ("unlink", f"{KEY}/{1:016x}")]
    assert [call for call in changes(system) if call in names] == names


def test_a_deleted_record_leaves_a_name_and_nothing_in_it(
    store: FileMetadataStore, root: Path
) -> None:
    put_until(store, 40)
    store.delete(KEY)
    files = [path for path in root.rglob("*") if path.is_file() and path.parent != root]
    assert [(path.name, path.stat().st_size) for path in files] == [("~1", 0)]
    assert store.get(KEY) is None
    with pytest.raises(MetadataVersionError):
        store.put(KEY, b"again", None)
