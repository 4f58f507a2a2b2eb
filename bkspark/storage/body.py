"""The body of a request that shows how far it was sent."""

import io

from bkspark import progress

SMALL_BYTES = 2**18
"""So much is sent at once, and shows no progress."""


class ReportedBytes(io.BytesIO):
    """Reports progress as its bytes are taken to be sent, from whichever thread."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._report = progress.reporter()

    def read(self, size: int | None = -1, /) -> bytes:
        self._report()
        return super().read(size)
