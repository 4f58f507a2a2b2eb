"""Post-checks of a directory that an earlier one has met: what they know it by, and what not."""

import gc
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bkspark.bookie import uri
from bkspark.errors import BookieUnavailableError
from bkspark.format import layout
from bkspark.testing.bookie_place import JOURNAL, LEDGER, MARKER, OTHER_INCARNATION, a_cookie

from .directory_scene import FENCE, TERMS, Scene, just_before, put_behind_a_link


def test_what_stays_open(new_scene: Scene) -> None:
    """The cookie and the folder of markers, until there is a doubt or the journal is closed."""
    before = len(os.listdir("/proc/self/fd"))

    def left() -> int:
        return len(os.listdir("/proc/self/fd")) - before

    assert [new_scene.ask(), new_scene.ask(), left()] == [True, True, 2]
    (new_scene.path / MARKER).unlink()
    assert [new_scene.ask(), left()] == [False, 0]
    (new_scene.path / MARKER).touch()
    assert [new_scene.ask(), left()] == [True, 2]
    cookie = (new_scene.path / layout.COOKIE).rename(new_scene.path.with_name("cookie"))
    with pytest.raises(BookieUnavailableError, match="no cookie"):
        new_scene.ask()
    assert left() == 0
    cookie.rename(new_scene.path / layout.COOKIE)
    assert [new_scene.ask(), left()] == [True, 2]
    new_scene.journal.close()
    assert left() == -1
    shutil.rmtree(new_scene.path)
    with pytest.raises(BookieUnavailableError, match="No such file"):
        new_scene.ask()
    assert left() == -1


def test_a_journal_that_nobody_closes_leaves_nothing_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    scene = Scene(tmp_path / "bk")
    scene.meet()
    del scene
    gc.collect()
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("name", [TERMS, JOURNAL, layout.COOKIE])
def test_link_to_what_was_met_is_no_answer(known: Scene, name: str) -> None:
    put_behind_a_link(known.path / name, to=known.path.with_name("away"))
    with pytest.raises(BookieUnavailableError):
        known.ask()


def test_cookie_that_was_written_over_is_no_good(known: Scene) -> None:
    """The same file with other words in it."""
    cookie = known.path / layout.COOKIE
    right = cookie.read_bytes()
    for wrong, words in (
        (a_cookie(incarnation=OTHER_INCARNATION), "initialised again"),
        (right + b"x", "unreadable cookie"),
        (right[:-1], "unreadable cookie"),
    ):
        cookie.write_bytes(wrong)
        with pytest.raises(BookieUnavailableError, match=words):
            known.ask()
        cookie.write_bytes(right)
        known.meet()


def test_directory_that_is_being_put_back_in_place_is_not_believed(known: Scene) -> None:
    """H19: a copy from before the fence, over the files that are there; its cookie is empty yet."""
    cookie = known.path / layout.COOKIE
    words = cookie.read_bytes()
    cookie.write_bytes(b"")

    def is_put_back() -> None:
        known.path.joinpath(FENCE).touch()
        cookie.write_bytes(words)

    with just_before(MARKER, is_put_back):
        assert not known.is_surely_kept()


def test_markers_of_another_folder_are_no_good(known: Scene) -> None:
    """H19: a copy without the fence is there only while the markers are looked up."""
    terms = known.path / TERMS
    shutil.copytree(terms, terms.with_name("copy"))
    known.fence()

    def exchange() -> None:
        terms.rename(terms.with_name("fenced"))
        terms.with_name("copy").rename(terms)

    with just_before(TERMS, exchange):
        assert not known.is_surely_kept()


def test_place_that_is_gone_and_back_is_known_again(known: Scene) -> None:
    """A mount that comes back: the same files, and what was made there meanwhile."""
    away = known.path.rename(known.path.with_name("away"))
    with pytest.raises(BookieUnavailableError, match="No such file"):
        known.ask()
    away.rename(known.path)
    known.meet()
    known.fence()
    assert not known.ask()


def test_copy_in_its_place_is_another_place(known: Scene) -> None:
    """Restored from a backup, every byte and name."""
    shutil.copytree(known.path, known.path.with_name("copy"))
    known.swap_with("copy")
    with pytest.raises(BookieUnavailableError, match="does not show the journal"):
        known.ask()


def test_markers_that_were_made_anew_are_asked_by_a_root(known: Scene) -> None:
    """What was kept is about another folder, and must not outlive the doubt."""
    terms = known.path / TERMS
    terms.rename(terms.with_name("old"))
    assert not known.ask()
    terms.mkdir()
    (known.path / MARKER).touch()
    known.meet()


def test_number_of_a_file_of_another_disk_says_nothing(known: Scene) -> None:
    """Every disk numbers its files from one."""
    pinned = known.journal.pinned
    assert pinned is not None
    for file in (pinned.cookie, pinned.markers):
        assert file.is_at(file.status)
        of_another_disk = [*file.status[:2], file.status.st_dev + 1, *file.status[3:]]
        assert not file.is_at(os.stat_result(of_another_disk))


def test_what_was_met_answers_for_nothing_else(known: Scene) -> None:
    other = layout.term_marker(LEDGER + 1, 2), layout.term_marker(LEDGER + 1, 1)
    assert not known.bookie.post_check(known.journal, fence=other[0], permission=other[1])
    known.meet()
    elsewhere = replace(known.address, url=known.path.with_name("elsewhere").as_uri())
    with pytest.raises(BookieUnavailableError, match="No such file"):
        uri.open_bookie(elsewhere).post_check(known.journal, fence=FENCE, permission=MARKER)
