"""System calls in durable order; whichever of them crashes or fails, names are absent or whole."""

import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from bkspark.bookie import posix, posix_place, uri
from bkspark.bookie.contract import Bookie, BookieAddress, BookieRoot
from bkspark.bookie.posix import PosixBookie
from bkspark.errors import BookieUnavailableError
from bkspark.format import layout
from bkspark.storage import posix_calls
from bkspark.testing.bookie_place import ENTRIES, JOURNAL, MARKER, a_cookie
from tests.kit.faulty import Crash, FaultyOs, Moment

DATA = b"0123456789" * 10
ERRORS = [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ENOTDIR]
CALLS_MAX = 100


@pytest.fixture(autouse=True)
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyOs]:
    system = FaultyOs()
    use(monkeypatch, system)
    yield system
    system.close_all()


def use(patch: pytest.MonkeyPatch, system: FaultyOs) -> None:
    for module in (posix, posix_calls, posix, posix_place):
        patch.setattr(module, "os", system)


def a_bookie(path: Path) -> Bookie:
    """A new bookie; nothing has failed yet."""
    url = path.as_uri()
    uri.storage(url).format(a_cookie())
    return PosixBookie(BookieAddress("b1", "1" * 32, "c" * 32, url))


def put(root: BookieRoot) -> None:
    assert root.put_new(MARKER, DATA)


def write_file(root: BookieRoot) -> None:
    file = root.create(ENTRIES)
    file.write(DATA)
    file.write(DATA)
    file.finish()


def append(root: BookieRoot) -> None:
    journal = root.open_journal(JOURNAL)
    try:
        journal.append([DATA, DATA])
    finally:
        journal.close()


def repeat_put(root: BookieRoot) -> None:
    assert not root.put_new(MARKER, b"other")


Action = Callable[[BookieRoot], None]
WRITES: list[tuple[Action, str, bytes]] = [
    (put, MARKER, DATA),
    (write_file, ENTRIES, DATA * 2),
]


def calls_of(bookie: Bookie, system: FaultyOs, action: Action) -> list[tuple[str, str]]:
    with bookie.open_root() as root:
        begin = len(system.trace)
        action(root)
        return system.trace[begin:]


