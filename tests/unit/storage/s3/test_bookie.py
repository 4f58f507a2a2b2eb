"""A bookie in S3, of which each answer is scripted: what it says is there, or absent, is sure."""

from collections.abc import Callable

import pytest

from bkspark.bookie import object_store, uri
from bkspark.bookie.contract import (
    Bookie,
    BookieAddress,
    BookieRoot,
    Journal,
    KeepsPieces,
    StaysFound,
    TellsGrowth,
    confirmed_at_end,
)
from bkspark.bookie.object_store import records_folder
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format.layout import COOKIE
from bkspark.storage.address import parse
from bkspark.storage.objects import PART_BYTES, PARTS_AT_ONCE
from bkspark.testing.bookie_conformance import FENCE, post_check
from bkspark.testing.bookie_place import CLUSTER, ENTRIES, INCARNATION, JOURNAL, MARKER, a_cookie

from .stand_in import ANSWER_LOST, BUCKET, BUSY, ERROR, REQUEST_LOST, Fate, S3Store

URL = f"s3://{BUCKET}/b1"
MANY = 10_000
FOLDER = "ledgers"

LOOKS: dict[str, Callable[[BookieRoot], object]] = {
    "read": lambda root: root.read(MARKER),
    "read a range": lambda root: root.read(MARKER, 3, 4),
    "size": lambda root: root.size(MARKER),
    "sync": lambda root: root.sync(MARKER),
    "delete": lambda root: root.delete(MARKER),
    "list": lambda root: root.list(FOLDER),
    "usage": lambda root: root.usage(FOLDER),
}
JOURNAL_LOOKS = ("read", "read a range", "size")


@pytest.fixture
def bookie(s3: S3Store) -> Bookie:
    uri.storage(URL).format(a_cookie())
    return uri.open_bookie(BookieAddress("b1", INCARNATION, CLUSTER, URL))


@pytest.fixture
def root(s3: S3Store, bookie: Bookie) -> BookieRoot:
    """Opened; what was asked so far is forgotten."""
    with bookie.open_root() as root:
        s3.requests.clear()
        return root


def wipe(s3: S3Store) -> None:
    s3.objects.clear()


def record(number: int, name: str = JOURNAL) -> str:
    return f"b1/{records_folder(name)}/{number:016x}"


def of_journal(look: str) -> Callable[[BookieRoot], object]:
    return {
        "read": lambda root: root.read(JOURNAL),
        "read a range": lambda root: root.read(JOURNAL, 4, 8),
        "size": lambda root: root.size(JOURNAL),
    }[look]


class TestCookie:
    """An absence counts only where the cookie is, after the look."""

    @pytest.mark.parametrize("look", LOOKS)
    def test_nothing_is_absent_in_a_place_that_was_wiped(
        self, s3: S3Store, root: BookieRoot, look: str
    ) -> None:
        wipe(s3)
        with pytest.raises(BookieUnavailableError, match="lost its cookie"):
            LOOKS[look](root)

    @pytest.mark.parametrize("look", LOOKS)
    def test_nothing_is_absent_in_a_place_that_is_wiped_behind_the_look(
        self, s3: S3Store, root: BookieRoot, look: str
    ) -> None:
        looked = [] if look in ("list", "usage") else [Fate()]
        s3.script("get_object", *looked, lambda: wipe(s3))
        with pytest.raises(BookieUnavailableError, match="lost its cookie"):
            LOOKS[look](root)

    @pytest.mark.parametrize("look", JOURNAL_LOOKS)
    def test_no_journal_ends_in_a_place_that_is_wiped(
        self, s3: S3Store, root: BookieRoot, look: str
    ) -> None:
        root.open_journal(JOURNAL).append([b"one"])

        def lose_all_but_the_journal() -> None:
            s3.objects.pop(f"b1/{COOKIE}")

        s3.script("list_objects_v2", lose_all_but_the_journal)
        with pytest.raises(BookieUnavailableError, match="lost its cookie"):
            of_journal(look)(root)

    @pytest.mark.parametrize("look", LOOKS)
    def test_a_cookie_that_cannot_be_read_proves_nothing(
        self, s3: S3Store, root: BookieRoot, look: str
    ) -> None:
        begin = [] if look in ("list", "usage") else [Fate()]
        s3.script("get_object", *begin, *[ERROR] * MANY)
        with pytest.raises(BookieUnavailableError, match="InternalError"):
            LOOKS[look](root)

    def test_another_bookie_is_told_when_it_is_opened(self, s3: S3Store, bookie: Bookie) -> None:
        s3.objects[f"b1/{COOKIE}"].data = a_cookie(bookie="b2")
        with (
            pytest.raises(BookieUnavailableError, match="storage of bookie b2"),
            bookie.open_root(),
        ):
            pass


