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
        if self.journal and not is_begun and _behind_the_first(root, self.journal) < 0:
            return "the journal that it began before the ledger named it"
        return ""

    def is_bare_in(self, root: ReadableRoot) -> bool:
        """Whether a bookie has all of it, and nothing that was written behind it.

        Raises:
            BookieUnavailableError: the bookie gives no sure answer.
        """
        is_bare = bool(self.journal) and _behind_the_first(root, self.journal) == 0
        return is_bare and not self.missing_in(root, is_begun=True)


def _behind_the_first(root: ReadableRoot, name: str) -> int:
    """How many bytes of a journal lie behind its first frame; below 0 if that is not all there."""
    prefix = root.read(name, 0, journal.PREFIX_BYTES)
    length = None if prefix is None else journal.frame_length(prefix, 0, position=0)
    return -1 if length is None else (root.size(name) or 0) - length