def effects(calls: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The calls that change or persist something, with temporary names made alike."""
    changing = {"mkdir", "write", "writev", "fsync", "fdatasync", "link", "unlink"}
    return [
        (call, "temp" if name.startswith(posix_calls.TEMP_PREFIX) else name)
        for call, name in calls
        if call in changing
    ]


def folder_calls(root: str, *folders: str) -> list[tuple[str, str]]:
    above = [root, *folders[:-1]]
    return [
        call
        for parent, folder in zip(above, folders)
        for call in (("mkdir", folder), ("fsync", parent))
    ]


def test_order_of_format(tmp_path: Path, system: FaultyOs) -> None:
    uri.storage((tmp_path / "bk").as_uri()).format(a_cookie())
    root = str(tmp_path / "bk")
    assert effects(system.trace) == [
        ("mkdir", root),
        ("fsync", str(tmp_path)),
        ("write", "temp"),
        ("fsync", "temp"),
        ("link", "temp"),
        ("unlink", "temp"),
        ("fsync", root),
    ]


def test_order_of_put_new(tmp_path: Path, system: FaultyOs) -> None:
    bookie = a_bookie(tmp_path / "bk")
    *folders, name = MARKER.split("/")
    assert effects(calls_of(bookie, system, put)) == [
        *folder_calls(str(tmp_path / "bk"), *folders),
        ("write", "temp"),
        ("fsync", "temp"),
        ("link", "temp"),
        ("unlink", "temp"),
        ("fsync", folders[-1]),
    ]
    # One found in place is made durable again before it is reported (R1).
    assert effects(calls_of(bookie, system, repeat_put)) == [
        ("fsync", name),
        ("fsync", folders[-1]),
    ]


def test_order_of_a_large_file(tmp_path: Path, system: FaultyOs) -> None:
    bookie = a_bookie(tmp_path / "bk")
    *folders, _ = ENTRIES.split("/")
    assert effects(calls_of(bookie, system, write_file)) == [
        *folder_calls(str(tmp_path / "bk"), *folders),
        ("write", "temp"),
        ("write", "temp"),
        ("fsync", "temp"),
        ("link", "temp"),
        ("unlink", "temp"),
        ("fsync", folders[-1]),
    ]


def test_order_of_an_append(tmp_path: Path, system: FaultyOs) -> None:
    bookie = a_bookie(tmp_path / "bk")
    *folders, name = JOURNAL.split("/")
    assert effects(calls_of(bookie, system, append)) == [
        *folder_calls(str(tmp_path / "bk"), *folders),
        ("fsync", name),
        ("fsync", folders[-1]),
        ("writev", name),
        ("fdatasync", name),
    ]


def test_folder_left_by_a_killed_process_is_made_durable(tmp_path: Path, system: FaultyOs) -> None:
    bookie = a_bookie(tmp_path / "bk")
    (tmp_path / "bk/ledgers").mkdir()
    posix_calls.forget_durable_folders()
    assert effects(calls_of(bookie, system, put))[0] == ("fsync", str(tmp_path / "bk"))


def test_a_folder_with_the_inode_of_one_that_was_removed_is_made_durable(
    tmp_path: Path, system: FaultyOs
) -> None:
    bookie = a_bookie(tmp_path / "bk")
    calls_of(bookie, system, lambda root: root.put_new("ledgers/1/terms/1", b""))
    (tmp_path / "bk/ledgers/1").rename(tmp_path / "bk/ledgers/2")  # as if another had made it
    found = effects(calls_of(bookie, system, lambda root: root.put_new("ledgers/2/terms/2", b"")))
    assert found[:2] == [("fsync", "ledgers"), ("fsync", "2")]


def test_files_of_a_folder_are_removed_in_order_and_then_the_folder(
    tmp_path: Path, system: FaultyOs
) -> None:
    bookie = a_bookie(tmp_path / "bk")
    for name in ("f/2", "f/1-a", "f/1", "f/.tmp-x"):
        path = tmp_path / "bk" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"abc")
    found = effects(calls_of(bookie, system, lambda root: root.remove_folder("f")))
    names = [name for call, name in found if call == "unlink"]
    assert names[-3:] == ["1", "1-a", "2"]
    assert not (tmp_path / "bk/f").exists()


def test_deletion_is_durable(tmp_path: Path, system: FaultyOs) -> None:
    bookie = a_bookie(tmp_path / "bk")
    calls_of(bookie, system, put)
    *_, folder, name = MARKER.split("/")
    for expected in ([("unlink", name), ("fsync", folder)], [("unlink", name), ("fsync", folder)]):
        found = effects(calls_of(bookie, system, lambda root: root.delete(MARKER)))
        assert found == expected[-len(found) :]
        assert found[-1] == ("fsync", folder)


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize(("action", "name", "whole"), WRITES, ids=["put", "file"])
def test_crash_at_every_call(
    tmp_path: Path, action: Action, name: str, whole: bytes, moment: Moment
) -> None:
    """Whatever was reached, the name is absent or whole, and can be put again."""
    for number in range(CALLS_MAX):
        bookie = a_bookie(tmp_path / f"bk{number}")
        is_done = not dies(bookie, action, number, moment)
        with bookie.open_root() as root:
            found = root.read(name)
            assert found in (None, whole)
            assert found == whole or not is_done
            assert root.list(name.rpartition("/")[0]) == ([name.split("/")[-1]] if found else [])
            assert root.put_new(name, whole) == (found is None)
            assert root.read(name) == whole
        if is_done:
            return
    raise AssertionError("the action never ended")


@pytest.mark.parametrize("moment", list(Moment))
def test_crash_at_every_call_of_an_append(tmp_path: Path, moment: Moment) -> None:
    """The journal is absent, or holds a beginning of the record."""
    for number in range(CALLS_MAX):
        bookie = a_bookie(tmp_path / f"bk{number}")
        is_done = not dies(bookie, append, number, moment)
        with bookie.open_root() as root:
            found = root.read(JOURNAL)
        assert (DATA * 2).startswith(found or b"")
        if is_done:
            assert found == DATA * 2
            return
    raise AssertionError("the action never ended")


def dies(bookie: Bookie, action: Action, number: int, moment: Moment) -> bool:
    """Whether a process that is to die at call ``number`` got that far."""
    system = FaultyOs()
    system.crash_at(number, moment)
    with pytest.MonkeyPatch.context() as patch:
        use(patch, system)
        try:
            with bookie.open_root() as root:
                action(root)
        except Crash:
            return True
        finally:
            system.close_all()
    return False


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize(("action", "name", "whole"), WRITES, ids=["put", "file"])
def test_error_at_every_call_of_a_write(
    tmp_path: Path, action: Action, name: str, whole: bytes, error: int
) -> None:
    for number in range(CALLS_MAX):
        bookie = a_bookie(tmp_path / f"bk{number}")
        is_done = not fails(bookie, action, number, error)
        with bookie.open_root() as root:
            found = root.read(name)
            assert found in (None, whole)
            assert root.put_new(name, whole) == (found is None)
        if is_done:
            assert found == whole
            return
    raise AssertionError("the action never ended")


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize(
    "look",
    [
        lambda root: root.read(MARKER) is None,
        lambda root: root.read(ENTRIES) is None,
        lambda root: root.size(MARKER) is None,
        lambda root: root.size(ENTRIES) is None,
        lambda root: root.list(layout.entries_folder(1)) == [],
        lambda root: root.list(MARKER.rpartition("/")[0]) == [],
        lambda root: root.put_new(MARKER, b"x"),
        lambda root: root.delete(MARKER),
        lambda root: root.free_bytes(),
    ],
)
def test_error_is_never_an_answer(
    tmp_path: Path, look: Callable[[BookieRoot], object], error: int
) -> None:
    """With any one call failing, the answer is the right one or none at all."""
    for number in range(CALLS_MAX):
        bookie = a_bookie(tmp_path / f"bk{number}")
        with bookie.open_root() as root:
            put(root)
            right = look(root) if number == 0 else None
        if number == 0:
            expected = right if isinstance(right, bool) else None
            continue
        answers: list[object] = []
        action = partial(answer, answers, look)
        if not fails(bookie, action, number - 1, error):
            assert expected is None or answers == [expected]
            return
        assert answers == []
    raise AssertionError("the action never ended")


def answer(answers: list[object], look: Callable[[BookieRoot], object], root: BookieRoot) -> None:
    answers.append(look(root))


def fails(bookie: Bookie, action: Action, number: int, error: int) -> bool:
    """Whether ``action`` fails, as it must, if call ``number`` does; False if there is none."""
    system = FaultyOs()
    system.fail_at(number, error)
    with pytest.MonkeyPatch.context() as patch:
        use(patch, system)
        try:
            with bookie.open_root() as root:
                action(root)
        except BookieUnavailableError:
            return True
        assert len(system.trace) <= number, system.trace[number]
    return False


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["writev", "fdatasync"])
def test_journal_ends_at_its_first_error(
    tmp_path: Path, system: FaultyOs, call: str, error: int
) -> None:
    bookie = a_bookie(tmp_path / "bk")
    with bookie.open_root() as root:
        journal = root.open_journal(JOURNAL)
        journal.append([DATA])
        system.fail_at(len(system.trace) + ["writev", "fdatasync"].index(call), error)
        with pytest.raises(BookieUnavailableError):
            journal.append([DATA])
        assert system.trace[-1] == (call, JOURNAL.split("/")[-1])
        calls = len(system.trace)
        with pytest.raises(BookieUnavailableError):
            journal.append([DATA])
        assert len(system.trace) == calls, "nothing may follow a record of unknown durability (H24)"
        assert journal.end == len(DATA)
        assert root.has_journal(journal)
        journal.close()


def test_short_write_ends_the_journal(
    tmp_path: Path, system: FaultyOs, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_bookie(tmp_path / "bk").open_root() as root:
        journal = root.open_journal(JOURNAL)
        with monkeypatch.context() as patch:
            patch.setattr(system, "writev", lambda _fd, _views: 3)
            with pytest.raises(BookieUnavailableError, match="only 3 of 100 bytes"):
                journal.append([DATA])
        with pytest.raises(BookieUnavailableError):
            journal.append([DATA])
        journal.close()


def test_short_writes_of_a_file_go_on(
    tmp_path: Path, system: FaultyOs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "write", lambda fd, data: os.write(fd, data[:7]))
    with a_bookie(tmp_path / "bk").open_root() as root:
        put(root)
        write_file(root)
        assert root.read(MARKER) == DATA
        assert root.read(ENTRIES) == DATA * 2


def test_the_loser_of_a_race_makes_the_winners_file_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The winner may die between its name and its fsync."""
    bookie = a_bookie(tmp_path / "bk")
    system = RacedOs(lambda: (tmp_path / "bk" / MARKER).write_bytes(DATA))
    use(monkeypatch, system)
    *_, folder, name = MARKER.split("/")
    assert effects(calls_of(bookie, system, repeat_put))[-4:] == [
        ("link", "temp"),
        ("unlink", "temp"),
        ("fsync", name),
        ("fsync", folder),
    ]


class RacedOs(FaultyOs):
    """Somebody else does something right before a file gets its name."""

    def __init__(self, race: Callable[[], object]) -> None:
        super().__init__()
        self._fault = lambda *_: race() if self.trace[-1][0] == "link" else None