class TestConfirmedAtEnd:
    """The absences of a block count if the cookie is there at its end."""

    def test_it_is_one_look(self, s3: S3Store, root: BookieRoot) -> None:
        with confirmed_at_end(root):
            assert root.size(MARKER) is None
            assert root.list(FOLDER) == []
        assert s3.requests == [
            f"get_object b1/{MARKER}",
            f"list_objects_v2 b1/{FOLDER}/",
            f"get_object b1/{COOKIE}",
        ]

    @pytest.mark.parametrize("look", LOOKS)
    def test_nothing_is_absent_in_a_place_that_was_wiped(
        self, s3: S3Store, root: BookieRoot, look: str
    ) -> None:
        wipe(s3)
        with (
            pytest.raises(BookieUnavailableError, match="lost its cookie"),
            confirmed_at_end(root),
        ):
            LOOKS[look](root)
        with pytest.raises(BookieUnavailableError, match="lost its cookie"):
            LOOKS[look](root)

    def test_an_error_comes_first(self, s3: S3Store, root: BookieRoot) -> None:
        wipe(s3)
        with pytest.raises(ZeroDivisionError), confirmed_at_end(root):
            raise ZeroDivisionError


class TestFoundRoot:
    """A client that has just found the bookie writes there at once."""

    def test_it_takes_no_request(self, s3: S3Store, bookie: Bookie) -> None:
        s3.requests.clear()
        assert isinstance(bookie, StaysFound)
        with bookie.found_root() as root:
            assert root.put_new(MARKER, b"")
        assert s3.requests == [f"put_object b1/{MARKER}"]

    @pytest.mark.parametrize("lost", ["its cookie", "the bookie"])
    @pytest.mark.parametrize("look", LOOKS)
    def test_nothing_is_absent_where_the_bookie_is_no_more(
        self, s3: S3Store, bookie: Bookie, look: str, lost: str
    ) -> None:
        wipe(s3)
        if lost == "the bookie":
            uri.storage(URL).format(a_cookie(bookie="b2"))
        words = {"its cookie": "has no cookie", "the bookie": "storage of bookie b2"}[lost]
        assert isinstance(bookie, StaysFound)
        with bookie.found_root() as root, pytest.raises(BookieUnavailableError, match=words):
            LOOKS[look](root)


class TestFormat:
    def test_a_lost_answer_is_settled_by_formatting_again(self, s3: S3Store) -> None:
        s3.script("put_object", Fate(), Fate(), Fate(403, "AccessDenied", done=True))
        s3.script("get_object", *[Fate()] * 4, *[ERROR] * MANY)
        with pytest.raises(BookieUnavailableError, match="AccessDenied"):
            uri.storage(URL).format(a_cookie())
        s3.script("get_object")
        uri.storage(URL).format(a_cookie())
        assert list(s3.objects) == [f"b1/{COOKIE}"]

    def test_the_place_of_another_bookie_is_refused(self, s3: S3Store, bookie: Bookie) -> None:
        with pytest.raises(InvalidRequestError, match="is a bookie already"):
            uri.storage(URL).format(a_cookie(bookie="b2"))

    def test_another_bookie_that_comes_first_is_left(self, s3: S3Store) -> None:
        def come_first() -> None:
            uri.storage(URL).format(a_cookie(bookie="b2"))

        s3.script("put_object", Fate(), Fate(), come_first)
        with pytest.raises(InvalidRequestError, match="is a bookie already"):
            uri.storage(URL).format(a_cookie())
        assert uri.storage(URL).read_cookie() == a_cookie(bookie="b2")

    def test_what_holds_something_else_is_refused(self, s3: S3Store, bookie: Bookie) -> None:
        s3.objects["full/thing"] = s3.objects[f"b1/{COOKIE}"]
        with pytest.raises(InvalidRequestError, match="is not empty"):
            uri.storage(f"s3://{BUCKET}/full").format(a_cookie())


