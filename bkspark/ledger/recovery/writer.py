"""Whom a recovery fences, and what shows that a bookie still has what it had of his ledger."""

from dataclasses import dataclass

from bkspark.format import layout
from bkspark.ledger.journals.member_loss import Taken
from bkspark.protocol.ledger.metadata import LedgerMetadata


@dataclass(frozen=True, slots=True)
class Writer:
    """The last writer of a ledger, who is fenced before anything is looked up.

    Only he can be writing still, so one marker fences all that is to be fenced, however many
    recoveries came before (R20).

    Attributes:
        fence: the marker that fences him.
        taken: what each member took before the metadata named it for him.
    """

    term: int
    fence: str
    taken: Taken

    @classmethod
    def of(cls, ledger: LedgerMetadata) -> "Writer":
        """The one who writes the ledger's last fragment."""
        ledger_id, fragment = ledger.ledger_id, ledger.last_fragment
        fence = layout.term_marker(ledger_id, fragment.term + 1)
        return cls(fragment.term, fence, Taken.of(ledger))
