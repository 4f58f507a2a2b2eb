"""What only a directory can do to a bookie: links, pipes, modes, paths, descriptors."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie, BookieAddress
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.testing.bookie_place import ENTRIES, JOURNAL, MARKER, a_cookie

FOLDER = MARKER.rpartition("/")[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a bookie"


@pytest.fixture
def bookie(path: Path) -> Bookie:
    uri.storage(path.as_uri()).format(a_cookie())
    return uri.open_bookie(BookieAddress("b1", "1" * 32, "c" * 32, path.as_uri()))


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_modes_are_private(bookie: Bookie, path: Path) -> None:
    with bookie.open_root() as root:
        root.put_new(MARKER, b"x")
        root.create(ENTRIES).finish()
        root.open_journal(JOURNAL).close()
    for found in [path, *path.rglob("*")]:
        assert found.stat().st_mode & 0o777 == (0o700 if found.is_dir() else 0o600)


def test_nothing_stays_open(bookie: Bookie) -> None:
    before = open_descriptors()
    with bookie.open_root() as root:
        root.put_new(MARKER, b"x")
        root.put_new(MARKER, b"x")
        root.create(ENTRIES).discard()
        file = root.create(ENTRIES)
        file.finish()
        root.open_journal(JOURNAL).close()
        root.list(FOLDER)
        root.read(MARKER)
        root.delete(MARKER)
        for name in ("none/x", "ledgers/x"):
            assert root.read(name) is None
        with pytest.raises(BookieUnavailableError):
            root.open_journal(JOURNAL)
        with pytest.raises(BookieUnavailableError):
            root.read("ledgers")
    assert open_descriptors() == before


@pytest.mark.parametrize("target", ["elsewhere", "missing"])
def test_linked_folder_is_no_answer(bookie: Bookie, path: Path, target: str) -> None:
    """A link to a disk that is not mounted must not look like an absence."""
    (path.parent / "elsewhere").mkdir()
    (path / "ledgers").symlink_to(path.parent / target)
    with bookie.open_root() as root:
        for attempt in (
            lambda: root.read(MARKER),
            lambda: root.size(MARKER),
            lambda: root.list(FOLDER),
            lambda: root.put_new(MARKER, b"x"),
            lambda: root.delete(MARKER),
        ):
            with pytest.raises(BookieUnavailableError):
                attempt()
    assert list((path.parent / "elsewhere").iterdir()) == []


def test_linked_or_strange_file_is_no_answer(bookie: Bookie, path: Path) -> None:
    (path / "f").mkdir()
    (path / "f/link").symlink_to(path / "COOKIE")
    (path / "f/dangling").symlink_to(path / "none")
    (path / "f/folder").mkdir()
    os.mkfifo(path / "f/pipe")
    with bookie.open_root() as root:
        for name in ("f/link", "f/dangling", "f/folder", "f/pipe", "COOKIE/x"):
            for attempt in (root.read, root.size, root.delete):
                with pytest.raises(BookieUnavailableError):
                    attempt(name)
            with pytest.raises(BookieUnavailableError):
                root.put_new(name, b"x")
        assert root.list("f") == ["dangling/", "folder/", "link/", "pipe/"]


def test_root_stays_with_its_directory(bookie: Bookie, path: Path) -> None:
    with bookie.open_root() as root:
        root.put_new(MARKER, b"x")
        path.rename(path.with_name("moved"))
        path.mkdir()
        assert root.read(MARKER) == b"x"
        with pytest.raises(BookieUnavailableError, match="no cookie"), bookie.open_root():
            pass


def test_closed_root_answers_nothing(bookie: Bookie) -> None:
    with bookie.open_root() as root:
        root.close()
        with pytest.raises(BookieUnavailableError):
            root.read(MARKER)


def test_entry_file_outlives_its_root(bookie: Bookie) -> None:
    with bookie.open_root() as root:
        file = root.create(ENTRIES)
    file.write(b"x")
    file.finish()
    with bookie.open_root() as root:
        assert root.read(ENTRIES) == b"x"


def test_bookie_crosses_to_a_new_process(bookie: Bookie) -> None:
    with bookie.open_root() as root:
        assert root.read(MARKER) is None
        program = (
            "import pickle, sys\n"
            "bookie, name = pickle.load(sys.stdin.buffer)\n"
            "with bookie.open_root() as root: root.put_new(name, b'from another process')\n"
        )
        command = [sys.executable, "-c", program]
        subprocess.run(command, input=pickle.dumps((bookie, MARKER)), check=True)
        assert root.read(MARKER) == b"from another process"


@pytest.mark.parametrize(
    "url",
    ["file://", "file:///a/../b", "file://host/a", "file:///a?b", "file:///a#b", "file:////a",
     "file:///a/./b", "file:relative", "file:///a%00b"],
)  # fmt: skip
def test_urls_that_name_no_local_directory(url: str) -> None:
    with pytest.raises(InvalidRequestError):
        uri.storage(url).read_cookie()


@pytest.mark.parametrize("url", ["", "/tmp/bk", "sftp://user:secret@host/x", "memory:x"])
def test_unknown_scheme(url: str) -> None:
    address = BookieAddress("b1", "1" * 32, "c" * 32, url)
    for attempt in (lambda: uri.storage(url), lambda: uri.open_bookie(address)):
        with pytest.raises(InvalidRequestError, match="file://") as refusal:
            attempt()
        assert "secret" not in str(refusal.value)


def test_root_url_is_not_shown_with_credentials() -> None:
    with pytest.raises(InvalidRequestError) as refusal:
        uri.storage("file://user:secret@host/a").read_cookie()
    assert "secret" not in str(refusal.value)


def test_format_makes_only_the_last_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="mount the disk"):
        uri.storage((tmp_path / "missing/bk").as_uri()).format(a_cookie())
    assert list(tmp_path.iterdir()) == []


def test_format_refuses_what_everybody_can_write(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)
    with pytest.raises(InvalidRequestError, match="chmod 700"):
        uri.storage(path.as_uri()).format(a_cookie())
    assert list(path.iterdir()) == []


def test_format_names_what_is_in_the_way(path: Path) -> None:
    (path / "lost+found").mkdir(parents=True)
    with pytest.raises(InvalidRequestError, match=r"lost\+found"):
        uri.storage(path.as_uri()).format(a_cookie())


def test_format_goes_on_after_a_killed_one(path: Path) -> None:
    path.mkdir(mode=0o700)
    (path / ".tmp-1").write_bytes(b"half a coo")
    storage = uri.storage(path.as_uri())
    storage.format(a_cookie())
    assert storage.read_cookie() == a_cookie()


def test_format_refuses_a_file(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(BookieUnavailableError):
        uri.storage(path.as_uri()).format(a_cookie())


def test_failure_domain_is_the_disk(path: Path) -> None:
    device = path.parent.stat().st_dev
    expected = f"disk-{os.major(device)}:{os.minor(device)}"
    storage = uri.storage(path.as_uri())
    assert storage.failure_domain() == expected
    storage.format(a_cookie())
    assert storage.failure_domain() == expected


def test_cookie_has_its_own_name(bookie: Bookie) -> None:
    with bookie.open_root() as root:
        assert not root.put_new(layout.COOKIE, b"another")


def test_what_nfs_keeps_of_a_journal_that_was_removed_is_none(bookie: Bookie, path: Path) -> None:
    """As long as a process of the same host has it open; else nobody could recover the ledger."""
    folder, _, name = JOURNAL.rpartition("/")
    with bookie.open_root() as root:
        root.open_journal(JOURNAL).close()
        (path / folder / ".nfs0000000000a1b2c300000007").write_bytes(b"removed")
        (path / folder / ".nfs-notes").write_bytes(b"strange")
        assert root.list(folder) == [".nfs-notes", name]
