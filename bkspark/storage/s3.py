"""An object store with S3's protocol: ``bkspark.storage.contract`` by ``connection.call``."""

from typing import Any

from bkspark.storage.address import BucketPlace
from bkspark.storage.connection import call, endpoint_of, get, size_behind
from bkspark.storage.contract import TOKEN, ListingPage, ReportedBytes, StoredBytes, body


class S3Objects:
    """The ``ObjectStore`` of a bucket with S3's protocol. Holds no open resources."""

    def __init__(self, place: BucketPlace) -> None:
        self._bucket = {"store": place.store, "Bucket": place.bucket}

    def put(self, key: str, data: bytes, *, token: str = "", replaced: str = "") -> str:
        condition = {"IfMatch": replaced} if replaced else {"IfNoneMatch": "*"}
        marks = {"Metadata": {TOKEN: token}} if token else {}
        arguments: dict[str, Any] = {**condition, **marks, "Key": key, "Body": body(data)}
        answer = call("put_object", **self._bucket, **arguments)
        return str(answer["ETag"])

    def get(self, key: str, begin: int = 0, end: int | None = None) -> StoredBytes:
        is_whole = begin == 0 and end is None
        header = {} if is_whole else {"Range": f"bytes={begin}-{'' if end is None else end - 1}"}
        answer, data = get(**self._bucket, Key=key, **header)
        token = str(answer.get("Metadata", {}).get(TOKEN, ""))
        size = len(data) if is_whole else size_behind(str(answer.get("ContentRange", "")))
        return StoredBytes(data, size, token, str(answer["ETag"]))

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

    def server(self) -> str:
        return endpoint_of(self._bucket["store"])

    def begin(self, key: str, token: str) -> "S3Parts":
        address = {**self._bucket, "Key": key}
        answer = call("create_multipart_upload", **address, Metadata={TOKEN: token})
        return S3Parts({**address, "UploadId": str(answer["UploadId"])})


class S3Parts:
    """``Parts`` of a multipart upload, which a killed process leaves behind in the bucket."""

    in_turn = False

    def __init__(self, address: dict[str, str]) -> None:
        self._address = address
        self._etags: dict[int, str] = {}

    def send(self, number: int, part: bytes, /) -> None:
        body = ReportedBytes(part)
        answer = call("upload_part", **self._address, PartNumber=number + 1, Body=body)
        self._etags[number + 1] = str(answer["ETag"])

    def finish(self) -> str:
        parts = [{"PartNumber": number, "ETag": tag} for number, tag in sorted(self._etags.items())]
        answer = call(
            "complete_multipart_upload",
            **self._address,
            MultipartUpload={"Parts": parts},
            IfNoneMatch="*",
        )
        return str(answer["ETag"])

    def abandon(self) -> None:
        call("abort_multipart_upload", **self._address)