MAKERS: dict[str, Callable[[BookieRoot], object]] = {
    "permission": lambda root: root.put_new(MARKER, b"", once=True),
    "journal": lambda root: root.open_journal(JOURNAL),
    "first record": lambda root: root.open_journal(JOURNAL, [b"one"]),
}


class TestOnce:
    """What makes a permission, or a journal, is sent once (R19)."""

    @pytest.mark.parametrize("fate", [REQUEST_LOST, BUSY, ERROR], ids=["lost", "503", "500"])
    @pytest.mark.parametrize("maker", MAKERS)
    def test_in_doubt_it_is_not_sent_again(
        self, s3: S3Store, root: BookieRoot, maker: str, fate: Fate
    ) -> None:
        begin = [Fate()] if maker == "first record" else []
        s3.script("put_object", *begin, fate)
        with pytest.raises(BookieUnavailableError):
            MAKERS[maker](root)
        assert sum("put_object" in request for request in s3.requests) == len(begin) + 1

    def test_what_is_not_a_permission_is_sent_again(self, s3: S3Store, root: BookieRoot) -> None:
        s3.script("put_object", REQUEST_LOST, BUSY, ANSWER_LOST)
        assert root.put_new(MARKER, b"fence")

    def test_a_name_of_another_is_told(self, s3: S3Store, root: BookieRoot) -> None:
        s3.script("put_object", lambda: root.put_new(MARKER, b"x"))
        assert not root.put_new(MARKER, b"x")
        root.open_journal(JOURNAL)
        with pytest.raises(BookieUnavailableError, match="it exists"):
            root.open_journal(JOURNAL)
        file = root.create(MARKER)
        file.write(b"x")
        with pytest.raises(BookieUnavailableError, match="it exists"):
            file.finish()


