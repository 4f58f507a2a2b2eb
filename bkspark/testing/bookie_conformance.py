"""What every backend of bookies must do; a backend inherits these tests.

    class TestMyBookie(BookieTests):
        @pytest.fixture
        def place(self, tmp_path):
            return MyPlace(tmp_path)

``MyPlace`` is a ``Place``: a new, empty one per test, with a back door around the contract. The
tests run with pytest and hypothesis is not needed. ``PARALLEL`` says whether rivals are processes, as
in production, or threads, for storage that lives in one process.
"""

import multiprocessing
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, Protocol

import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie, BookieAddress
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import cookie as cookie_format
from bkspark.format import layout
from bkspark.format.cookie import Cookie

CLUSTER, OTHER_CLUSTER = "c" * 32, "d" * 32
INCARNATION, OTHER_INCARNATION = "1" * 32, "2" * 32
LEDGER = 0x1234
MARKER = layout.term_marker(LEDGER, 1)
ENTRIES = layout.entry_log(LEDGER, "a" * 32, 0)
JOURNAL = layout.journal(LEDGER, 1, "b" * 32)
TOKEN = "b" * 32
RIVALS = 6
ROUNDS = 25


class Place(Protocol):
    """Where a bookie is to be, with a back door."""

    @property
    def url(self) -> str: ...

    def get(self, name: str) -> bytes | None:
        """The bytes under ``name``."""
        ...

    def set(self, name: str, data: bytes) -> None:
        """Put another file with ``data`` in the place of ``name``."""
        ...

    def truncate(self, name: str, size: int) -> None:
        """Cut the very file that ``name`` shows now."""
        ...

    def names(self) -> list[str]:
        """Every file there is, temporary ones too."""
        ...

    def wipe(self) -> None:
        """Remove everything, but leave the place."""
        ...

    def move_away(self) -> None:
        """Leave nothing at ``url``; who has it open keeps it."""
        ...


def address_of(place: Place, **changes: str) -> BookieAddress:
    """The address of the bookie that ``a_cookie`` makes of ``place``."""
    values = {"bookie_id": "b1", "incarnation": INCARNATION, "cluster_id": CLUSTER} | changes
    return BookieAddress(**values, url=place.url)


def a_cookie(cluster: str = CLUSTER, bookie: str = "b1", incarnation: str = INCARNATION) -> bytes:
    return cookie_format.encode(Cookie(cluster, bookie, incarnation))


class _Fixtures:
    """A place of the backend, and the bookie in it."""

    PARALLEL: Literal["processes", "threads"] = "processes"

    @pytest.fixture
    def place(self) -> Place:
        raise NotImplementedError("a backend overrides this fixture")

    @pytest.fixture
    def bookie(self, place: Place) -> Bookie:
        uri.storage(place.url).format(a_cookie())
        return uri.open_bookie(address_of(place))

    def run_rivals(self, work: Callable[..., Any], bookie: Bookie, count: int) -> list[Any]:
        """What ``work(bookie, index, barrier)`` returns for each index, all at the same time."""
        if self.PARALLEL == "threads":
            return _in_threads(work, bookie, count)
        context = multiprocessing.get_context("fork")
        results = context.SimpleQueue()
        barrier = context.Barrier(count, timeout=30)
        rivals = [
            context.Process(target=_rival, args=(work, bookie, index, barrier, results))
            for index in range(count)
        ]
        for rival in rivals:
            rival.start()
        found = dict(results.get() for _ in rivals)
        for rival in rivals:
            rival.join()
        return [found[index] for index in range(count)]


