"""The post-check's question to a directory: of one directory, in order, and cheap."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bkspark.bookie import memory, posix, posix_calls, posix_post_check, uri
from bkspark.bookie.contract import Bookie, BookieAddress
from bkspark.bookie.posix_files import PosixJournal, own_journal
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.testing.bookie_place import JOURNAL, LEDGER, MARKER, a_cookie
from bkspark.testing.faulty_os import FaultyOs

FENCE = layout.term_marker(LEDGER, 2)
TERMS = layout.terms_folder(LEDGER)
FOLDER = layout.ledger_folder(LEDGER)
ABOVE = ["ledgers", os.path.dirname(FOLDER), FOLDER]
ERRORS = [errno.EIO, errno.EACCES, errno.EMFILE, errno.ENOTDIR, errno.ELOOP]


class Scene:
    """A bookie on which a writer of term 1 has written its record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        uri.storage(path.as_uri()).format(a_cookie())
        self.address = BookieAddress("b1", "1" * 32, "c" * 32, path.as_uri())
        self.bookie: Bookie = uri.open_bookie(self.address)
        with self.bookie.open_root() as root:
            root.put_new(MARKER, b"")
            self.journal: PosixJournal = own_journal(root.open_journal(JOURNAL))
        self.journal.append([b"record"])

    def fence(self) -> None:
        with self.bookie.open_root() as root:
            root.put_new(FENCE, b"")

    def ask(self) -> bool:
        return self.bookie.has_kept(self.journal, absent=FENCE, present=MARKER)

    def is_surely_kept(self) -> bool:
        """The short way alone."""
        return posix_post_check.has_surely_kept(
            self.address, self.journal, absent=FENCE, present=MARKER
        )

    def swap_with(self, other: str) -> None:
        """Another directory stands under the bookie's path."""
        self.path.rename(self.path.with_name("away"))
        self.path.with_name(other).rename(self.path)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path / "bk")
    yield scene
    scene.journal.close()


@contextmanager
def installed(system: FaultyOs) -> Iterator[FaultyOs]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (posix, posix_calls, posix_post_check):
            patch.setattr(module, "os", system)
        yield system


@contextmanager
def just_before(
    name: str, happens: Callable[[], object], *, is_behind: bool = False
) -> Iterator[None]:
    """Something ``happens`` just before ``name`` is first looked up or opened, or just behind."""
    system, left = FaultyOs(), [happens]

    def fault(_now: int, _effect: object, _arguments: object) -> None:
        if is_behind and len(system.trace) < 2:
            return
        call, subject = system.trace[-2 if is_behind else -1]
        is_there = os.path.basename(subject) == os.path.basename(name)
        if call in ("stat", "open") and is_there and left:
            left.pop()()

    system._fault = fault
    with installed(system):
        yield


def test_order_and_number_of_its_system_calls(scene: Scene) -> None:
    """Cookie, journal, fence, permission, cookie; each time: nothing is kept (R6).

    Downwards only: ``..`` would cross into what is mounted over a folder meanwhile (H19).
    """
    for _ in range(2):
        with installed(FaultyOs()) as system:
            assert scene.ask()
        assert [call for call in system.trace if call[0] != "dup"] == [
            ("open", str(scene.path)),
            ("open", layout.COOKIE),
            ("fstat", layout.COOKIE),
            ("pread", layout.COOKIE),
            *(("open", part) for part in FOLDER.split("/")),
            ("stat", JOURNAL.removeprefix(f"{FOLDER}/")),
            ("open", os.path.basename(TERMS)),
            ("stat", os.path.basename(FENCE)),
            ("stat", os.path.basename(MARKER)),
            ("stat", layout.COOKIE),
        ]


def test_nothing_stays_open(scene: Scene) -> None:
    before = os.listdir("/proc/self/fd")
    assert scene.ask()
    (scene.path / MARKER).unlink()
    assert not scene.ask()
    (scene.path / layout.COOKIE).unlink()
    with pytest.raises(BookieUnavailableError, match="no cookie"):
        scene.ask()
    shutil.rmtree(scene.path)
    with pytest.raises(BookieUnavailableError, match="No such file"):
        scene.ask()
    assert os.listdir("/proc/self/fd") == before


def test_cookie_that_goes_during_the_check_is_missed(scene: Scene) -> None:
    """The fence may have been absent because the directory was being wiped."""
    scene.fence()

    def wipe() -> None:
        (scene.path / layout.COOKIE).unlink()
        (scene.path / FENCE).unlink()

    with just_before(FENCE, wipe), pytest.raises(BookieUnavailableError, match="cookie"):
        scene.ask()


def test_cookie_that_comes_during_the_check_is_too_late(scene: Scene) -> None:
    """A directory that is put back piece by piece, its fence behind its permission."""
    cookie = scene.path / layout.COOKIE
    away = cookie.rename(scene.path.with_name("cookie"))

    def put_back() -> None:
        scene.fence()
        away.rename(cookie)

    with just_before(MARKER, put_back), pytest.raises(BookieUnavailableError, match="cookie"):
        scene.ask()


