"""A place in a bucket, as the conformance tests of bookies look at it."""

from typing import Any

import boto3

from bkspark.bookie.object_store import records_folder
from tests.kit.s3 import S3Server


class S3Place:
    """A prefix, reached past all of the project's code."""

    def __init__(self, server: S3Server) -> None:
        self.url = server.url()
        self._bucket = server.bucket
        self._prefix = self.url.removeprefix(f"s3://{server.bucket}/") + "/"
        self._client: Any = boto3.client("s3", endpoint_url=server.endpoint)

    def get(self, name: str) -> bytes | None:
        if self._prefix + name not in self._keys():
            return None
        body = self._body(self._prefix + name)
        if body != b"\0bkspark journal":
            return body
        return b"".join(self._body(key) for key in self._records(name))

    def set(self, name: str, data: bytes) -> None:
        self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=data)

    def remove(self, name: str) -> None:
        self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    def truncate(self, name: str, size: int) -> None:
        """Cut the last record of the journal ``name`` to ``size`` bytes, and keep its token."""
        key = self._records(name)[-1]
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

    def _records(self, name: str) -> list[str]:
        folder = f"{self._prefix}{records_folder(name)}/"
        return sorted(key for key in self._keys() if key.startswith(folder))

    def _keys(self) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix
        )
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def _body(self, key: str) -> bytes:
        return bytes(self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())
