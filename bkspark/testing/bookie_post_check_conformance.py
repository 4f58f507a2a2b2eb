"""Tests of ``Bookie.post_check`` for every backend.

Part of ``bookie_conformance.BookieTests``; a backend inherits the tests from there.
"""

from collections.abc import Iterator

import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie, Journal
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.testing.bookie_place import (
    JOURNAL,
    LEDGER,
    MARKER,
    OTHER_INCARNATION,
    BookieFixtures,
    BookiePlace,
    a_cookie,
)

FENCE = layout.term_marker(LEDGER, 2)


def post_check(bookie: Bookie, journal: Journal) -> bool:
    return bookie.post_check(journal, fence=FENCE, permission=MARKER)


def put(bookie: Bookie, name: str) -> None:
    with bookie.open_root() as root:
        root.put_new(name, b"")


def delete(bookie: Bookie, name: str) -> None:
    with bookie.open_root() as root:
        assert root.delete(name)


def expect_refusal(bookie: Bookie, journal: Journal, words: str) -> None:
    with pytest.raises(BookieUnavailableError, match=words):
        post_check(bookie, journal)


class PostCheckTests(BookieFixtures):
    """``post_check`` for a writer of term 1 after its first record."""

    @pytest.fixture
    def journal(self, bookie: Bookie) -> Iterator[Journal]:
        put(bookie, MARKER)
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
        journal.append([b"record"])
        yield journal
        journal.close()

    def test_what_is_in_order_is_kept(self, bookie: Bookie, journal: Journal) -> None:
        assert post_check(bookie, journal)
        journal.append([b"another record"])
        assert post_check(bookie, journal)

    def test_fence_is_seen_at_once(self, bookie: Bookie, journal: Journal) -> None:
        """Also after an earlier look that saw no fence (C2)."""
        assert post_check(bookie, journal)
        put(bookie, FENCE)
        assert not post_check(bookie, journal)

    def test_permission_must_be_there(self, bookie: Bookie, journal: Journal) -> None:
        assert post_check(bookie, journal)
        delete(bookie, MARKER)
        assert not post_check(bookie, journal)
        put(bookie, FENCE)
        assert not post_check(bookie, journal)

    def test_folder_of_markers_must_be_there(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
        assert not post_check(bookie, journal)
        journal.close()

    def test_journal_must_be_shown(
        self, bookie: Bookie, journal: Journal, place: BookiePlace
    ) -> None:
        assert post_check(bookie, journal)
        place.truncate(JOURNAL, 3)
        expect_refusal(bookie, journal, "does not show")
        place.set(JOURNAL, b"record")
        expect_refusal(bookie, journal, "does not show")
        delete(bookie, JOURNAL)
        expect_refusal(bookie, journal, "does not show")

    def test_cookie_must_be_there(
        self, bookie: Bookie, journal: Journal, place: BookiePlace
    ) -> None:
        assert post_check(bookie, journal)
        delete(bookie, layout.COOKIE)
        expect_refusal(bookie, journal, "no cookie")
        place.set(layout.COOKIE, a_cookie(incarnation=OTHER_INCARNATION))
        expect_refusal(bookie, journal, "initialised again")
        place.set(layout.COOKIE, b"x")
        expect_refusal(bookie, journal, "unreadable cookie")
        place.set(layout.COOKIE, a_cookie())
        assert post_check(bookie, journal)

    def test_wiped_place_is_not_a_fence(
        self, bookie: Bookie, journal: Journal, place: BookiePlace
    ) -> None:
        assert post_check(bookie, journal)
        place.wipe()
        expect_refusal(bookie, journal, "no cookie")

    def test_place_is_found_anew(
        self, bookie: Bookie, journal: Journal, place: BookiePlace
    ) -> None:
        assert post_check(bookie, journal)
        place.move_away()
        expect_refusal(bookie, journal, "b1")
        uri.storage(place.url).format(a_cookie())
        place.set(MARKER, b"")
        place.set(JOURNAL, b"record")
        expect_refusal(bookie, journal, "does not show")

    def test_names_stay_inside(self, bookie: Bookie, journal: Journal) -> None:
        for fence, permission in (("../x", MARKER), (FENCE, "/etc/passwd")):
            with pytest.raises(InvalidRequestError, match="is not the name of a file"):
                bookie.post_check(journal, fence=fence, permission=permission)
