"""Whether a member of a ledger's last fragment has lost what it had of the ledger.

Rule. Before the metadata named it, it took something that nobody makes anew (``enlisting``). If
that is gone, so may be more: what it lacks proves nothing, now and for ever, whatever copies a
recovery has given it since (R18). A journal that holds nothing is as good as none.
"""

from dataclasses import dataclass

from bkspark.bookie.contract import ReadableRoot
from bkspark.format import journal, layout
from bkspark.protocol.ledger.metadata import FIRST_TERM, LedgerMetadata


@dataclass(frozen=True, slots=True)
class Taken:
    """What each member of a fragment took before the metadata named it.

    Attributes:
        permission: the marker of the fragment's writer.
        journal: his journal, which was begun with a header; empty where it was not.
    """

    permission: str
    journal: str = ""

    @classmethod
    def of(cls, ledger: LedgerMetadata) -> "Taken":
        """For the last fragment."""
        ledger_id, fragment = ledger.ledger_id, ledger.last_fragment
        if not fragment.token:  # of an older version, in any term
            return cls(layout.term_marker(ledger_id, FIRST_TERM))
        who = (ledger_id, fragment.term, fragment.token)
        begun = layout.journal(*who) if fragment.has_headers else ""
        return cls(layout.permission(*who), begun)

    def missing_in(self, root: ReadableRoot, *, is_begun: bool = False) -> str:
        """What of it a bookie lacks, in words; empty if it has all.

        Args:
            is_begun: whether the journal has shown a record just now. It need not be looked for
                then: what is not in it was not there before.

        Raises:
            BookieUnavailableError: the bookie gives no sure answer.
        """
        if root.size(self.permission) is None:
            return "the marker that it took before the ledger named it"
        if self.journal and not is_begun and not _holds_a_record(root, self.journal):
            return "the journal that it began before the ledger named it"
        return ""


def _holds_a_record(root: ReadableRoot, name: str) -> bool:
    """Whether a journal has a first frame, by its prefix and as long as that says."""
    prefix = root.read(name, 0, journal.PREFIX_BYTES)
    length = None if prefix is None else journal.frame_length(prefix, 0, position=0)
    return length is not None and (root.size(name) or 0) >= length
