"""The post-check's question to a directory: of one directory, in order, and cheap."""

import errno
import os
import shutil

import pytest

from bkspark.bookie import memory
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.testing.bookie_place import JOURNAL, LEDGER, MARKER
from tests.kit.faulty import FaultyOs

from .directory_scene import (
    FENCE,
    FOLDER,
    TERMS,
    Scene,
    installed,
    just_before,
    put_behind_a_link,
    whenever,
)

ABOVE = ["ledgers", os.path.dirname(FOLDER), FOLDER]
ERRORS = [errno.EIO, errno.EACCES, errno.EMFILE, errno.ENOTDIR, errno.ELOOP]


def test_order_and_number_of_its_system_calls(new_scene: Scene) -> None:
    """Cookie, journal, fence, permission, cookie; each time: no answer is kept (R6).

    Downwards only: ``..`` would cross into what is mounted over a folder meanwhile (H19).
    """
    path = new_scene.path
    walk = [
        ("open", str(path)),
        ("open", layout.COOKIE),
        ("fstat", layout.COOKIE),
        ("pread", layout.COOKIE),
        *(("open", part) for part in FOLDER.split("/")),
        ("stat", JOURNAL.removeprefix(f"{FOLDER}/")),
        ("open", os.path.basename(TERMS)),
        ("fstat", os.path.basename(TERMS)),
    ]
    looks = [
        ("stat", f"{path}/{layout.COOKIE}"),
        ("pread", layout.COOKIE),
        ("stat", f"{path}/{JOURNAL}"),
        ("open", f"{path}/{TERMS}"),
        ("fstat", f"{path}/{TERMS}"),
        ("stat", os.path.basename(FENCE)),
        ("stat", os.path.basename(MARKER)),
        ("stat", f"{path}/{layout.COOKIE}"),
        ("pread", layout.COOKIE),
    ]
    for expected in (walk + looks, looks, looks):
        with installed(FaultyOs()) as system:
            assert new_scene.ask()
        # What was opened in an earlier check has no name here: the cookie.
        calls = [(call, layout.COOKIE if name == "?" else name) for call, name in system.trace]
        assert [call for call in calls if call[0] != "dup"] == expected


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
        (scene.path / FENCE).touch()
        away.rename(cookie)

    with just_before(MARKER, put_back), pytest.raises(BookieUnavailableError, match="no cookie"):
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


@pytest.mark.parametrize("at_first", ["real", "copy"])
def test_ledger_that_flickers_is_never_pieced_together(new_scene: Scene, at_first: str) -> None:
    """H19: the journal is always found in the real folder, the markers always in a copy."""
    place = new_scene.path / FOLDER
    shutil.copytree(place, place.with_name("copy"))
    new_scene.fence()
    shown, ways = "real", iter([at_first])

    def show(wanted: str) -> None:
        nonlocal shown
        if shown != wanted:
            place.rename(place.with_name(shown))
            place.with_name(wanted).rename(place)
            shown = wanted

    with whenever(
        {
            os.path.basename(FOLDER): lambda: show(next(ways, "copy")),
            os.path.basename(JOURNAL): lambda: show("real"),
            os.path.basename(TERMS): lambda: show("copy"),
        }
    ):
        assert not new_scene.is_surely_kept()


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
        assert not scene.is_surely_kept()


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
    assert not scene.bookie.post_check(scene.journal, fence=FENCE, permission=elsewhere)
    assert scene.bookie.post_check(scene.journal, fence=FENCE, permission=JOURNAL)


@pytest.mark.parametrize("folder", [*ABOVE, layout.journal_folder(LEDGER), TERMS])
def test_link_to_nowhere_is_no_answer(scene: Scene, folder: str) -> None:
    (scene.path / folder).rename(scene.path.with_name("away"))
    (scene.path / folder).symlink_to(scene.path.with_name("missing"))
    with pytest.raises(BookieUnavailableError):
        scene.ask()


@pytest.mark.parametrize("folder", [*ABOVE, TERMS])
@pytest.mark.parametrize("is_inside", [True, False])
def test_link_to_the_very_same_files_is_no_answer(
    new_scene: Scene, folder: str, is_inside: bool
) -> None:
    """No reader follows it, so what lies behind it is no copy."""
    linked = new_scene.path / folder
    beside = linked.with_name("beside") if is_inside else new_scene.path.with_name("away")
    put_behind_a_link(linked, to=beside)
    with pytest.raises(BookieUnavailableError):
        new_scene.ask()


@pytest.mark.parametrize("name", [FENCE, MARKER, JOURNAL, layout.COOKIE])
def test_strange_file_is_no_answer(scene: Scene, name: str) -> None:
    (scene.path / name).unlink(missing_ok=True)
    (scene.path / name).symlink_to("none")
    with pytest.raises(BookieUnavailableError):
        scene.ask()


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("is_fenced", [False, True])
@pytest.mark.parametrize("is_known", [False, True])
def test_error_is_never_an_answer(
    new_scene: Scene, is_known: bool, is_fenced: bool, error: int
) -> None:
    """With any one call failing, the answer is the right one or none at all."""
    before, number, is_over = os.listdir("/proc/self/fd"), 0, False
    while not is_over:
        (new_scene.path / FENCE).unlink(missing_ok=True)
        if is_known:
            new_scene.meet()
        if is_fenced:
            new_scene.fence()
        with installed(FaultyOs()) as system:
            system.fail_at(number, error)
            try:
                assert new_scene.ask() is not is_fenced
            except BookieUnavailableError:
                assert is_fenced
            number += 1
            is_over = len(system.trace) < number
        new_scene.journal.remember(None)
        assert os.listdir("/proc/self/fd") == before


def test_closed_journal_is_no_answer(scene: Scene) -> None:
    """Its inode may be another file's by now."""
    scene.journal.close()
    with pytest.raises(BookieUnavailableError, match="is closed"):
        scene.ask()


def test_journal_of_another_kind_of_bookie(scene: Scene) -> None:
    other = memory.MemoryJournal("bookie b1", JOURNAL, memory.MemoryDisk(), memory.MemoryFile())
    with pytest.raises(InvalidRequestError, match="not one of a POSIX bookie"):
        scene.bookie.post_check(other, fence=FENCE, permission=MARKER)
