"""A stand-in for an S3 store and its client: what becomes of each request is scripted.

    store = S3Store()
    store.script("put_object", Fate(lost=True))

Requests of a method take their fates in turn; those that find none are answered. A callable is
called before the request takes effect: another client may act in it. Errors are shaped as
botocore's, and reach the code by the way that they take from s3fs.

It refuses a key that is a folder of another key that was ever made, as servers do that keep objects
as files.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from fsspec.asyn import get_loop

from tests.kit.s3 import Keys

BUCKET = "bucket"


@dataclass(frozen=True)
class Fate:
    """What becomes of a request.

    Attributes:
        status, code: of an answer that refuses it; 0 for none.
        done: whether it takes effect all the same.
        lost: whether the connection breaks in place of an answer.
        cut: bytes that are missing at the end of the body.
    """

    status: int = 0
    code: str = ""
    done: bool = False
    lost: bool = False
    cut: int = 0


REQUEST_LOST = Fate(lost=True)
ANSWER_LOST = Fate(lost=True, done=True)
BUSY = Fate(503, "SlowDown")
ERROR = Fate(500, "InternalError")
ERROR_BEHIND_IT = Fate(500, "InternalError", done=True)
CONFLICT = Fate(409, "ConditionalRequestConflict")
Step = Fate | Callable[[], object]


class Refused(Exception):
    """As botocore's ``ClientError``."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"An error occurred ({code})")
        self.response = {
            "Error": {"Code": code},
            "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}},
        }


@dataclass
class Stored:
    """An object, or an upload that is on its way to be one."""

    data: bytes
    metadata: dict[str, str]
    etag: str
    parts: dict[int, bytes] = field(default_factory=dict)


