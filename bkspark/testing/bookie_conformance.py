"""The conformance tests of bookies; a backend inherits the tests.

    class TestMyBookie(BookieTests):
        @pytest.fixture
        def place(self, tmp_path):
            return MyPlace(tmp_path)

``MyPlace`` is a ``bookie_place.BookiePlace``. ``PARALLEL`` says whether rivals are processes, as in
production, or threads, for storage inside a single process.
"""

import pickle
from collections.abc import Iterator

import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie, Journal, TellsGrowth, Usage
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.testing import bookie_place as rivals
from bkspark.testing.bookie_place import (
    CLUSTER,
    ENTRIES,
    JOURNAL,
    LEDGER,
    MARKER,
    OTHER_CLUSTER,
    OTHER_INCARNATION,
    TOKEN,
    BookieFixtures,
    BookiePlace,
    a_cookie,
    address_of,
)

# --- bookie file conformance ---------------------------------------------------------------------
# Tests of files for every backend: ``put_new``, ``create``, and look-ups of their files.


_RIVALS = 6


class FileTests(BookieFixtures):
    """``put_new``, ``create``, and look-ups of their files."""

    def test_put_new_creates_once(self, bookie: Bookie, place: BookiePlace) -> None:
        with bookie.open_root() as root:
            assert root.put_new(MARKER, b"first")
            assert not root.put_new(MARKER, b"second")
            assert root.read(MARKER) == b"first"
        assert place.get(MARKER) == b"first"
        assert sorted(place.names()) == sorted([layout.COOKIE, MARKER])

    def test_of_racing_callers_one_wins(self, bookie: Bookie) -> None:
        wins = rivals.run_rivals(self.PARALLEL, rivals.race, bookie, _RIVALS)
        with bookie.open_root() as root:
            for round_number in range(rivals.ROUNDS):
                winners = [index for index in range(_RIVALS) if wins[index][round_number]]
                assert len(winners) == 1
                assert root.read(rivals.race_name(round_number)) == rivals.race_data(winners[0])

    def test_of_racing_files_one_wins(self, bookie: Bookie) -> None:
        wins = rivals.run_rivals(self.PARALLEL, rivals.race_files, bookie, 3)
        assert sorted(wins) == [False, False, True]
        with bookie.open_root() as root:
            assert root.read(rivals.FILE) == rivals.race_data(wins.index(True))

    def test_reader_sees_all_or_nothing(self, bookie: Bookie) -> None:
        results = rivals.run_rivals(self.PARALLEL, rivals.write_or_read, bookie, 3)
        assert results == [True, True, True]

    def test_file_is_invisible_until_finished(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            file = root.create(ENTRIES)
            file.write(b"ab")
            file.write(memoryview(bytearray(b"cd")))
            assert root.read(ENTRIES) is None
            assert root.size(ENTRIES) is None
            assert root.list(layout.entries_folder(LEDGER)) == []
            file.finish()
            assert root.read(ENTRIES) == b"abcd"
            assert root.size(ENTRIES) == 4
            file.discard()
            assert root.read(ENTRIES) == b"abcd"

    def test_discarded_file_leaves_nothing(self, bookie: Bookie, place: BookiePlace) -> None:
        with bookie.open_root() as root:
            file = root.create(ENTRIES)
            file.write(b"x" * 100_000)
            file.discard()
            file.discard()
            with pytest.raises(BookieUnavailableError):
                file.write(b"y")
            with pytest.raises(BookieUnavailableError):
                file.finish()
            assert root.read(ENTRIES) is None
        assert place.names() == [layout.COOKIE]

    def test_file_never_replaces_a_name(self, bookie: Bookie, place: BookiePlace) -> None:
        with bookie.open_root() as root:
            root.put_new(ENTRIES, b"first")
            file = root.create(ENTRIES)
            file.write(b"second")
            with pytest.raises(BookieUnavailableError):
                file.finish()
            assert root.read(ENTRIES) == b"first"
        assert sorted(place.names()) == sorted([layout.COOKIE, ENTRIES])

    def test_absent_is_not_empty(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            assert root.read(MARKER) is None
            assert root.size(MARKER) is None
            root.put_new(MARKER, b"")
            root.create(ENTRIES).finish()
            for name in (MARKER, ENTRIES):
                assert root.read(name) == b""
                assert root.size(name) == 0

    def test_ranges(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            root.put_new(MARKER, b"0123456789")
            assert root.read(MARKER, 3, 4) == b"3456"
            assert root.read(MARKER, 8) == b"89"
            assert root.read(MARKER, 8, 2**40) == b"89"
            assert root.read(MARKER, 10, 1) == b""
            assert root.read(MARKER, 2**40, 1) == b""
            assert root.read(MARKER, 0, 0) == b""
            assert root.bytes_per_request >= 0
            for begin, length in ((-1, 1), (0, -1)):
                with pytest.raises(InvalidRequestError):
                    root.read(MARKER, begin, length)

    def test_list(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            assert root.list("ledgers/34/none") == []
            for name in ("f/b", "f/a", "f/deeper/c", "other/d", "fa"):
                assert root.put_new(name, b"")
            root.create("f/unfinished").write(b"x")
            assert root.list("f") == ["a", "b", "deeper/"]
            assert root.list("f/deeper") == ["c"]

    def test_a_folder_goes_with_its_files_and_what_others_have_stays(
        self, bookie: Bookie, place: BookiePlace
    ) -> None:
        kept = layout.term_marker(LEDGER + 256, 1)
        with bookie.open_root() as root:
            for name in (MARKER, kept):
                root.put_new(name, b"ab")
            root.open_journal(JOURNAL, [b"a record"]).close()
            file = root.create(ENTRIES)
            file.write(b"abcd")
            file.finish()
            root.create(f"{ENTRIES[:-7]}2.arrow").write(b"half")
            folder = layout.entries_folder(LEDGER)
            assert root.usage(folder).bytes >= 4
            assert root.remove_folder(folder).files >= 1
            assert root.usage(folder) == root.remove_folder(folder) == Usage()
            assert root.read(ENTRIES) is None
            assert root.usage(layout.journal_folder(LEDGER)).bytes >= 8
            assert root.remove_folder(layout.journal_folder(LEDGER)).files >= 1
            assert root.read(JOURNAL) is None
            assert root.list(layout.ledger_folder(LEDGER)) == ["terms/"]
            assert root.remove_folder(layout.terms_folder(LEDGER)).files == 1
            assert root.remove_folder(layout.ledger_folder(LEDGER)) == Usage()
            assert root.list(layout.ledger_folder(LEDGER)) == []
            assert root.read(kept) == b"ab"
        assert sorted(place.names()) == sorted([layout.COOKIE, kept])

    def test_a_folder_is_not_known_to_be_gone_where_the_cookie_is(
        self, bookie: Bookie, place: BookiePlace
    ) -> None:
        with bookie.open_root() as root:
            place.wipe()
            for look in (root.usage, root.remove_folder):
                with pytest.raises(BookieUnavailableError):
                    look(layout.entries_folder(LEDGER))

    def test_list_hides_nothing_that_others_left(self, bookie: Bookie, place: BookiePlace) -> None:
        with bookie.open_root() as root:
            root.put_new("f/a", b"")
            for name in ("f/.DS_Store", "f/.tmp-x", "f/b c~"):
                place.set(name, b"x")
            assert root.list("f") == [".DS_Store", ".tmp-x", "a", "b c~"]

    def test_sweeping_leaves_what_is_finished(self, bookie: Bookie, place: BookiePlace) -> None:
        """A file in progress can no longer be finished, or is untouched."""
        with bookie.open_root() as root:
            assert root.sweep("ledgers/34/none") == 0
            root.put_new("f/a", b"a")
            journal = root.open_journal("f/j")
            journal.append([b"j"])
            file = root.create("f/unfinished")
            file.write(b"x")
            assert root.unfinished("ledgers/34/none") == Usage()
            found = root.unfinished("f")
            removed = root.sweep("f")
            assert found.files == found.bytes == removed
            assert root.unfinished("f") == Usage()
            assert root.sweep("f") == 0
            assert root.list("f") == ["a", "j"]
            assert (root.read("f/a"), root.read("f/j")) == (b"a", b"j")
            if removed:
                with pytest.raises(BookieUnavailableError):
                    file.finish()
                assert root.size("f/unfinished") is None
                assert sorted(place.names()) == [layout.COOKIE, "f/a", "f/j"]
            journal.close()
            place.wipe()
            with pytest.raises(BookieUnavailableError):
                root.sweep("f")

    def test_delete(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            assert not root.delete(MARKER)
            root.put_new(MARKER, b"x")
            assert root.delete(MARKER)
            assert root.read(MARKER) is None
            assert not root.delete(MARKER)
            assert root.put_new(MARKER, b"y")

    def test_look_up_after_a_miss_sees_the_file(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            assert root.read(MARKER) is None
            assert root.list(layout.journal_folder(LEDGER)) == []
            with bookie.open_root() as other:
                other.put_new(MARKER, b"x")
                other.open_journal(JOURNAL).close()
            assert root.read(MARKER) == b"x"
            assert root.size(MARKER) == 1
            assert root.list(layout.journal_folder(LEDGER)) == [f"00000001-{TOKEN}"]

    def test_look_up_after_a_miss_sees_what_others_wrote(self, bookie: Bookie) -> None:
        results = rivals.run_rivals(self.PARALLEL, rivals.miss_then_look, bookie, 2)
        assert results == [True, True]

    def test_of_two_who_write_and_look_one_sees_the_other(self, bookie: Bookie) -> None:
        seen = rivals.run_rivals(self.PARALLEL, rivals.write_then_look, bookie, 2)
        assert all(first or second for first, second in zip(*seen))

    @pytest.mark.parametrize(
        "name",
        [
            "../x", "/x", "f/../../x", "f//x", "f/", "./x", ".", "..", "", "f/.tmp-1", "f/.x",
            "f\0x", "f\nx", "f\\x", "x" * 300, "é",
        ],
    )  # fmt: skip
    def test_names_cannot_leave_the_root(
        self, bookie: Bookie, place: BookiePlace, name: str
    ) -> None:
        with bookie.open_root() as root:
            for attempt in (
                lambda: root.put_new(name, b"x"),
                lambda: root.create(name),
                lambda: root.open_journal(name),
                lambda: root.read(name),
                lambda: root.size(name),
                lambda: root.list(name),
                lambda: root.sweep(name),
                lambda: root.delete(name),
            ):
                with pytest.raises(InvalidRequestError):
                    attempt()
        assert place.names() == [layout.COOKIE]

    def test_free_bytes(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            assert 0 <= root.free_bytes() <= root.total_bytes()


# --- bookie post check conformance ---------------------------------------------------------------
# Tests of ``Bookie.post_check`` for every backend.
#
# Part of ``bookie_conformance.BookieTests``; a backend inherits the tests from there.


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


# --- bookie conformance --------------------------------------------------------------------------


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

    def test_growth_is_told_where_it_is_told_at_all(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL, [b"ab"])
            end = root.size(JOURNAL)
        if isinstance(bookie, TellsGrowth) and end is not None:
            assert not bookie.may_have_grown(JOURNAL, end)
            journal.append([b"cd"])
            assert bookie.may_have_grown(JOURNAL, end)
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