class _FileTests(_Fixtures):
    """``put_new``, ``create``, and looking at what they made."""

    def test_put_new_creates_once(self, bookie: Bookie, place: Place) -> None:
        with bookie.open_root() as root:
            assert root.put_new(MARKER, b"first")
            assert not root.put_new(MARKER, b"second")
            assert root.read(MARKER) == b"first"
        assert place.get(MARKER) == b"first"
        assert sorted(place.names()) == sorted([layout.COOKIE, MARKER])

    def test_of_racing_callers_one_wins(self, bookie: Bookie) -> None:
        wins = self.run_rivals(_race, bookie, RIVALS)
        with bookie.open_root() as root:
            for round_number in range(ROUNDS):
                winners = [index for index in range(RIVALS) if wins[index][round_number]]
                assert len(winners) == 1
                assert root.read(_race_name(round_number)) == _race_data(winners[0])

    def test_of_racing_files_one_wins(self, bookie: Bookie) -> None:
        wins = self.run_rivals(_race_files, bookie, 3)
        assert sorted(wins) == [False, False, True]
        with bookie.open_root() as root:
            assert root.read(ENTRIES) == _race_data(wins.index(True))

    def test_reader_sees_all_or_nothing(self, bookie: Bookie) -> None:
        results = self.run_rivals(_write_or_read, bookie, 3)
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

    def test_discarded_file_leaves_nothing(self, bookie: Bookie, place: Place) -> None:
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

    def test_file_never_replaces_a_name(self, bookie: Bookie, place: Place) -> None:
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
            assert root.list("f") == ["a", "b"]
            assert root.list("f/deeper") == ["c"]

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
        results = self.run_rivals(_miss_then_look, bookie, 2)
        assert results == [True, True]

    def test_of_two_who_write_and_look_one_sees_the_other(self, bookie: Bookie) -> None:
        seen = self.run_rivals(_write_then_look, bookie, 2)
        assert all(first or second for first, second in zip(*seen))

    @pytest.mark.parametrize(
        "name",
        [
            "../x", "/x", "f/../../x", "f//x", "f/", "./x", ".", "..", "", "f/.tmp-1", "f/.x",
            "f\0x", "f\nx", "f\\x", "x" * 300, "é",
        ],
    )  # fmt: skip
    def test_names_cannot_leave_the_root(self, bookie: Bookie, place: Place, name: str) -> None:
        with bookie.open_root() as root:
            for attempt in (
                lambda: root.put_new(name, b"x"),
                lambda: root.create(name),
                lambda: root.open_journal(name),
                lambda: root.read(name),
                lambda: root.size(name),
                lambda: root.list(name),
                lambda: root.delete(name),
            ):
                with pytest.raises(InvalidRequestError):
                    attempt()
        assert place.names() == [layout.COOKIE]

    def test_free_bytes(self, bookie: Bookie) -> None:
        with bookie.open_root() as root:
            assert root.free_bytes() >= 0


class _JournalTests(_Fixtures):
    """``open_journal``, ``append`` and ``has_journal``."""

    def test_journal_grows(self, bookie: Bookie, place: Place) -> None:
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

    def test_closed_journal_takes_nothing(self, bookie: Bookie, place: Place) -> None:
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

    def test_journal_replaced_by_a_copy_is_lost(self, bookie: Bookie, place: Place) -> None:
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
            journal.append([b"ab"])
            place.set(JOURNAL, b"ab and more")
            assert not root.has_journal(journal)
            journal.close()

    def test_cut_journal_is_lost(self, bookie: Bookie, place: Place) -> None:
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

    def test_journal_of_a_place_made_again_is_lost(self, bookie: Bookie, place: Place) -> None:
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


