"""The journal of a place's copies, which is written while the next of them are read and checked.

Rule 1. One append is under way at most, and no more is collected behind it than the next one takes.
So what is held does not grow with what is copied, however slow the bookie is.

Rule 2. The bookie is waited for no longer than storing so much takes (``BookieClient``). What
became of an append is known before the next one begins, and nothing is appended behind one that
failed (H24).
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
"""So many bytes of records are made durable at once."""

BESIDE_BYTES_MAX = 16 * 2**20
"""While more is being written, nothing is read beside it: what comes next may be as long."""


class CopiedJournal:
    """A journal of records for one place on the bookie at ``target``.

    Args:
        open_new: makes it, when its first record comes; it is this attempt's own.
        index: of the place in the ensemble.
        pace: is told of what is written, and holds up who is too fast.
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
        """Put ``record`` behind all others; it is durable once ``finish`` has returned.

        Raises:
            BookieUnavailableError: the bookie has not taken an earlier one.
        """
        frame = record.frame(self._index, self._end + self._collected)
        self._pieces += frame
        self._collected += sum(memoryview(piece).nbytes for piece in frame)
        if self._collected >= FLUSH_BYTES:
            self._flush()

    def finish(self) -> None:
        """Make all of it durable, and see that the bookie shows it.

        Raises:
            BookieUnavailableError: it does not.
        """
        if self._collected:
            self._flush()
        self._settle()
        if self._file is None:
            return
        with open_bookie(self._client.address).open_root() as root:
            if not root.has_journal(self._file):
                who = self._client.address.bookie_id
                raise BookieUnavailableError(
                    f"bookie {who} does not show the journal that was written to it"
                )

    def close(self) -> None:
        """Let go of the file, behind the last append, however late that comes back."""
        self._client.close()

    def _flush(self) -> None:
        """Begin to append what was collected."""
        self._settle()
        file, pieces, size = self._opened(), self._pieces, self._collected
        self._client.begin(lambda: file.append(pieces))
        self._end += size
        self._pieces, self._collected, self._under_way = [], 0, size
        self._pace.passed(size)
        if size > BESIDE_BYTES_MAX:
            self._settle()

    def _settle(self) -> None:
        """Wait for the append that is under way; raises what it raised."""
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
