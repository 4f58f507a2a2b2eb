"""Describes the writer to fence, and the markers on each bookie of its ledger."""

from dataclasses import dataclass

from bkspark.format import layout
from bkspark.ledger.journals.member_loss import Taken
from bkspark.protocol.ledger.metadata import LedgerMetadata


@dataclass(frozen=True, slots=True)
class LastWriter:
    """The last writer of a ledger; a recovery fences the writer before looking for records.

    Only the last writer can still be writing, so one marker fences all, after any number of
    recoveries (R20).

    Attributes:
        fence: the marker that fences the writer.
        taken: markers on each member for this writer, taken before the metadata named the member.
    """

    term: int
    fence: str
    taken: Taken

    @classmethod
    def of(cls, ledger: LedgerMetadata) -> "LastWriter":
        """Return the writer of the ledger's last fragment."""
        ledger_id, fragment = ledger.ledger_id, ledger.last_fragment
        fence = layout.term_marker(ledger_id, fragment.term + 1)
        return cls(fragment.term, fence, Taken.of(ledger))
