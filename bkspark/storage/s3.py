"""An object store with S3's protocol: ``bkspark.storage.contract`` by ``connection.call``."""

import io
from typing import Any

from bkspark import progress
from bkspark.storage.address import S3Place
from bkspark.storage.connection import S3Doubt, call, get
from bkspark.storage.contract import ListingPage, StoredBytes

SMALL_BYTES = 2**18
"""A body up to this size is sent at once, without progress reports."""
_TOKEN = "bkspark-token"


class ReportedBytes(io.BytesIO):
    """Bytes that report progress to their maker's task when read for sending, in any thread."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._report = progress.reporter()

    def read(self, size: int | None = -1, /) -> bytes:
        self._report()
        return super().read(size)


class S3Objects:
    """The ``ObjectStore`` of a bucket with S3's protocol. Holds no open resources."""

    def __init__(self, place: S3Place) -> None:
        self._bucket = {"store": place.store, "Bucket": place.bucket}

    def put(self, key: str, data: bytes, *, token: str = "", replaced: str = "") -> str:
        answer = call(
            "put_object",
            **self._bucket,
            Key=key,
            Body=ReportedBytes(data) if len(data) > SMALL_BYTES else data,
            **({"IfMatch": replaced} if replaced else {"IfNoneMatch": "*"}),
            **({"Metadata": {_TOKEN: token}} if token else {}),
        )
        return str(answer["ETag"])

    def get(self, key: str, begin: int = 0, end: int | None = None) -> StoredBytes:
        is_whole = begin == 0 and end is None
        header = {} if is_whole else {"Range": f"bytes={begin}-{'' if end is None else end - 1}"}
        answer, data = get(**self._bucket, Key=key, **header)
        token = str(answer.get("Metadata", {}).get(_TOKEN, ""))
        return StoredBytes(
            data, len(data) if is_whole else _size_behind(answer), token, answer["ETag"]
        )

    def list_page(self, prefix: str, after: str = "", page: str = "") -> ListingPage:
        arguments = {**self._bucket, "Prefix": prefix, "Delimiter": "/"}
        if after:
            arguments["StartAfter"] = after
        if page:
            arguments["ContinuationToken"] = page
        answer = call("list_objects_v2", **arguments)
        found = {
            entry["Key"]: (entry["ETag"], entry["Size"]) for entry in answer.get("Contents", ())
        }
        folders = tuple(entry["Prefix"] for entry in answer.get("CommonPrefixes", ()))
        is_cut = answer.get("IsTruncated")
        return ListingPage(found, folders, answer["NextContinuationToken"] if is_cut else "")

    def delete(self, key: str) -> None:
        call("delete_object", **self._bucket, Key=key)

    def begin(self, key: str, token: str) -> "S3Parts":
        address = {**self._bucket, "Key": key}
        answer = call("create_multipart_upload", **address, Metadata={_TOKEN: token})
        return S3Parts({**address, "UploadId": str(answer["UploadId"])})


class S3Parts:
    """``Parts`` of a multipart upload, which a killed process leaves behind in the bucket."""

    def __init__(self, address: dict[str, str]) -> None:
        self._address = address
        self._etags: list[str] = []

    def send(self, part: bytes) -> None:
        number = len(self._etags) + 1
        answer = call("upload_part", **self._address, PartNumber=number, Body=ReportedBytes(part))
        self._etags.append(str(answer["ETag"]))

    def finish(self) -> str:
        parts = [{"PartNumber": n, "ETag": etag} for n, etag in enumerate(self._etags, start=1)]
        answer = call(
            "complete_multipart_upload",
            **self._address,
            MultipartUpload={"Parts": parts},
            IfNoneMatch="*",
        )
        return str(answer["ETag"])

    def abandon(self) -> None:
        call("abort_multipart_upload", **self._address)


def _size_behind(answer: dict[str, Any]) -> int:
    """The whole object's length, from the answer to a range request."""
    size = str(answer.get("ContentRange", "")).rpartition("/")[2]
    if not size.isdecimal():
        raise S3Doubt("the store does not support requests for a range of bytes")
    return int(size)