class _CookieTests(_Fixtures):
    """Whose storage it is, checked by every ``open_root``."""

    def expect_refusal(self, bookie: Bookie, words: str) -> None:
        with pytest.raises(BookieUnavailableError, match=words), bookie.open_root():
            pass

    def test_missing_place(self, place: Place) -> None:
        self.expect_refusal(uri.open_bookie(address_of(place)), "b1")
        assert uri.storage(place.url).read_cookie() is None

    def test_wiped_place(self, bookie: Bookie, place: Place) -> None:
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
        self, bookie: Bookie, place: Place, changes: dict[str, str], words: str
    ) -> None:
        assert bookie.address == address_of(place)
        self.expect_refusal(uri.open_bookie(address_of(place, **changes)), words)

    @pytest.mark.parametrize("damage", [b"", b"x", a_cookie()[:-1], a_cookie() + b" "])
    def test_damaged_cookie(self, bookie: Bookie, place: Place, damage: bytes) -> None:
        place.set(layout.COOKIE, damage)
        self.expect_refusal(bookie, "unreadable cookie")

    def test_absence_is_unsure_in_a_place_that_lost_its_cookie(
        self, bookie: Bookie, place: Place
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

    def test_place_made_again_for_another_incarnation(self, bookie: Bookie, place: Place) -> None:
        with bookie.open_root() as root:
            root.put_new(MARKER, b"x")
            place.wipe()
            uri.storage(place.url).format(a_cookie(incarnation=OTHER_INCARNATION))
            with pytest.raises(BookieUnavailableError):
                root.read(MARKER)
        self.expect_refusal(bookie, "initialised again")

    def test_format_needs_an_empty_place(self, bookie: Bookie, place: Place) -> None:
        storage = uri.storage(place.url)
        with pytest.raises(InvalidRequestError):
            storage.format(a_cookie(incarnation=OTHER_INCARNATION))
        assert storage.read_cookie() == a_cookie()
        place.wipe()
        place.set("something", b"")
        with pytest.raises(InvalidRequestError):
            storage.format(a_cookie())
        assert storage.read_cookie() is None

    def test_failure_domain(self, bookie: Bookie, place: Place) -> None:
        assert bookie.address.url == place.url
        assert uri.storage(place.url).failure_domain()

    def test_bookie_can_be_pickled(self, bookie: Bookie) -> None:
        copy = pickle.loads(pickle.dumps(bookie))
        assert copy.address == bookie.address
        with bookie.open_root() as root, copy.open_root() as other:
            root.put_new(MARKER, b"x")
            assert other.read(MARKER) == b"x"


class BookieTests(_FileTests, _JournalTests, _CookieTests):
    """All of the contract."""


def _rival(
    work: Callable[..., Any], bookie: Bookie, index: int, barrier: Any, results: Any
) -> None:
    try:
        results.put((index, work(bookie, index, barrier)))
    except BaseException as error:
        results.put((index, repr(error)))


def _in_threads(work: Callable[..., Any], bookie: Bookie, count: int) -> list[Any]:
    found: list[Any] = [None] * count
    barrier = threading.Barrier(count, timeout=30)

    def rival(index: int) -> None:
        found[index] = work(bookie, index, barrier)

    threads = [threading.Thread(target=rival, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _race_name(round_number: int) -> str:
    return layout.term_marker(LEDGER, round_number + 1)


def _race_data(index: int) -> bytes:
    return bytes([index]) * 50_000


def _race(bookie: Bookie, index: int, barrier: Any) -> list[bool]:
    wins = []
    for round_number in range(ROUNDS):
        with bookie.open_root() as root:
            barrier.wait()
            wins.append(root.put_new(_race_name(round_number), _race_data(index)))
    return wins


def _race_files(bookie: Bookie, index: int, barrier: Any) -> bool:
    with bookie.open_root() as root:
        file = root.create(ENTRIES)
        file.write(_race_data(index))
        barrier.wait()
        with suppress(BookieUnavailableError):
            file.finish()
            return True
    return False


def _write_or_read(bookie: Bookie, index: int, barrier: Any) -> bool:
    """Two rivals write, by either way; the third looks until it has seen all, and only whole."""
    whole = b"w" * 2_000_000
    names = [f"{kind}/{number}" for number in range(4) for kind in ("put", "file")]
    with bookie.open_root() as root:
        barrier.wait()
        if index == 0:
            return all(root.put_new(name, whole) for name in names if name.startswith("put"))
        if index == 1:
            for name in names:
                if name.startswith("file"):
                    file = root.create(name)
                    for begin in range(0, len(whole), 100_000):
                        file.write(whole[begin : begin + 100_000])
                    file.finish()
            return True
        for name in names:
            while (found := root.size(name)) is None:
                pass
            if found != len(whole) or root.read(name) != whole:
                return False
        return True


def _miss_then_look(bookie: Bookie, index: int, barrier: Any) -> bool:
    """The first looks, and misses; the second writes; the first looks again, the same way."""
    with bookie.open_root() as root:
        for number in range(ROUNDS):
            name = f"folder{number}/name"
            was_missed = index == 1 or (root.read(name) is None and root.list(f"f{number}") == [])
            barrier.wait()
            if index == 1:
                root.put_new(name, b"x")
            barrier.wait()
            if not was_missed or root.read(name) != b"x":
                return False
    return True


def _write_then_look(bookie: Bookie, index: int, barrier: Any) -> list[bool]:
    """Each writes its name and then looks for the other's; fencing stands on one seeing it."""
    seen = []
    for number in range(ROUNDS):
        with bookie.open_root() as root:
            mine, other = f"r{number}/n{index}", f"r{number}/n{1 - index}"
            assert root.size(other) is None
            barrier.wait()
            root.put_new(mine, b"")
            seen.append(root.size(other) is not None)
    return seen
