"""The conformance tests of bookies; a backend inherits the tests.

    class TestMyBookie(BookieTests):
        @pytest.fixture
        def place(self, tmp_path):
            return MyPlace(tmp_path)

``MyPlace`` is a ``bookie_place.BookiePlace``. ``PARALLEL`` says whether rivals are processes, as in
production, or threads, for storage inside a single process.
"""

import pickle

import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.testing.bookie_file_conformance import FileTests
from bkspark.testing.bookie_place import (
    CLUSTER,
    JOURNAL,
    MARKER,
    OTHER_CLUSTER,
    OTHER_INCARNATION,
    BookieFixtures,
    BookiePlace,
    a_cookie,
    address_of,
)
from bkspark.testing.bookie_post_check_conformance import PostCheckTests


class JournalTests(BookieFixtures):
    """``open_journal``, ``append`` and ``has_journal``."""

    def test_journal_grows(self, bookie: Bookie, place: BookiePlace) -> None:
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
            assert (journal.name, journal.end) == (JOURNAL, 0)
            assert root.read(JOURNAL) == b""
            assert root.has_journal(journal)
            journal.append([b"ab", bytearray(b"c"), memoryview(b"d")])
            assert journal.end == 4
            assert root.size(JOURNAL) == 4
            journal.append([b"", b"e"])
            assert root.read(JOURNAL, 3) == b"de"
            assert root.has_journal(journal)
            journal.close()
        assert place.get(JOURNAL) == b"abcde"

    def test_a_journal_may_begin_with_a_record(self, bookie: Bookie, place: BookiePlace) -> None:
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL, [b"ab", b"c"])
            assert (journal.end, root.read(JOURNAL)) == (3, b"abc")
            assert root.has_journal(journal)
            journal.append([b"d"])
            assert (journal.end, root.size(JOURNAL)) == (4, 4)
            journal.close()
        assert place.get(JOURNAL) == b"abcd"

    def test_journal_takes_many_parts(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
            journal.append([bytes([number % 251]) for number in range(3000)])
            assert journal.end == 3000
            assert root.read(JOURNAL) == bytes(number % 251 for number in range(3000))
            journal.close()

    def test_journal_must_be_new(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            root.open_journal(JOURNAL).close()
            with pytest.raises(BookieUnavailableError):
                root.open_journal(JOURNAL)

    def test_closed_journal_takes_nothing(self, bookie: Bookie, place: BookiePlace) -> None:
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
            journal.append([b"ab"])
            journal.close()
            journal.close()
            with pytest.raises(BookieUnavailableError):
                journal.append([b"cd"])
            assert journal.end == 2
        assert place.get(JOURNAL) == b"ab"

    def test_journal_outlives_its_root(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
        journal.append([b"ab"])
        with bookie.open_root() as root:
            assert root.has_journal(journal)
            assert root.read(JOURNAL) == b"ab"
        journal.close()

    def test_journal_replaced_by_a_copy_is_lost(self, bookie: Bookie, place: BookiePlace) -> None:
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
            journal.append([b"ab"])
            place.set(JOURNAL, b"ab and more")
            assert not root.has_journal(journal)
            journal.close()

    def test_cut_journal_is_lost(self, bookie: Bookie, place: BookiePlace) -> None:
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
            journal.append([b"abcd"])
            place.truncate(JOURNAL, 3)
            assert not root.has_journal(journal)
            journal.close()

    def test_deleted_journal_is_lost(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
            root.delete(JOURNAL)
            assert not root.has_journal(journal)
            journal.append([b"into nowhere"])
            assert not root.has_journal(journal)
            journal.close()

    def test_of_a_journal_that_is_forgotten_nothing_appears_again(self, bookie: Bookie) -> None:
        """A journal is removed only if no part of it can reappear."""
        folder = JOURNAL.rpartition("/")[0]
        with bookie.open_root() as root:
            assert not root.forget_journal(JOURNAL)
            journal = root.open_journal(JOURNAL, [b"begun"])
            is_gone = root.forget_journal(JOURNAL)
            assert (root.size(JOURNAL) is None) is is_gone
            journal.append([b"into nowhere"])
            assert root.has_journal(journal) is not is_gone
            assert root.list(folder) == ([] if is_gone else [JOURNAL.rpartition("/")[2]])
            journal.close()

    def test_what_stands_in_the_place_of_a_journal_is_listed(self, bookie: Bookie) -> None:
        """A search for journals must show where a journal may have existed."""
        folder, _, last = JOURNAL.rpartition("/")
        with bookie.open_root() as root:
            root.put_new(f"{JOURNAL}/x", b"x")
            assert root.list(folder) == [f"{last}/"]
            root.delete(f"{JOURNAL}/x")
            assert root.list(folder) in ([], [f"{last}/"])

    def test_journals_are_listed_by_their_names(self, bookie: Bookie) -> None:
        folder, _, last = JOURNAL.rpartition("/")
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
            assert root.list(folder) == [last]
            journal.append([b"ab"])
            assert root.list(folder) == [last]
            journal.close()

    def test_journal_of_a_place_made_again_is_lost(
        self, bookie: Bookie, place: BookiePlace
    ) -> None:
        """The same cookie can come back with a restored backup; the journal cannot."""
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
            journal.append([b"ab"])
        place.move_away()
        with pytest.raises(BookieUnavailableError), bookie.open_root():
            pass
        uri.storage(place.url).format(a_cookie())
        with bookie.open_root() as root:
            assert not root.has_journal(journal)
            place.set(JOURNAL, b"ab")
            assert not root.has_journal(journal)
            journal.append([b"cd"])
            assert root.read(JOURNAL) == b"ab"
        journal.close()


class CookieTests(BookieFixtures):
    """The cookie, checked by every ``open_root``."""

    def expect_refusal(self, bookie: Bookie, words: str) -> None:
        with pytest.raises(BookieUnavailableError, match=words), bookie.open_root():
            pass

    def test_missing_place(self, place: BookiePlace) -> None:
        self.expect_refusal(uri.open_bookie(address_of(place)), "b1")
        assert uri.storage(place.url).read_cookie() is None

    def test_wiped_place(self, bookie: Bookie, place: BookiePlace) -> None:
        place.wipe()
        self.expect_refusal(bookie, "no cookie")
        assert uri.storage(place.url).read_cookie() is None

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"cluster_id": OTHER_CLUSTER}, f"belongs to cluster {CLUSTER}"),
            ({"bookie_id": "b2"}, "storage of bookie b1"),
            ({"incarnation": OTHER_INCARNATION}, "initialised again"),
        ],
    )
    def test_cookie_of_another(
        self, bookie: Bookie, place: BookiePlace, changes: dict[str, str], words: str
    ) -> None:
        assert bookie.address == address_of(place)
        self.expect_refusal(uri.open_bookie(address_of(place, **changes)), words)

    @pytest.mark.parametrize("damage", [b"", b"x", a_cookie()[:-1], a_cookie() + b" "])
    def test_damaged_cookie(self, bookie: Bookie, place: BookiePlace, damage: bytes) -> None:
        place.set(layout.COOKIE, damage)
        self.expect_refusal(bookie, "unreadable cookie")

    def test_absence_is_unsure_in_a_place_that_lost_its_cookie(
        self, bookie: Bookie, place: BookiePlace
    ) -> None:
        with bookie.open_root() as root:
            root.put_new(MARKER, b"x")
            journal = root.open_journal(JOURNAL)
            place.wipe()
            for look in (
                lambda: root.read(MARKER),
                lambda: root.size(MARKER),
                lambda: root.list("ledgers"),
                lambda: root.has_journal(journal),
                lambda: root.delete(MARKER),
            ):
                with pytest.raises(BookieUnavailableError):
                    look()
            journal.close()

    def test_place_made_again_for_another_incarnation(
        self, bookie: Bookie, place: BookiePlace
    ) -> None:
        with bookie.open_root() as root:
            root.put_new(MARKER, b"x")
            place.wipe()
            uri.storage(place.url).format(a_cookie(incarnation=OTHER_INCARNATION))
            with pytest.raises(BookieUnavailableError):
                root.read(MARKER)
        self.expect_refusal(bookie, "initialised again")

    @pytest.mark.usefixtures("bookie")
    def test_format_needs_an_empty_place(self, place: BookiePlace) -> None:
        storage = uri.storage(place.url)
        with pytest.raises(InvalidRequestError):
            storage.format(a_cookie(incarnation=OTHER_INCARNATION))
        assert storage.read_cookie() == a_cookie()
        place.wipe()
        place.set("something", b"")
        with pytest.raises(InvalidRequestError):
            storage.format(a_cookie())
        assert storage.read_cookie() is None

    @pytest.mark.usefixtures("bookie")
    def test_format_that_was_killed_is_repeated_with_its_cookie(self, place: BookiePlace) -> None:
        storage = uri.storage(place.url)
        storage.require_suitable(a_cookie())
        storage.format(a_cookie())
        with pytest.raises(InvalidRequestError):
            storage.require_suitable()
        place.set("something", b"")
        for attempt in (storage.require_suitable, storage.format):
            with pytest.raises(InvalidRequestError):
                attempt(a_cookie())
        assert storage.read_cookie() == a_cookie()

    def test_failure_domain(self, bookie: Bookie, place: BookiePlace) -> None:
        assert bookie.address.url == place.url
        assert uri.storage(place.url).failure_domain()

    def test_bookie_can_be_pickled(self, bookie: Bookie) -> None:
        copy = pickle.loads(pickle.dumps(bookie))
        assert copy.address == bookie.address
        with bookie.open_root() as root, copy.open_root() as other:
            root.put_new(MARKER, b"x")
            assert other.read(MARKER) == b"x"


class BookieTests(FileTests, JournalTests, PostCheckTests, CookieTests):
    """The whole contract."""
