"""The S3 backend keeps the contract."""

from typing import Any

import boto3
import pytest

from bkspark.bookie.contract import Bookie
from bkspark.ledger.journals.journal_folder import find_journals
from bkspark.storage.objects import Objects
from bkspark.testing.bookie_conformance import BookieTests
from bkspark.testing.bookie_place import JOURNAL, LEDGER
from bkspark.testing.s3 import S3Server

pytestmark = pytest.mark.thorough


class S3Place:
    """A prefix, reached past all of the project's code."""

    def __init__(self, server: S3Server, client: Any) -> None:
        self.url = server.url()
        self._bucket = server.bucket
        self._prefix = self.url.removeprefix(f"s3://{server.bucket}/") + "/"
        self._client = client

    def get(self, name: str) -> bytes | None:
        if self._prefix + name not in self._keys():
            return None
        body = self._body(self._prefix + name)
        if body != b"\0bkspark journal":
            return body
        records = sorted(key for key in self._keys() if key.startswith(f"{self._prefix}{name}/."))
        return b"".join(self._body(key) for key in records)

    def set(self, name: str, data: bytes) -> None:
        self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=data)

    def truncate(self, name: str, size: int) -> None:
        """Cut the last record of the journal ``name`` to ``size`` bytes, and keep its token."""
        key = max(key for key in self._keys() if key.startswith(f"{self._prefix}{name}/."))
        found = self._client.get_object(Bucket=self._bucket, Key=key)
        body = found["Body"].read()[:size]
        self._client.put_object(Bucket=self._bucket, Key=key, Body=body, Metadata=found["Metadata"])

    def names(self) -> list[str]:
        uploads = self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=self._prefix)
        unfinished = [upload["Key"] for upload in uploads.get("Uploads", [])]
        return [key.removeprefix(self._prefix) for key in [*self._keys(), *unfinished]]

    def wipe(self) -> None:
        for key in self._keys():
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def move_away(self) -> None:
        self.wipe()

    def _keys(self) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix
        )
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def _body(self, key: str) -> bytes:
        return bytes(self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())


@pytest.fixture(scope="module")
def client(server: S3Server) -> Any:
    return boto3.client("s3", endpoint_url=server.endpoint)


class TestS3Bookie(BookieTests):
    @pytest.fixture
    def place(self, server: S3Server, client: Any) -> S3Place:
        return S3Place(server, client)

    def test_records_without_their_head_are_no_absence(
        self, bookie: Bookie, place: S3Place, client: Any, server: S3Server
    ) -> None:
        """Whoever deletes the oldest objects first takes the head first."""
        folder, _, last = JOURNAL.rpartition("/")
        with bookie.open_root() as root:
            journal = root.open_journal(JOURNAL)
            journal.append([b"ab"])
            prefix = place.url.removeprefix(f"s3://{server.bucket}/")
            client.delete_object(Bucket=server.bucket, Key=f"{prefix}/{JOURNAL}")
            assert root.list(folder) == [f"{last}/"]
            assert find_journals(root, "b1", LEDGER, ()).problem.startswith("bookie b1: ")

    def test_a_journal_that_is_made_during_a_listing_has_its_head(
        self, bookie: Bookie, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder, _, last = JOURNAL.rpartition("/")
        with bookie.open_root() as root:
            root.open_journal(JOURNAL).append([b"ab"])
            monkeypatch.setattr(Objects, "entries", lambda *_: {f"{last}/": ""})
            assert root.list(folder) == [last]
