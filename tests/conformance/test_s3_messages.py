"""What is said when S3 gives no answer: what is wrong, and what to do about it."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bkspark.bookie import uri
from bkspark.cluster.cluster import init_cluster
from bkspark.errors import BookieUnavailableError, BookKeeperError, OutcomeUnknownError
from bkspark.metadata.uri import format_store, open_store
from bkspark.storage import connection
from bkspark.storage.address import parse
from bkspark.storage.connection import StoreDoubt, shown_endpoint
from bkspark.storage.objects import Objects
from tests.kit.s3 import S3Proxy, S3Server

pytestmark = pytest.mark.thorough

READ_BACK = "read back the current state before trying again"


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAUSES_SECONDS", (0.001, 0.001))
    monkeypatch.setattr(connection, "ABSENT_SECONDS", 0.0)


def said(kind: type[BookKeeperError], *calls: Callable[[], object]) -> Iterator[str]:
    """What each call says when it fails."""
    for call in calls:
        with pytest.raises(kind) as caught:
            call()
        assert "\n" not in str(caught.value)
        yield str(caught.value)


def test_without_credentials_it_is_said_how_to_give_them(
    server: S3Server, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store = open_store(server.url())
    for profile in (None, "nobody"):
        if profile is not None:
            monkeypatch.setenv("AWS_PROFILE", profile)
        forget()
        for text in said(OutcomeUnknownError, lambda: store.get("cluster")):
            assert "there are no credentials" in text
            assert "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE)" in text
            assert READ_BACK not in text


def test_an_endpoint_that_is_down_is_named(
    server: S3Server, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    store, storage = open_store(server.url()), uri.storage(server.url())
    forget()
    texts = (
        *said(OutcomeUnknownError, lambda: store.get("cluster"), lambda: store.list("logs")),
        *said(BookieUnavailableError, storage.read_cookie),
    )
    for text in texts:
        assert "no answer from http://127.0.0.1:1 (" in text
        assert "AWS_ENDPOINT_URL" in text
        assert READ_BACK not in text
    [text] = said(OutcomeUnknownError, lambda: store.put("cluster", b"x", 1))
    assert "AWS_ENDPOINT_URL" in text
    assert READ_BACK in text


def test_a_bucket_must_be_made_first(server: S3Server, tmp_path: Path) -> None:
    missing, there = "s3://no-such-bucket/x", server.url()
    texts = (
        *said(OutcomeUnknownError, lambda: format_store(missing)),
        *said(OutcomeUnknownError, lambda: init_cluster(missing, [])),
        *said(OutcomeUnknownError, lambda: open_store(missing).get("cluster")),
        *said(BookieUnavailableError, lambda: init_cluster(there, [missing])),
    )
    for text in texts:
        assert "the bucket does not exist" in text
        assert "make the bucket first" in text


def test_refused_access_names_the_rights_and_the_credentials(
    server: S3Server, proxy: S3Proxy
) -> None:
    store = format_store(server.url())
    proxy.fail("GET", status=403, code="AccessDenied")
    [text] = said(OutcomeUnknownError, lambda: store.get("cluster"))
    assert "without s3:ListBucket" in text
    assert "AWS_ACCESS_KEY_ID" in text


def test_an_object_that_does_not_match_its_checksum_is_called_damaged(
    server: S3Server, back_door: Any
) -> None:
    url = server.url()
    objects = Objects(parse(url))
    objects.create("name", b"value")
    back_door.put(url, "name", b"other", ChecksumAlgorithm="CRC32", ChecksumCRC32="AAAAAA==")
    with pytest.raises(StoreDoubt, match="does not match its checksum") as caught:
        objects.read("name")
    assert "the object is damaged" in caught.value.hint


def test_no_secret_of_a_request_is_logged_and_requests_of_others_are(
    server: S3Server,
    forget: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """At DEBUG botocore logs the headers of each request."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "s3ss10n-t0ken")
    forget()
    with caplog.at_level(logging.DEBUG):
        store = format_store(server.url())
        store.put("cluster", b"wr1tten-value", None)
        store.get("cluster")
        logging.getLogger("botocore.endpoint").debug("of others")
    for secret in ("s3ss10n-t0ken", "test-secret-key", "wr1tten-value"):
        assert secret not in caplog.text
    assert "of others" in caplog.text


def test_of_an_endpoint_only_host_and_port_are_shown() -> None:
    assert shown_endpoint("http://me:hunter2@host:9000/way?key=hunter2") == "http://host:9000"
    assert shown_endpoint("http://me:hun#ter2@host:9000/way") == "http://***"
    assert shown_endpoint("https://s3.eu-west-1.amazonaws.com") == (
        "https://s3.eu-west-1.amazonaws.com"
    )