class TestJournal:
    """Record n is there if all before it are; one in doubt is the last."""

    @pytest.fixture
    def written(self, root: BookieRoot) -> BookieRoot:
        root.open_journal(JOURNAL, [b"one"]).append([b"two"])
        return root

    def test_a_record_in_doubt_is_the_last(self, s3: S3Store, root: BookieRoot) -> None:
        journal = root.open_journal(JOURNAL, [b"one"])
        s3.script("put_object", *[BUSY] * MANY)
        with pytest.raises(BookieUnavailableError, match="503 SlowDown"):
            journal.append([b"two"])
        s3.script("put_object")
        with pytest.raises(BookieUnavailableError, match="no more records"):
            journal.append([b"three"])
        assert list(s3.objects) == [f"b1/{COOKIE}", f"b1/{JOURNAL}", record(0)]

    def test_a_record_whose_answer_was_lost_is_recognised(
        self, s3: S3Store, root: BookieRoot
    ) -> None:
        journal = root.open_journal(JOURNAL)
        for value in (b"one", b"two"):
            s3.script("put_object", ANSWER_LOST)
            journal.append([value])
        assert root.read(JOURNAL) == b"onetwo"
        assert root.has_journal(journal)

    def test_a_record_of_another_ends_it(self, s3: S3Store, root: BookieRoot) -> None:
        journal = root.open_journal(JOURNAL, [b"one"])
        s3.objects[record(1)] = s3.objects[record(0)]
        with pytest.raises(BookieUnavailableError, match="another writer wrote"):
            journal.append([b"two"])
        with pytest.raises(BookieUnavailableError, match="no more records"):
            journal.append([b"two"])

    @pytest.mark.parametrize("look", JOURNAL_LOOKS)
    def test_records_behind_a_gap_are_not_believed(
        self, s3: S3Store, written: BookieRoot, look: str
    ) -> None:
        s3.objects.pop(record(0))
        with pytest.raises(BookieUnavailableError, match="records after it"):
            of_journal(look)(written)

    @pytest.mark.parametrize("look", JOURNAL_LOOKS)
    def test_a_record_that_the_listing_does_not_show_is_asked_for(
        self, s3: S3Store, written: BookieRoot, look: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It was made since, or the listing is old."""
        third = s3.objects[record(1)]
        real = s3._list_objects_v2

        def old(**given: str) -> dict[str, object]:
            s3.objects.pop(record(2), None)
            answer = real(**given)
            s3.objects[record(2)] = type(third)(b"three", third.metadata, "etag-3")
            return answer

        monkeypatch.setattr(s3, "_list_objects_v2", old)
        expected = {"read": b"onetwothree", "read a range": b"wothree", "size": 11}[look]
        assert of_journal(look)(written) == expected

    @pytest.mark.parametrize("look", JOURNAL_LOOKS)
    def test_a_record_without_an_answer_is_no_end(
        self, s3: S3Store, written: BookieRoot, look: str
    ) -> None:
        listed = 2 if look == "read" else 0
        s3.script("get_object", Fate(), *[Fate()] * listed, *[ERROR] * MANY)
        with pytest.raises(BookieUnavailableError, match="InternalError"):
            of_journal(look)(written)

    def test_a_journal_is_there_if_all_its_records_are_its_own(
        self, s3: S3Store, root: BookieRoot
    ) -> None:
        journal = root.open_journal(JOURNAL)
        for value in (b"one", b"two", b"three"):
            journal.append([value])
        assert root.has_journal(journal)
        for key in (f"b1/{JOURNAL}", *(record(number) for number in range(3))):
            mine = s3.objects[key]
            s3.objects[key] = type(mine)(mine.data, {}, "etag of a copy")
            assert not root.has_journal(journal)
            s3.objects.pop(key)
            assert not root.has_journal(journal)
            s3.objects[key] = mine
            assert root.has_journal(journal)

    def test_a_deletion_begins_at_the_end_and_ends_with_the_head(
        self, s3: S3Store, written: BookieRoot
    ) -> None:
        s3.requests.clear()
        assert written.delete(JOURNAL)
        deleted = [name.partition(" ")[2] for name in s3.requests if name.startswith("delete")]
        assert deleted == [record(1), record(0), f"b1/{JOURNAL}"]

    def test_a_deletion_that_stops_half_way_is_found_again(
        self, s3: S3Store, written: BookieRoot
    ) -> None:
        s3.script("delete_object", Fate(), *[ERROR] * MANY)
        with pytest.raises(BookieUnavailableError):
            written.delete(JOURNAL)
        assert written.read(JOURNAL) == b"one"
        s3.script("delete_object")
        assert written.delete(JOURNAL)
        assert list(s3.objects) == [f"b1/{COOKIE}"]

    def test_a_journal_that_is_made_while_a_listing_goes_on_is_no_folder(
        self, s3: S3Store, root: BookieRoot
    ) -> None:
        folder, _, name = JOURNAL.rpartition("/")
        root.open_journal(JOURNAL, [b"one"])
        head = s3.objects.pop(f"b1/{JOURNAL}")

        def comes_now() -> None:
            s3.objects[f"b1/{JOURNAL}"] = head

        s3.script("get_object", comes_now)
        assert root.list(folder) == [name]


class TestPostCheck:
    """Each answer is of one object, and the order of the looks is the writer's protection."""

    @pytest.fixture
    def journal(self, s3: S3Store, root: BookieRoot) -> Journal:
        root.put_new(MARKER, b"")
        journal = root.open_journal(JOURNAL, [b"one"])
        for value in (b"two", b"three"):
            journal.append([value])
        s3.requests.clear()
        return journal

    def test_it_costs_the_same_however_long_the_journal_is(
        self, s3: S3Store, bookie: Bookie, journal: Journal
    ) -> None:
        assert post_check(bookie, journal)
        keys = (record(2), f"b1/{FENCE}", f"b1/{MARKER}", f"b1/{COOKIE}")
        assert s3.requests == [f"get_object {key}" for key in keys]

    def test_a_fence_that_is_pruned_with_the_permission_meanwhile_is_seen(
        self, s3: S3Store, bookie: Bookie, root: BookieRoot, journal: Journal
    ) -> None:
        """Whichever is looked for first, both are gone when the second is."""
        root.put_new(FENCE, b"")

        def prune() -> None:
            for name in (MARKER, FENCE):
                s3.objects.pop(f"b1/{name}")

        s3.script("get_object", Fate(), Fate(), prune)
        assert not post_check(bookie, journal)

    def test_a_place_that_is_wiped_during_the_looks_does_not_count(
        self, s3: S3Store, bookie: Bookie, journal: Journal
    ) -> None:
        s3.script("get_object", Fate(), lambda: wipe(s3))
        with pytest.raises(BookieUnavailableError, match="has no cookie"):
            post_check(bookie, journal)

    def test_a_place_that_a_move_has_left_does_not_count(
        self, s3: S3Store, bookie: Bookie, journal: Journal
    ) -> None:
        """All but the cookie is still there."""
        s3.objects.pop(f"b1/{COOKIE}")
        with pytest.raises(BookieUnavailableError, match="has no cookie"):
            post_check(bookie, journal)

    @pytest.mark.parametrize("is_there", [True, False])
    def test_the_last_record_must_be_shown(
        self, s3: S3Store, bookie: Bookie, journal: Journal, is_there: bool
    ) -> None:
        """A replica of the bucket that answers now may lack it, or have another's."""
        mine = s3.objects.pop(record(2))
        if is_there:
            s3.objects[record(2)] = type(mine)(mine.data, {}, mine.etag)
        with pytest.raises(BookieUnavailableError, match="does not show"):
            post_check(bookie, journal)


class TestListedJournal:
    """A journal that was listed is read without another listing, and without belief in it."""

    @pytest.fixture
    def listed(self, s3: S3Store, root: BookieRoot) -> Journal:
        journal = root.open_journal(JOURNAL, [b"one"])
        journal.append([b"two"])
        assert root.size(JOURNAL) == 6
        s3.requests.clear()
        return journal

    @pytest.mark.usefixtures("listed")
    def test_a_part_takes_one_request_for_each_record(self, s3: S3Store, root: BookieRoot) -> None:
        assert root.read(JOURNAL, 4, 2) == b"wo"
        assert root.read(JOURNAL, 0, 3) == b"one"
        assert s3.requests == [f"get_object {record(1)}", f"get_object {record(0)}"]

    def test_what_came_since_is_read(self, root: BookieRoot, listed: Journal) -> None:
        listed.append([b"three"])
        assert root.read(JOURNAL, 2, 6) == b"etwoth"
        assert root.read(JOURNAL, 6, 100) == b"three"
        assert root.size(JOURNAL) == 11

    @pytest.mark.usefixtures("listed")
    @pytest.mark.parametrize("lost", ["its place", "a record"])
    def test_what_is_gone_since_is_not_there(
        self, s3: S3Store, root: BookieRoot, lost: str
    ) -> None:
        if lost == "a record":
            s3.objects.pop(record(0))
        else:
            wipe(s3)
        words = {"its place": "lost its cookie", "a record": "records after it"}[lost]
        with pytest.raises(BookieUnavailableError, match=words):
            root.read(JOURNAL, 0, 6)

    def test_its_head_is_not_looked_at_again(self, s3: S3Store, root: BookieRoot) -> None:
        root.open_journal(JOURNAL, [b"one"])
        root.list(JOURNAL.rpartition("/")[0])
        s3.requests.clear()
        assert root.size(JOURNAL) == 3
        records = f"b1/{records_folder(JOURNAL)}/"
        assert s3.requests == [
            f"list_objects_v2 {records}",
            f"get_object {record(1)}",
            f"get_object b1/{COOKIE}",
        ]
        assert root.delete(JOURNAL)
        assert root.size(JOURNAL) is None

    @pytest.mark.usefixtures("listed")
    def test_its_records_are_its_pieces(self, root: BookieRoot) -> None:
        assert isinstance(root, KeepsPieces)
        begins = [
            (end, root.pieces_begin(JOURNAL, end, count)) for end in (6, 3) for count in (1, 2)
        ]
        assert begins == [(6, 3), (6, 0), (3, 0), (3, 0)]
        assert root.pieces_begin(MARKER, 6, 1) == 0

    @pytest.mark.usefixtures("listed")
    def test_a_journal_that_was_deleted_since_is_absent(self, root: BookieRoot) -> None:
        assert root.delete(JOURNAL)
        assert root.read(JOURNAL, 0, 6) is None


class TestGrowth:
    """Whether a journal has grown is one request, and never a guess."""

    @pytest.fixture
    def journal(self, root: BookieRoot) -> Journal:
        journal = root.open_journal(JOURNAL, [b"one"])
        journal.append([b"two"])
        return journal

    @staticmethod
    def has_grown(bookie: Bookie, end: int) -> bool:
        assert isinstance(bookie, TellsGrowth)
        return bookie.may_have_grown(JOURNAL, end)

    def test_it_is_one_request(
        self, s3: S3Store, bookie: Bookie, root: BookieRoot, journal: Journal
    ) -> None:
        assert root.size(JOURNAL) == 6
        s3.requests.clear()
        assert not self.has_grown(bookie, 6)
        assert s3.requests == [f"get_object {record(2)}"]
        journal.append([b"three"])
        assert self.has_grown(bookie, 6)

    def test_records_that_the_listing_did_not_show_are_counted(
        self, s3: S3Store, bookie: Bookie, root: BookieRoot, journal: Journal
    ) -> None:
        s3.script(
            "list_objects_v2", lambda: s3.objects.__setitem__("hidden", s3.objects.pop(record(1)))
        )
        s3.script(
            "get_object",
            Fate(),
            lambda: s3.objects.__setitem__(record(1), s3.objects.pop("hidden")),
        )
        assert root.size(JOURNAL) == 6
        s3.requests.clear()
        assert not self.has_grown(bookie, 6)
        assert s3.requests == [f"get_object {record(2)}"]

    @pytest.mark.parametrize("end", [3, 7])
    def test_a_length_that_was_not_found_may_have_grown(
        self, bookie: Bookie, root: BookieRoot, journal: Journal, end: int
    ) -> None:
        assert self.has_grown(bookie, 6)
        assert root.size(journal.name) == 6
        assert self.has_grown(bookie, end)

    def test_without_an_answer_nothing_is_told(
        self, s3: S3Store, bookie: Bookie, root: BookieRoot, journal: Journal
    ) -> None:
        assert root.size(journal.name) == 6
        s3.script("get_object", *[ERROR] * MANY)
        with pytest.raises(BookieUnavailableError):
            self.has_grown(bookie, 6)

    def test_few_lengths_are_remembered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(object_store, "_LENGTHS_MAX", 2)
        lengths, place = object_store.Lengths(), parse(URL)
        for name in ("a", "b", "a", "c"):
            lengths.note(place, name, 6, 2)
        assert [lengths.count(place, name, 6) for name in "abc"] == [2, None, 2]


class TestFiles:
    """A file appears when it is whole."""

    @pytest.mark.parametrize("size", [1, 9 * 2**20])
    def test_a_lost_answer_of_its_end_is_settled_by_a_look(
        self, s3: S3Store, root: BookieRoot, size: int
    ) -> None:
        file = root.create(ENTRIES)
        file.write(b"x" * size)
        assert root.size(ENTRIES) is None
        s3.script("put_object", ANSWER_LOST)
        s3.script("complete_multipart_upload", ANSWER_LOST)
        file.finish()
        assert root.size(ENTRIES) == size
        assert s3.uploads == {}

    def test_a_file_that_failed_leaves_nothing_and_takes_no_more(
        self, s3: S3Store, root: BookieRoot
    ) -> None:
        file = root.create(ENTRIES)
        s3.script("upload_part", *[ERROR] * MANY)
        with pytest.raises(BookieUnavailableError, match="InternalError"):
            file.write(b"x" * (PARTS_AT_ONCE * PART_BYTES + 1))
        with pytest.raises(BookieUnavailableError, match="failed before"):
            file.finish()
        assert (list(s3.objects), s3.uploads) == ([f"b1/{COOKIE}"], {})