class S3Store:
    """A bucket, and in place of s3fs's file system what asks it.

    Attributes:
        objects: by key.
        uploads: by id.
        made: every key that an object was made under, also one that is gone.
        requests: method and key, or prefix, of all so far, lost ones included.
        page_length: how many entries a listing has at most.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.made = Keys()
        self.uploads: dict[str, Stored] = {}
        self.requests: list[str] = []
        self.page_length = 1000
        self.loop = get_loop()
        self.s3 = SimpleNamespace(meta=SimpleNamespace(endpoint_url="http://store:9000/"))
        self._names = 0
        self._scripts: dict[str, list[Step]] = {}

    def script(self, method: str, *steps: Step) -> None:
        """What becomes of the next requests of a method; ``any`` is for those of every method."""
        self._scripts[method] = list(steps)

    def call_s3(self, method: str, *, timeout: float, Bucket: str, **arguments: Any) -> Any:
        del timeout
        name = arguments.get("Key", arguments.get("Prefix", ""))
        self.requests.append(f"{method} {name}")
        if Bucket != BUCKET:
            raise Refused(404, "NoSuchBucket")
        step = self._next_step(method)
        if callable(step):
            step()
            step = Fate()
        refused = step.lost or step.status
        answer = None if refused and not step.done else getattr(self, f"_{method}")(**arguments)
        if step.lost:
            raise ConnectionResetError
        if step.status:
            raise Refused(step.status, step.code)
        if step.cut:
            answer["Body"] = Body(answer["Body"].rest[: -step.cut])
        return answer

    def _next_step(self, method: str) -> Step:
        for script in (self._scripts.get(method), self._scripts.get("any")):
            if script:
                return script.pop(0)
        return Fate()

    def _new_name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}-{self._names}"

    def _put_object(
        self,
        *,
        Key: str,
        Body: Any,
        Metadata: dict[str, str] | None = None,
        IfNoneMatch: str = "",
        IfMatch: str = "",
    ) -> dict[str, Any]:
        data = Body if isinstance(Body, bytes) else Body.read()
        self._require_absent(Key, IfNoneMatch)
        if IfMatch and self._found(self.objects, Key, "NoSuchKey").etag != IfMatch:
            raise Refused(412, "PreconditionFailed")
        self._require_a_file(Key)
        # As S3's: equal contents have equal ETags.
        self.objects[Key] = Stored(data, Metadata or {}, f'"{hashlib.md5(data).hexdigest()}"')
        return {"ETag": self.objects[Key].etag}

    def _require_absent(self, key: str, condition: str) -> None:
        if condition == "*" and key in self.objects:
            raise Refused(412, "PreconditionFailed")

    def _require_a_file(self, key: str) -> None:
        if not self.made.add(key):
            raise Refused(400, "ParentIsObject")

    def _get_object(self, *, Key: str, Range: str = "") -> dict[str, Any]:
        found = self._found(self.objects, Key, "NoSuchKey")
        answer: dict[str, Any] = {"ETag": found.etag, "Metadata": found.metadata}
        data, size = found.data, len(found.data)
        if Range:
            begin, _, last = Range.removeprefix("bytes=").partition("-")
            if int(begin) >= size:
                raise Refused(416, "InvalidRange")
            data = data[int(begin) : int(last) + 1 if last else None]
            answer["ContentRange"] = f"bytes {begin}-{int(begin) + len(data) - 1}/{size}"
        return answer | {"Body": Body(data), "ContentLength": len(data)}

    def _list_objects_v2(
        self, *, Prefix: str, Delimiter: str, ContinuationToken: str = ""
    ) -> dict[str, Any]:
        entries = set()
        for key in self.objects:
            if key.startswith(Prefix):
                name, slash, _ = key.removeprefix(Prefix).partition(Delimiter)
                entries.add(Prefix + name + slash)
        left = sorted(entry for entry in entries if entry > ContinuationToken)
        page = left[: self.page_length]
        answer: dict[str, Any] = {"IsTruncated": len(left) > len(page)}
        if answer["IsTruncated"]:
            answer["NextContinuationToken"] = page[-1]
        keys = [entry for entry in page if entry in self.objects]
        answer["Contents"] = [
            {"Key": key, "ETag": self.objects[key].etag, "Size": len(self.objects[key].data)}
            for key in keys
        ]
        answer["CommonPrefixes"] = [{"Prefix": e} for e in page if e not in self.objects]
        return answer

    def _delete_object(self, *, Key: str) -> dict[str, Any]:
        self.objects.pop(Key, None)
        return {}

    def _create_multipart_upload(self, *, Key: str, Metadata: dict[str, str]) -> dict[str, Any]:
        name = self._new_name(f"upload of {Key}")
        self.uploads[name] = Stored(b"", Metadata, self._new_name("etag"))
        return {"UploadId": name}

    def _upload_part(
        self, *, Key: str, UploadId: str, PartNumber: int, Body: Any
    ) -> dict[str, Any]:
        del Key
        self._found(self.uploads, UploadId, "NoSuchUpload").parts[PartNumber] = Body.read()
        return {"ETag": f"part-{PartNumber}"}

    def _complete_multipart_upload(
        self, *, Key: str, UploadId: str, MultipartUpload: Any, IfNoneMatch: str = ""
    ) -> dict[str, Any]:
        found = self._found(self.uploads, UploadId, "NoSuchUpload")
        self._require_absent(Key, IfNoneMatch)
        self._require_a_file(Key)
        numbers = [part["PartNumber"] for part in MultipartUpload["Parts"]]
        found.data = b"".join(found.parts[number] for number in numbers)
        self.objects[Key] = self.uploads.pop(UploadId)
        return {"ETag": found.etag}

    def _abort_multipart_upload(self, *, Key: str, UploadId: str) -> dict[str, Any]:
        del Key
        self.uploads.pop(UploadId, None)
        return {}

    def _found(self, among: dict[str, Stored], name: str, code: str) -> Stored:
        if name not in among:
            raise Refused(404, code)
        return among[name]


class Body:
    """What is left of an answer's body."""

    def __init__(self, rest: bytes) -> None:
        self.rest = rest

    async def read(self, size: int) -> bytes:
        piece, self.rest = self.rest[:size], self.rest[size:]
        return piece

    def close(self) -> None:
        """Nothing is open."""
