"""The journal of a place's copies, written while the next records are read and checked.

Rule 1. At most one append is under way, and at most one further append is collected meanwhile. So
the memory used does not grow with the data, however slow the bookie.

Rule 2. The wait for the bookie is limited by the time to store the bytes (``BookieClient``). The
outcome of an append is known before the next append begins, and nothing is appended after a failed
append (H24).
"""

from collections.abc import Callable

from bkspark.admin.pace import Pace
from bkspark.bookie.contract import BookieAddress, BookieRoot, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.bookie_client import BookieClient, seconds_to_store
from bkspark.errors import BookieUnavailableError
from bkspark.format.digest import Buffer
from bkspark.format.journal import EncodedRecord

FLUSH_BYTES = 4 * 2**20
"""Bytes of records made durable by one append."""

BESIDE_BYTES_MAX = 16 * 2**20
"""While a larger append is under way, nothing is read: the next record may be as long."""


class CopiedJournal:
    """A journal of records for one place on the bookie at ``target``.

    Args:
        open_new: creates this attempt's own journal when the first record comes.
        index: position of the place in the ensemble.
        pace: counts the written bytes and delays the copying to keep the rate limit.
    """

    def __init__(
        self,
        target: BookieAddress,
        open_new: Callable[[BookieRoot], Journal],
        index: int,
        pace: Pace,
    ) -> None:
        self._client = BookieClient(target, is_patient=True)
        self._open_new = open_new
        self._index = index
        self._pace = pace
        self._file: Journal | None = None
        self._end = 0
        self._pieces: list[Buffer] = []
        self._collected = 0
        self._under_way = 0

    def add(self, record: EncodedRecord) -> None:
        """Append ``record``; the record is durable once ``finish`` has returned.

        Raises:
            BookieUnavailableError: the bookie has not taken an earlier record.
        """
        frame = record.frame(self._index, self._end + self._collected)
        self._pieces += frame
        self._collected += sum(memoryview(piece).nbytes for piece in frame)
        if self._collected >= FLUSH_BYTES:
            self._flush()

    def finish(self) -> None:
        """Make all records durable, and check the bookie shows the journal.

        Raises:
            BookieUnavailableError: an append failed, or the bookie does not show the journal.
        """
        if self._collected:
            self._flush()
        self._settle()
        if self._file is None:
            return
        with open_bookie(self._client.address).open_root() as root:
            if not root.has_journal(self._file):
                bookie_name = self._client.address.bookie_id
                raise BookieUnavailableError(
                    f"bookie {bookie_name} does not show the journal that was copied to it"
                )

    def close(self) -> None:
        """Close the file after the last append, however late the append ends."""
        self._client.close()

    def _flush(self) -> None:
        """Begin to append the collected records."""
        self._settle()
        file, pieces, size = self._opened(), self._pieces, self._collected
        self._client.begin(lambda: file.append(pieces))
        self._end += size
        self._pieces, self._collected, self._under_way = [], 0, size
        self._pace.passed(size)
        if size > BESIDE_BYTES_MAX:
            self._settle()

    def _settle(self) -> None:
        """Wait for the append under way; raise its error."""
        size, self._under_way = self._under_way, 0
        if size:
            self._client.answer(seconds_to_store(size))

    def _opened(self) -> Journal:
        if self._file is None:

            def open_new() -> Journal:
                file = self._open_new(self._client.root())
                self._client.cleanup.callback(file.close)
                return file

            self._file = self._client.ask(open_new, seconds_to_store(0))
        return self._file
