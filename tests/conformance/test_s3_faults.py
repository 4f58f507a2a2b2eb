"""Lost requests, lost answers and refusals: an S3 bookie never takes them for an absence."""

import pickle
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import fsspec.config
import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie, BookieRoot
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    InvalidRequestError,
    OutcomeUnknownError,
)
from bkspark.format import layout
from bkspark.metadata.contract import Versioned
from bkspark.metadata.uri import format_store, open_store
from bkspark.storage import connection
from bkspark.storage.upload import PART_BYTES
from bkspark.testing.bookie_place import (
    ENTRIES,
    JOURNAL,
    MARKER,
    a_cookie,
    address_of,
)
from bkspark.testing.s3 import S3Server
from bkspark.testing.s3_proxy import S3Proxy, s3_proxy

KEY = "ledgers/0000000000000001"


class Place:
    def __init__(self, url: str) -> None:
        self.url = url


@pytest.fixture
def proxy(server: S3Server) -> Iterator[S3Proxy]:
    with s3_proxy(server) as proxy:
        yield proxy


@pytest.fixture
def bookie(server: S3Server, proxy: S3Proxy) -> Bookie:
    place: Any = Place(server.url())
    uri.storage(place.url).format(a_cookie())
    proxy.heal()
    return uri.open_bookie(address_of(place))


