"""Tests of files for every backend: ``put_new``, ``create``, and look-ups of their files."""

import pytest

from bkspark.bookie.contract import Bookie, Usage
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.testing import bookie_rivals as rivals
from bkspark.testing.bookie_place import (
    ENTRIES,
    JOURNAL,
    LEDGER,
    MARKER,
    TOKEN,
    BookieFixtures,
    BookiePlace,
)

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
