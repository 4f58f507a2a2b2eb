"""What every writer does on a bookie: it appends a record, and then sees whether that counts (R6).

A handle does so from a lane to each bookie, a batch on all bookies at once.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from bkspark import environment
from bkspark.bookie.contract import BookieAddress, Buffer, Journal
from bkspark.cluster.post_check import post_check
from bkspark.errors import BookieUnavailableError
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.record import AddRecord

QUICK_SECONDS = 0.0001
"""A bookie that stores a record in so long leaves less to be waited for than to be computed."""


class Appender:
    """Appends to one writer's journal on one bookie; for one thread at a time.

    Args:
        ledger: as it is open for him.
        journal: his own there, as it was begun when the bookie was enlisted. One that is not there
            is not made: it would hide that it was lost.
        courtesy: of the appenders of one writer to several bookies.
    """

    def __init__(
        self,
        address: BookieAddress,
        ledger: LedgerMetadata,
        journal: Journal | None,
        courtesy: environment.Courtesy = nullcontext,
    ) -> None:
        self.address = address
        self._ledger = ledger
        self._journal = journal
        self._courtesy = courtesy
        self._is_quick = False

    def turn(self) -> AbstractContextManager[object]:
        """To append a record and to do what follows from it, one bookie behind the other.

        Only if this one is quick: while one is waited for, the next can be asked.
        """
        return self._courtesy() if self._is_quick else nullcontext()

    @property
    def end(self) -> int:
        """Where the next record comes, in bytes."""
        return 0 if self._journal is None else self._journal.end

    def append(self, record: AddRecord, frame: Sequence[Buffer]) -> None:
        """Return once ``record`` is durable there and counts; a confirmation only has to be there.

        Args:
            frame: what the bookie stores of it, at ``end``.

        Raises:
            LedgerFencedError: another client has fenced the bookie.
            BookieUnavailableError: it does not have the record, or does not show it.
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
        """The journal, for whoever goes on with it; nothing is appended here any more."""
        journal, self._journal = self._journal, None
        return journal

    def close(self) -> None:
        """Let go of the journal."""
        if self._journal is not None:
            self._journal.close()