def test_cookie_that_was_exchanged_during_the_check_is_no_good(scene: Scene) -> None:
    """The same bytes under the same name: in between anything may have been there."""
    cookie = scene.path / layout.COOKIE

    def exchange() -> None:
        data = cookie.read_bytes()
        cookie.unlink()
        cookie.write_bytes(data)

    with just_before(MARKER, exchange):
        assert not scene.is_surely_kept()


@pytest.mark.parametrize(("first", "then"), [("old", "bk"), ("bk", "old")])
def test_journal_and_markers_are_of_one_ledger_folder(scene: Scene, first: str, then: str) -> None:
    """Written to the real folder, which is fenced; an old copy is there before it, or after."""
    real = scene.path / FOLDER
    shutil.copytree(real, real.with_name("old"))
    scene.fence()
    real.rename(real.with_name("bk"))
    real.with_name(first).rename(real)

    def exchange() -> None:
        real.rename(real.with_name(first))
        real.with_name(then).rename(real)

    with just_before(JOURNAL, exchange, is_behind=first == "bk"):
        assert not scene.is_surely_kept()


def test_cookie_of_another_directory_is_no_good(scene: Scene) -> None:
    """H19: what comes back under the path must not vouch for what was looked up before."""
    shutil.copytree(scene.path, scene.path.with_name("other"))
    (scene.path / layout.COOKIE).unlink()
    with just_before(MARKER, lambda: scene.swap_with("other")):
        assert not scene.is_surely_kept()


def test_journal_in_another_directory_is_no_good(scene: Scene) -> None:
    """H19: written to the real disk, which is fenced, but the markers are of a copy."""
    shutil.copytree(scene.path, scene.path.with_name("copy"))
    scene.fence()
    scene.path.rename(scene.path.with_name("real"))
    scene.path.with_name("copy").rename(scene.path)
    with just_before(JOURNAL, lambda: scene.swap_with("real")):
        assert not scene.ask()


def test_markers_are_of_one_folder(scene: Scene) -> None:
    terms = scene.path / TERMS

    def swap() -> None:
        terms.rename(terms.with_name("fenced"))
        terms.with_name("other").rename(terms)

    shutil.copytree(terms, terms.with_name("other"))
    (scene.path / MARKER).unlink()
    with just_before(FENCE, swap):
        assert not scene.is_surely_kept()


def test_names_in_different_folders(scene: Scene) -> None:
    elsewhere = layout.entries_folder(LEDGER) + "/" + os.path.basename(MARKER)
    assert not scene.bookie.has_kept(scene.journal, absent=FENCE, present=elsewhere)
    assert scene.bookie.has_kept(scene.journal, absent=FENCE, present=JOURNAL)


@pytest.mark.parametrize("folder", [*ABOVE, layout.journal_folder(LEDGER), TERMS])
def test_link_to_nowhere_is_no_answer(scene: Scene, folder: str) -> None:
    (scene.path / folder).rename(scene.path.with_name("away"))
    (scene.path / folder).symlink_to(scene.path.with_name("missing"))
    with pytest.raises(BookieUnavailableError):
        scene.ask()


@pytest.mark.parametrize("folder", [*ABOVE, TERMS])
@pytest.mark.parametrize("is_inside", [True, False])
def test_link_to_the_very_same_files_is_no_answer(
    scene: Scene, folder: str, is_inside: bool
) -> None:
    """No reader follows it, so what lies behind it is no copy."""
    linked = scene.path / folder
    beside = linked.with_name("beside") if is_inside else scene.path.with_name("away")
    linked.rename(beside)
    linked.symlink_to(beside)
    with pytest.raises(BookieUnavailableError):
        scene.ask()


@pytest.mark.parametrize("name", [FENCE, MARKER, JOURNAL, layout.COOKIE])
def test_strange_file_is_no_answer(scene: Scene, name: str) -> None:
    (scene.path / name).unlink(missing_ok=True)
    (scene.path / name).symlink_to("none")
    with pytest.raises(BookieUnavailableError):
        scene.ask()


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("is_fenced", [False, True])
def test_error_is_never_an_answer(scene: Scene, is_fenced: bool, error: int) -> None:
    """With any one call failing, the answer is the right one or none at all."""
    if is_fenced:
        scene.fence()
    before, number, is_over = os.listdir("/proc/self/fd"), 0, False
    while not is_over:
        with installed(FaultyOs()) as system:
            system.fail_at(number, error)
            try:
                assert scene.ask() is not is_fenced
            except BookieUnavailableError:
                assert is_fenced
            number += 1
            is_over = len(system.trace) < number
        assert os.listdir("/proc/self/fd") == before


def test_closed_journal_is_no_answer(scene: Scene) -> None:
    """Its inode may be another file's by now."""
    scene.journal.close()
    with pytest.raises(BookieUnavailableError, match="is closed"):
        scene.ask()


def test_journal_of_another_kind_of_bookie(scene: Scene) -> None:
    other = memory.MemoryJournal("bookie b1", JOURNAL, memory.MemoryDisk(), memory.MemoryFile())
    with pytest.raises(InvalidRequestError, match="not one of a POSIX bookie"):
        scene.bookie.has_kept(other, absent=FENCE, present=MARKER)
