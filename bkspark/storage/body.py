"""A request body with progress reports during the sending."""

import io

from bkspark import progress

SMALL_BYTES = 2**18
"""A body up to this size is sent at once, without progress reports."""


class ReportedBytes(io.BytesIO):
    """Bytes that report progress to their maker's task when read for sending, in any thread."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._report = progress.reporter()

    def read(self, size: int | None = -1, /) -> bytes:
        self._report()
        return super().read(size)
