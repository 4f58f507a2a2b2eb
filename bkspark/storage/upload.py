"""A large object uploaded in parts: invisible until complete, and then created if absent.

The rule: **an object appears by one conditional request**: the put of the object, or the completion
of its parts. Until then its name stays free for other clients. At most one part is held in memory.
Parts grow, because an object has at most 10,000: the limit is half a terabyte.

A killed upload leaves its parts behind, unseen and paid for: give the bucket a lifecycle rule that
aborts incomplete uploads after some days.
"""

from contextlib import suppress
from typing import Any

from bkspark import environment
from bkspark.storage.body import ReportedBytes
from bkspark.storage.connection import ObjectTaken, S3Doubt, call, repeated
from bkspark.storage.objects import Created, Objects, marked_by

PART_BYTES = 8 * 2**20
# After so many parts the next ones are twice as long.
_PARTS_PER_LENGTH = 1000
_PART_BYTES_MAX = 8 * PART_BYTES


class Upload:
    """The object ``name``, piece by piece. After an error only ``discard`` may be called."""

    def __init__(self, objects: Objects, name: str) -> None:
        self._objects = objects
        self._name = name
        self._token = environment.token()
        self._rest = bytearray()
        self._upload_id = ""
        self._etags: list[str] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._rest += memoryview(data).cast("B")
        while len(self._rest) > (length := self._part_bytes()):
            self.send(bytes(memoryview(self._rest)[:length]))
            del self._rest[:length]

    def send(self, part: bytes) -> None:
        """Send ``part`` now; only the last part may be shorter than 5 MiB."""
        if not self._upload_id:
            # Not repeated in doubt: a second upload would stay behind for good.
            answer = repeated(
                lambda: call(
                    "create_multipart_upload",
                    **self._objects.address(self._name),
                    Metadata=marked_by(self._token),
                ),
                only_if_refused=True,
            )
            self._upload_id = str(answer["UploadId"])
        number = len(self._etags) + 1
        answer = repeated(
            lambda: call(
                "upload_part", **self._address(), PartNumber=number, Body=ReportedBytes(part)
            )
        )
        self._etags.append(str(answer["ETag"]))

    def finish(self) -> Created | None:
        """Make the object visible; None if another creator's object is there.

        Raises:
            S3Doubt: the object may be there now, or later.
        """
        if not self._upload_id:
            return self._objects.create(self._name, bytes(self._rest))
        if self._rest:
            self.send(bytes(self._rest))
        created = self._complete()
        if created is not None:
            self._upload_id = ""
        return created

    def discard(self) -> None:
        """Remove all parts, as far as the store allows; harmless at any time."""
        self._rest.clear()
        if self._upload_id:
            with suppress(S3Doubt):
                call("abort_multipart_upload", **self._address())
            self._upload_id = ""

    def _complete(self) -> Created | None:
        try:
            # The same parts under the same number each time, so the completion cannot happen twice.
            answer = repeated(self._send_end)
        except ObjectTaken:
            return self._objects.own(self._name, self._token)
        except S3Doubt as doubt:
            return self._objects.own(self._name, self._token, doubt)
        return Created(self._token, str(answer["ETag"]))

    def _send_end(self) -> dict[str, Any]:
        parts = [{"PartNumber": n, "ETag": etag} for n, etag in enumerate(self._etags, start=1)]
        return call(
            "complete_multipart_upload",
            **self._address(),
            MultipartUpload={"Parts": parts},
            IfNoneMatch="*",
        )

    def _address(self) -> dict[str, str]:
        return {**self._objects.address(self._name), "UploadId": self._upload_id}

    def _part_bytes(self) -> int:
        return min(PART_BYTES << (len(self._etags) // _PARTS_PER_LENGTH), _PART_BYTES_MAX)
