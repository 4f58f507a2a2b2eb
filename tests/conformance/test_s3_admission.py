"""Large files, metadata and admission on S3, behind a line that loses things."""

import pickle
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie, BookieAddress, BookieRoot
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    InvalidRequestError,
    OutcomeUnknownError,
)
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.uri import format_store, open_store
from bkspark.storage.objects import PART_BYTES, PARTS_AT_ONCE
from bkspark.testing.bookie_place import CLUSTER, ENTRIES, INCARNATION, MARKER, a_cookie
from tests.kit.s3 import S3Proxy, S3Server

pytestmark = pytest.mark.thorough

KEY = "ledgers/0000000000000001"


class TestLargeFiles:
    """Files of several parts."""

    DATA = bytes(range(251)) * (PARTS_AT_ONCE * PART_BYTES // 251 + 1)

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
        assert len(proxy.statuses("PUT")) == PARTS_AT_ONCE + 1

    @pytest.mark.parametrize("status", [0, 500])
    def test_lost_answer_to_the_last_request(
        self, root: BookieRoot, proxy: S3Proxy, status: int
    ) -> None:
        file = self.write(root)
        proxy.fail("POST", "uploadId", reaches_store=True, status=status)
        file.finish()
        assert root.size(ENTRIES) == len(self.DATA)

    def test_it_never_replaces_a_name(self, back_door: Any, root: BookieRoot) -> None:
        file = self.write(root)
        root.put_new(ENTRIES, b"first")
        with pytest.raises(BookieUnavailableError, match="it exists"):
            file.finish()
        assert root.read(ENTRIES) == b"first"
        assert back_door.uploads() == []

    @pytest.mark.parametrize("method", ["PUT", "POST"])
    def test_failure_leaves_nothing(
        self, back_door: Any, root: BookieRoot, proxy: S3Proxy, method: str
    ) -> None:
        proxy.fail(method, "uploadId", status=400)
        with pytest.raises(BookieUnavailableError):
            self.write(root).finish()
        assert root.size(ENTRIES) is None
        assert back_door.uploads() == []

    def test_discarded_file_leaves_nothing(self, back_door: Any, root: BookieRoot) -> None:
        file = self.write(root)
        assert len(back_door.uploads()) == 1
        file.discard()
        file.discard()
        assert back_door.uploads() == []


class TestMetadata:
    """The same requests under a metadata store."""

    def test_lost_answers(self, server: S3Server, proxy: S3Proxy) -> None:
        store = format_store(server.url())
        for version in (1, 2, 3):
            proxy.fail("PUT", times=1, reaches_store=True, status=500)
            assert store.put(KEY, b"%d" % version, version - 1 or None) == version
        assert store.get(KEY) == VersionedBytes(b"3", 3)

    @pytest.mark.parametrize("method", ["PUT", "GET"])
    def test_doubt_is_unknown(self, server: S3Server, proxy: S3Proxy, method: str) -> None:
        url = server.url()
        seen = VersionedBytes(b"1", format_store(url).put(KEY, b"1", None))
        store = open_store(url)
        assert len(store.list("ledgers")) == 1  # it has read the marker, and no record
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
        format_store(url).put(KEY, b"x", None)
        with pytest.raises(InvalidRequestError, match="exists already"):
            format_store(url + "/")
        other = server.url()
        uri.storage(other).format(a_cookie())
        with pytest.raises(InvalidRequestError, match="other files"):
            format_store(other)


class TestAdmission:
    """What is refused before anything is entrusted to it."""

    def test_store_that_ignores_conditions(
        self, server: S3Server, back_door: Any, proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(proxy, "dropped_header", "If-None-Match")
        url = server.url()
        for attempt in (
            lambda: uri.storage(url).format(a_cookie()),
            lambda: format_store(url),
        ):
            with pytest.raises(InvalidRequestError, match="overwrites objects"):
                attempt()
        assert back_door.keys(url) == []

    @pytest.mark.parametrize(
        "url",
        [
            "s3://", "s3:///b1", "s3://B/b1", "s3://b", "s3://bucket/../x", "s3://bucket//x",
            "s3://bucket/.x", "s3://bucket/x y", "s3://bucket/x?a=b", "s3://bucket/x#a",
            "s3://user:hunter2@bucket/x", "s3://bucket:9000/x", "s3://bucket/" + "x" * 600,
        ],
    )  # fmt: skip
    def test_addresses(self, url: str) -> None:
        bookie = uri.open_bookie(BookieAddress("b1", INCARNATION, CLUSTER, url))
        for attempt in (
            lambda: uri.storage(url).read_cookie(),
            lambda: uri.storage(url).failure_domain(),
            lambda: open_store(url),
            lambda: bookie.open_root().__enter__(),
        ):
            with pytest.raises(InvalidRequestError) as caught:
                attempt()
            assert "hunter2" not in "".join(traceback.format_exception(caught.value))

    @pytest.mark.parametrize("scheme", ["gcs", "hdfs", "http", "simplecache"])
    def test_other_stores_are_not_admitted(self, scheme: str) -> None:
        with pytest.raises(InvalidRequestError, match="supported"):
            uri.storage(f"{scheme}://bucket/b1")
        with pytest.raises(InvalidRequestError, match="supported"):
            open_store(f"{scheme}://bucket/b1")

    def test_failure_domain(self, server: S3Server) -> None:
        domains = [uri.storage(f"s3://bucket/{name}").failure_domain() for name in ("a/b", "c")]
        assert domains[0] == domains[1]
        assert re.fullmatch("bucket-bucket@[0-9a-f]{8}", domains[0])

    def test_missing_package(
        self, root: BookieRoot, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "s3fs", None)
        forget()
        with pytest.raises(InvalidRequestError, match=r"pip install 'bkspark\[s3\]'"):
            root.read(MARKER)


def test_nothing_secret_gets_out(
    s3_bookie: Bookie, root: BookieRoot, proxy: S3Proxy, server: S3Server, caplog: Any
) -> None:
    """No credentials in errors, and not even the endpoint in what is sent to tasks."""
    store = format_store(server.url())
    secrets = ("test-access-key", "test-secret-key")
    sent = pickle.dumps((s3_bookie, store))
    assert not any(secret.encode() in sent for secret in (*secrets, "127.0.0.1"))
    for status in (0, 403, 500):
        proxy.heal()
        proxy.fail("GET", status=status, code="InvalidAccessKeyId")
        for call in (lambda: root.read(MARKER), lambda: store.get(KEY)):
            with pytest.raises(BookKeeperError) as caught:
                call()
            said = "".join(traceback.format_exception(caught.value)) + caught.value.hint
            assert not any(secret in said for secret in secrets)
