"""Lost requests, lost answers and refusals: an S3 bookie never takes them for an absence."""

from collections.abc import Callable
from typing import Any

import fsspec.config
import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie, BookieAddress, BookieRoot
from bkspark.bookie.object_store import records_folder
from bkspark.errors import BookieUnavailableError, InvalidRequestError, OutcomeUnknownError
from bkspark.format import layout
from bkspark.metadata.uri import open_store
from bkspark.testing.bookie_place import CLUSTER, ENTRIES, INCARNATION, JOURNAL, MARKER, a_cookie
from tests.kit.s3 import S3Proxy, environment

pytestmark = pytest.mark.thorough


def looks(root: BookieRoot) -> list[Callable[[], Any]]:
    """Every way to ask whether something is there."""
    return [
        lambda: root.read(MARKER),
        lambda: root.read(MARKER, 3, 4),
        lambda: root.size(MARKER),
        lambda: root.sync(MARKER),
        lambda: root.delete(MARKER),
    ]


class TestWrites:
    """The outcome is known, or said to be unknown."""

    @pytest.mark.parametrize("status", [0, 500, 503])
    def test_lost_answer(self, root: BookieRoot, proxy: S3Proxy, status: int) -> None:
        proxy.fail("PUT", times=1, reaches_store=True, status=status)
        assert root.put_new(MARKER, b"mine")
        assert proxy.statuses("PUT")[0] == 200
        assert root.read(MARKER) == b"mine"

    def test_every_answer_is_lost(self, root: BookieRoot, proxy: S3Proxy) -> None:
        proxy.fail("PUT", reaches_store=True)
        assert root.put_new(MARKER, b"mine")

    @pytest.mark.parametrize("code", ["ConditionalRequestConflict", "OperationAborted"])
    def test_conflict_is_tried_again(self, root: BookieRoot, proxy: S3Proxy, code: str) -> None:
        proxy.fail("PUT", times=2, status=409, code=code)
        assert root.put_new(MARKER, b"mine")
        assert proxy.statuses("PUT") == [0, 0, 200]

    @pytest.mark.parametrize("status", [0, 400, 403, 409, 500, 503])
    def test_lasting_failure_is_unknown(
        self, root: BookieRoot, proxy: S3Proxy, status: int
    ) -> None:
        proxy.fail("PUT", status=status)
        with pytest.raises(BookieUnavailableError):
            root.put_new(MARKER, b"mine")
        with pytest.raises(BookieUnavailableError):
            root.open_journal(JOURNAL)
        file = root.create(ENTRIES)
        file.write(b"x")
        with pytest.raises(BookieUnavailableError):
            file.finish()
        assert root.size(MARKER) is None

    def test_name_of_another_is_no_doubt(
        self, s3_bookie: Bookie, root: BookieRoot, proxy: S3Proxy
    ) -> None:
        """What is under way can change nothing any more: names are written once."""
        with s3_bookie.open_root() as other:
            assert other.put_new(MARKER, b"same")
        proxy.fail("PUT", status=503)
        assert not root.put_new(MARKER, b"same")

    def test_same_bytes_are_not_the_same_object(self, root: BookieRoot) -> None:
        assert root.put_new(MARKER, b"same")
        assert not root.put_new(MARKER, b"same")

    def test_lost_answer_and_nothing_to_be_learned(self, root: BookieRoot, proxy: S3Proxy) -> None:
        proxy.fail("PUT", reaches_store=True, status=503)
        proxy.fail("GET", status=503)
        with pytest.raises(BookieUnavailableError):
            root.put_new(MARKER, b"mine")

    @pytest.mark.parametrize("sign", [b"\0bkspark empty  ", b"\0bkspark journal"])
    def test_what_looks_like_a_sign_is_refused(self, root: BookieRoot, sign: bytes) -> None:
        file = root.create(ENTRIES)
        file.write(sign)
        journal = root.open_journal(JOURNAL)
        for attempt in (
            lambda: root.put_new(MARKER, sign),
            file.finish,
            lambda: journal.append([sign]),
        ):
            with pytest.raises(InvalidRequestError):
                attempt()
        assert root.put_new(MARKER, sign[:-1])
        assert root.read(MARKER, 3) == sign[3:-1]