@pytest.fixture
def root(bookie: Bookie) -> Iterator[BookieRoot]:
    with bookie.open_root() as root:
        yield root


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
        self, bookie: Bookie, root: BookieRoot, proxy: S3Proxy
    ) -> None:
        """What is under way can change nothing any more: names are written once."""
        with bookie.open_root() as other:
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
        self, bookie: Bookie, root: BookieRoot, proxy: S3Proxy
    ) -> None:
        """Also where the object itself is surely absent."""
        proxy.fail("GET", layout.COOKIE, status=503)
        for look in looks(root):
            with pytest.raises(BookieUnavailableError):
                look()
        with pytest.raises(BookieUnavailableError), bookie.open_root():
            pass

    def test_brief_trouble_is_overcome(self, root: BookieRoot, proxy: S3Proxy) -> None:
        root.put_new(MARKER, b"x")
        for status in (0, 503):
            proxy.fail("GET", times=2, status=status, code="SlowDown")
            assert root.read(MARKER) == b"x"

    def test_no_bucket(self, proxy: S3Proxy) -> None:
        place: Any = Place("s3://no-such-bucket/b1")
        with (
            pytest.raises(BookieUnavailableError, match="bucket does not exist"),
            uri.open_bookie(address_of(place)).open_root(),
        ):
            pass
        for attempt in (
            uri.storage(place.url).read_cookie,
            lambda: uri.storage(place.url).format(a_cookie()),
        ):
            with pytest.raises(BookieUnavailableError, match="bucket does not exist"):
                attempt()
        with pytest.raises(OutcomeUnknownError, match="bucket does not exist"):
            open_store(place.url).get(KEY)

    def test_no_answer_in_time(
        self, root: BookieRoot, proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A timeout is not tried again, and settings come from fsspec's configuration."""
        settings = {"config_kwargs": {"read_timeout": 0.3, "retries": {"max_attempts": 9}}}
        monkeypatch.setitem(fsspec.config.conf, "s3", settings)
        connection.forget()
        proxy.fail("GET", status=None)
        with pytest.raises(BookieUnavailableError, match="no answer in time"):
            root.read(MARKER)
        assert len(proxy.seen) == 1 or proxy.statuses("GET") == [0]

    def test_no_server(self, root: BookieRoot, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        connection.forget()
        with pytest.raises(BookieUnavailableError, match="no answer"):
            root.read(MARKER)


class TestJournal:
    """Records are dense, and one in doubt is the last."""

    def test_lost_answer(self, bookie: Bookie, root: BookieRoot, proxy: S3Proxy) -> None:
        journal = root.open_journal(JOURNAL)
        for record in (b"one", b"two", b"three"):
            proxy.fail("PUT", times=1, reaches_store=True, status=500)
            journal.append([record])
            with bookie.open_root() as now:
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
    def test_lost_record(self, server: S3Server, root: BookieRoot, lost: int) -> None:
        """One before the last is a doubt; the last cannot be known to anybody but its writer."""
        journal = root.open_journal(JOURNAL)
        for record in (b"one", b"two", b"three"):
            journal.append([record])
        remove(server, f"{JOURNAL}/.{lost:016x}")
        assert not root.has_journal(journal)
        if lost == 2:
            assert root.read(JOURNAL) == b"onetwo"
            return
        for look in (root.read, root.size):
            with pytest.raises(BookieUnavailableError, match="behind it"):
                look(JOURNAL)

    def test_second_writer_is_refused(self, server: S3Server, root: BookieRoot) -> None:
        journal = root.open_journal(JOURNAL)
        remove(server, JOURNAL)
        again = root.open_journal(JOURNAL)
        again.append([b"theirs"])
        with pytest.raises(BookieUnavailableError, match="somebody else"):
            journal.append([b"mine"])
        assert not root.has_journal(journal)
        assert root.has_journal(again)

    def test_deletion_takes_all(self, server: S3Server, root: BookieRoot, proxy: S3Proxy) -> None:
        """Also when it is begun again, with what is there by then."""
        journal = root.open_journal(JOURNAL)
        for record in (b"one", b"two", b"three"):
            journal.append([record])
        proxy.fail("DELETE", ".0000000000000001", status=500)
        with pytest.raises(BookieUnavailableError):
            root.delete(JOURNAL)
        assert root.read(JOURNAL) == b"onetwo"
        proxy.heal()
        assert root.delete(JOURNAL)
        assert root.read(JOURNAL) is None
        assert not [key for key in keys(server) if JOURNAL in key]


class TestLargeFiles:
    """Files of several parts."""

    DATA = bytes(range(251)) * (2 * PART_BYTES // 251 + 1)

    def write(self, root: BookieRoot) -> Any:
        file = root.create(ENTRIES)
        for begin in range(0, len(self.DATA), 3_000_000):
            file.write(memoryview(self.DATA)[begin : begin + 3_000_000])
        return file

    def test_parts_come_together(self, root: BookieRoot, proxy: S3Proxy) -> None:
        file = self.write(root)
        assert root.size(ENTRIES) is None
        file.finish()
        file.discard()
        assert root.size(ENTRIES) == len(self.DATA)
        assert root.read(ENTRIES) == self.DATA
        assert root.read(ENTRIES, PART_BYTES - 2, 5) == self.DATA[PART_BYTES - 2 :][:5]
        assert len(proxy.statuses("PUT")) == 3

    @pytest.mark.parametrize("status", [0, 500])
    def test_lost_answer_to_the_last_request(
        self, root: BookieRoot, proxy: S3Proxy, status: int
    ) -> None:
        file = self.write(root)
        proxy.fail("POST", "uploadId", reaches_store=True, status=status)
        file.finish()
        assert root.size(ENTRIES) == len(self.DATA)

    def test_it_never_replaces_a_name(self, server: S3Server, root: BookieRoot) -> None:
        file = self.write(root)
        root.put_new(ENTRIES, b"first")
        with pytest.raises(BookieUnavailableError, match="it exists"):
            file.finish()
        assert root.read(ENTRIES) == b"first"
        assert uploads(server) == []

    @pytest.mark.parametrize("method", ["PUT", "POST"])
    def test_failure_leaves_nothing(
        self, server: S3Server, root: BookieRoot, proxy: S3Proxy, method: str
    ) -> None:
        proxy.fail(method, "uploadId", status=400)
        with pytest.raises(BookieUnavailableError):
            self.write(root).finish()
        assert root.size(ENTRIES) is None
        assert uploads(server) == []

    def test_discarded_file_leaves_nothing(self, server: S3Server, root: BookieRoot) -> None:
        file = self.write(root)
        assert len(uploads(server)) == 1
        file.discard()
        file.discard()
        assert uploads(server) == []


class TestMetadata:
    """The same requests under a metadata store."""

    def test_lost_answers(self, server: S3Server, proxy: S3Proxy) -> None:
        store = format_store(server.url())
        for version in (1, 2, 3):
            proxy.fail("PUT", times=1, reaches_store=True, status=500)
            assert store.put(KEY, b"%d" % version, version - 1 or None) == version
        assert store.get(KEY) == Versioned(b"3", 3)

    @pytest.mark.parametrize("method", ["PUT", "GET"])
    def test_doubt_is_unknown(self, server: S3Server, proxy: S3Proxy, method: str) -> None:
        store = format_store(server.url())
        seen = Versioned(b"1", store.put(KEY, b"1", None))
        proxy.fail(method, status=503)
        with pytest.raises(OutcomeUnknownError):
            store.put(KEY, b"2", 1)
        if method == "GET":
            for call in (
                lambda: store.get(KEY),
                lambda: store.is_current(KEY, seen),
                lambda: store.list("ledgers"),
                lambda: store.delete(KEY),
            ):
                with pytest.raises(OutcomeUnknownError):
                    call()

    def test_wiped_or_mistyped_place_is_no_empty_store(self, server: S3Server) -> None:
        with pytest.raises(InvalidRequestError, match="no bkspark cluster"):
            open_store(server.url()).get(KEY)

    def test_format_needs_an_empty_place(self, server: S3Server) -> None:
        url = server.url()
        format_store(url)
        with pytest.raises(InvalidRequestError, match="is one already"):
            format_store(url + "/")
        other: Any = Place(server.url())
        uri.storage(other.url).format(a_cookie())
        with pytest.raises(InvalidRequestError, match="something else"):
            format_store(other.url)


class TestAdmission:
    """What is refused before anything is entrusted to it."""

    def test_store_that_ignores_conditions(self, server: S3Server, proxy: S3Proxy) -> None:
        proxy.dropped_header = "If-None-Match"
        url = server.url()
        for attempt in (
            lambda: uri.storage(url).format(a_cookie()),
            lambda: format_store(url),
        ):
            with pytest.raises(InvalidRequestError, match="overwrites objects"):
                attempt()
        assert not [key for key in keys(server) if url.rpartition("/")[2] in key]

    @pytest.mark.parametrize(
        "url",
        [
            "s3://", "s3:///b1", "s3://B/b1", "s3://b", "s3://bucket/../x", "s3://bucket//x",
            "s3://bucket/.x", "s3://bucket/x y", "s3://bucket/x?a=b", "s3://bucket/x#a",
            "s3://user:hunter2@bucket/x", "s3://bucket:9000/x", "s3://bucket/" + "x" * 600,
        ],
    )  # fmt: skip
    def test_addresses(self, url: str) -> None:
        place: Any = Place(url)
        for attempt in (
            lambda: uri.storage(url).read_cookie(),
            lambda: uri.storage(url).failure_domain(),
            lambda: open_store(url),
            lambda: uri.open_bookie(address_of(place)).open_root().__enter__(),
        ):
            with pytest.raises(InvalidRequestError) as caught:
                attempt()
            assert "hunter2" not in "".join(traceback.format_exception(caught.value))

    @pytest.mark.parametrize("scheme", ["s3a", "gs", "gcs", "abfs", "hdfs", "http", "simplecache"])
    def test_other_stores_are_not_admitted(self, scheme: str) -> None:
        with pytest.raises(InvalidRequestError, match="supported"):
            uri.storage(f"{scheme}://bucket/b1")
        with pytest.raises(InvalidRequestError, match="supported"):
            open_store(f"{scheme}://bucket/b1")

    def test_failure_domain(self) -> None:
        assert uri.storage("s3://bucket/a/b").failure_domain() == "bucket-bucket"

    def test_missing_package(self, root: BookieRoot, monkeypatch: pytest.MonkeyPatch) -> None:
        connection.forget()
        monkeypatch.setitem(sys.modules, "s3fs", None)
        with pytest.raises(InvalidRequestError, match=r"pip install 'bkspark\[s3\]'"):
            root.read(MARKER)


def test_nothing_secret_gets_out(
    bookie: Bookie, root: BookieRoot, proxy: S3Proxy, server: S3Server, caplog: Any
) -> None:
    """Neither credentials nor the endpoint: not in errors, and not in what is sent to tasks."""
    store = format_store(server.url())
    secrets = ("test-access-key", "test-secret-key", "127.0.0.1")
    sent = pickle.dumps((bookie, store))
    assert not any(secret.encode() in sent for secret in secrets)
    for status in (0, 403, 500):
        proxy.heal()
        proxy.fail("GET", status=status, code="InvalidAccessKeyId")
        for call in (lambda: root.read(MARKER), lambda: store.get(KEY)):
            with pytest.raises(BookKeeperError) as caught:
                call()
            said = "".join(traceback.format_exception(caught.value)) + caught.value.hint
            assert not any(secret in said for secret in secrets)


def keys(server: S3Server) -> list[str]:
    found = boto3.client("s3", endpoint_url=server.endpoint).list_objects_v2(Bucket=server.bucket)
    return [entry["Key"] for entry in found.get("Contents", [])]


def remove(server: S3Server, name: str) -> None:
    """Lose the objects called ``name`` of whatever bookie."""
    client = boto3.client("s3", endpoint_url=server.endpoint)
    for key in keys(server):
        if key.endswith(f"/{name}"):
            client.delete_object(Bucket=server.bucket, Key=key)


def uploads(server: S3Server) -> list[str]:
    client = boto3.client("s3", endpoint_url=server.endpoint)
    found = client.list_multipart_uploads(Bucket=server.bucket)
    return [upload["Key"] for upload in found.get("Uploads", [])]
