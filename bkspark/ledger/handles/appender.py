"""Appends a record on a bookie, and checks that it counts (R6); every writer does so.

A handle does so from a lane to each bookie, a batch on all bookies at once.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from bkspark import environment
from bkspark.bookie.contract import BookieAddress, Buffer, Journal
from bkspark.cluster.bookie_client import post_check
from bkspark.errors import BookieUnavailableError
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.record import AddRecord

QUICK_SECONDS = 0.0001
"""Storing a record faster than this leaves less time to wait than to compute."""


class Appender:
    """Appends to one writer's journal on one bookie; for one thread at a time.

    Args:
        ledger: as open for the writer.
        journal: the writer's own, begun when the bookie was enlisted. A missing journal is not made
            again, because that would hide its loss.
        advisory_lock: shared by the appenders of one writer to several bookies.
    """

    def __init__(
        self,
        address: BookieAddress,
        ledger: LedgerMetadata,
        journal: Journal | None,
        advisory_lock: environment.AdvisoryLock = nullcontext,
    ) -> None:
        self.address = address
        self._ledger = ledger
        self._journal = journal
        self._advisory_lock = advisory_lock
        self._is_quick = False

    def turn(self) -> AbstractContextManager[object]:
        """Return the turn for appending a record and its consequences, one bookie at a time.

        Only quick bookies take turns: during a slow append, the next bookie can be asked.
        """
        return self._advisory_lock() if self._is_quick else nullcontext()

    @property
    def end(self) -> int:
        """Where the next record begins, in bytes."""
        return 0 if self._journal is None else self._journal.end

    def append(self, record: AddRecord, frame: Sequence[Buffer]) -> None:
        """Return once ``record`` is durable on the bookie and counts; a confirmation only has to be
        stored.

        Args:
            frame: the bytes to store, at ``end``.

        Raises:
            LedgerFencedError: another client has fenced the bookie.
            BookieUnavailableError: the bookie does not have the record, or does not show it.
        """
        mine = self._ledger
        if self._journal is None:
            raise BookieUnavailableError(
                f"bookie {self.address.bookie_id} has no journal of this writer of ledger "
                f"{mine.ledger_id}"
            )
        begin = environment.monotonic()
        self._journal.append(frame)
        self._is_quick = environment.monotonic() - begin < QUICK_SECONDS
        if not record.is_confirmation:
            post_check(
                self.address,
                self._journal,
                ledger_id=mine.ledger_id,
                term=mine.term,
                token=mine.token,
            )

    def let_go(self) -> Journal | None:
        """Return the journal to its next user; no more is appended here."""
        journal, self._journal = self._journal, None
        return journal

    def close(self) -> None:
        """Release the journal."""
        if self._journal is not None:
            self._journal.close()