class TestLooks:
    """Only the store's own word is an absence."""

    @pytest.mark.parametrize(
        ("status", "code"),
        [
            (0, ""),
            (404, ""),
            (404, "NotFound"),
            (404, "NoSuchBucket"),
            (403, "AccessDenied"),
            (400, "ExpiredToken"),
            (301, "PermanentRedirect"),
            (409, "OperationAborted"),
            (500, "InternalError"),
            (503, "SlowDown"),
        ],
    )
    def test_refusal_is_no_absence(
        self, root: BookieRoot, proxy: S3Proxy, status: int, code: str
    ) -> None:
        proxy.fail("GET", status=status, code=code)
        for look in (*looks(root), lambda: root.list("ledgers")):
            with pytest.raises(BookieUnavailableError):
                look()

    def test_refusal_of_the_cookie_is_no_absence(
        self, s3_bookie: Bookie, root: BookieRoot, proxy: S3Proxy
    ) -> None:
        """Also where the object itself is surely absent."""
        proxy.fail("GET", layout.COOKIE, status=503)
        for look in looks(root):
            with pytest.raises(BookieUnavailableError):
                look()
        with pytest.raises(BookieUnavailableError), s3_bookie.open_root():
            pass

    def test_brief_trouble_is_overcome(self, root: BookieRoot, proxy: S3Proxy) -> None:
        root.put_new(MARKER, b"x")
        for status in (0, 503):
            proxy.fail("GET", times=2, status=status, code="SlowDown")
            assert root.read(MARKER) == b"x"

    def test_no_bucket(self, proxy: S3Proxy) -> None:
        url = "s3://no-such-bucket/b1"
        bookie = uri.open_bookie(BookieAddress("b1", INCARNATION, CLUSTER, url))
        with (
            pytest.raises(BookieUnavailableError, match="bucket does not exist"),
            bookie.open_root(),
        ):
            pass
        for attempt in (
            uri.storage(url).read_cookie,
            lambda: uri.storage(url).format(a_cookie()),
        ):
            with pytest.raises(BookieUnavailableError, match="bucket does not exist"):
                attempt()
        with pytest.raises(OutcomeUnknownError, match="bucket does not exist"):
            open_store(url).get("cluster")

    def test_no_answer_in_time(
        self,
        root: BookieRoot,
        proxy: S3Proxy,
        forget: Callable[[], None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A timeout is not tried again, and settings come from fsspec's configuration."""
        settings = {"config_kwargs": {"read_timeout": 0.3, "retries": {"max_attempts": 9}}}
        monkeypatch.setitem(fsspec.config.conf, "s3", settings)
        forget()
        proxy.heal()
        proxy.fail("GET", status=None)
        with pytest.raises(BookieUnavailableError, match=r"no answer from \S+ in time"):
            root.read(MARKER)
        assert proxy.statuses("GET") == [0]

    def test_no_server(self, root: BookieRoot) -> None:
        with (
            environment(port=1),
            pytest.raises(BookieUnavailableError, match="no answer"),
        ):
            root.read(MARKER)

    def test_listing_of_several_pages(
        self, root: BookieRoot, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = {"s3_additional_kwargs": {"MaxKeys": 2}}
        monkeypatch.setitem(fsspec.config.conf, "s3", settings)
        forget()
        for name in ("f/a", "f/b", "f/c", "f/d/e", "f/e", "g"):
            root.put_new(name, b"")
        assert root.list("f") == ["a", "b", "c", "d/", "e"]

    def test_object_without_a_byte(
        self, back_door: Any, s3_bookie: Bookie, root: BookieRoot
    ) -> None:
        """Not made here, but there."""
        back_door.put(s3_bookie.address.url, MARKER, b"")
        assert (root.read(MARKER), root.read(MARKER, 3, 4), root.size(MARKER)) == (b"", b"", 0)
        assert not root.put_new(MARKER, b"x")


class TestJournal:
    """Records are dense, and one in doubt is the last."""

    def test_lost_answer(self, s3_bookie: Bookie, root: BookieRoot, proxy: S3Proxy) -> None:
        journal = root.open_journal(JOURNAL)
        for record in (b"one", b"two", b"three"):
            proxy.fail("PUT", times=1, reaches_store=True, status=500)
            journal.append([record])
            with s3_bookie.open_root() as now:
                assert now.has_journal(journal)
        assert root.read(JOURNAL) == b"onetwothree"
        assert root.read(JOURNAL, 2, 5) == b"etwot"
        assert root.size(JOURNAL) == journal.end == 11

    def test_doubt_ends_it(self, root: BookieRoot, proxy: S3Proxy) -> None:
        journal = root.open_journal(JOURNAL)
        journal.append([b"one"])
        proxy.fail("PUT", status=503)
        with pytest.raises(BookieUnavailableError):
            journal.append([b"two"])
        proxy.heal()
        with pytest.raises(BookieUnavailableError, match="no more records"):
            journal.append([b"three"])
        assert journal.end == 3
        assert root.read(JOURNAL) == b"one"
        assert proxy.statuses("PUT") == []

    def test_empty_records(self, root: BookieRoot) -> None:
        journal = root.open_journal(JOURNAL)
        for record in (b"", b"a", b""):
            journal.append([record])
        assert root.has_journal(journal)
        assert (root.read(JOURNAL), root.size(JOURNAL)) == (b"a", 1)

    @pytest.mark.parametrize("lost", [0, 1, 2])
    def test_lost_record(
        self, back_door: Any, s3_bookie: Bookie, root: BookieRoot, lost: int
    ) -> None:
        """One before the last is a doubt; the last cannot be known to anybody but its writer."""
        journal = root.open_journal(JOURNAL)
        for record in (b"one", b"two", b"three"):
            journal.append([record])
        back_door.remove(s3_bookie.address.url, f"{records_folder(JOURNAL)}/{lost:016x}")
        assert not root.has_journal(journal)
        if lost == 2:
            assert root.read(JOURNAL) == b"onetwo"
            return
        for look in (root.read, root.size):
            with pytest.raises(BookieUnavailableError, match="after it"):
                look(JOURNAL)

    def test_second_writer_is_refused(
        self, back_door: Any, s3_bookie: Bookie, root: BookieRoot
    ) -> None:
        journal = root.open_journal(JOURNAL)
        back_door.remove(s3_bookie.address.url, JOURNAL)
        again = root.open_journal(JOURNAL)
        again.append([b"theirs"])
        with pytest.raises(BookieUnavailableError, match="another writer"):
            journal.append([b"mine"])
        assert not root.has_journal(journal)
        assert root.has_journal(again)

    def test_deletion_takes_all(
        self, back_door: Any, s3_bookie: Bookie, root: BookieRoot, proxy: S3Proxy
    ) -> None:
        """Also when it is begun again, with what is there by then."""
        journal = root.open_journal(JOURNAL)
        for record in (b"one", b"two", b"three"):
            journal.append([record])
        proxy.fail("DELETE", "/0000000000000001", status=500)
        with pytest.raises(BookieUnavailableError):
            root.delete(JOURNAL)
        assert root.read(JOURNAL) == b"onetwo"
        proxy.heal()
        assert root.delete(JOURNAL)
        assert root.read(JOURNAL) is None
        assert back_door.keys(s3_bookie.address.url) == [layout.COOKIE]
