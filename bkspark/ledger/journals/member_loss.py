"""Tells whether a member of a ledger's last fragment has lost data of the ledger.

Rule. Before the metadata named the member, it took markers that no client makes again
(``enlisting``). If a marker is gone, more may be gone. Then a missing entry on this member proves
nothing, for ever, whatever copies a recovery has written there since (R18). An empty journal counts
as a missing journal.
"""

from dataclasses import dataclass

from bkspark.bookie.contract import ReadableRoot
from bkspark.format import journal, layout
from bkspark.protocol.ledger.metadata import LedgerMetadata


@dataclass(frozen=True, slots=True)
class Taken:
    """What each member of a fragment took before the metadata named the member.

    Attributes:
        permission: the marker of the fragment's writer.
        journal: the writer's journal, begun with a header; empty without headers.
    """

    permission: str
    journal: str = ""

    @classmethod
    def of(cls, ledger: LedgerMetadata) -> "Taken":
        """Return the markers of the last fragment."""
        fragment = ledger.last_fragment
        owner = (ledger.ledger_id, fragment.term, fragment.token)
        begun = layout.journal(*owner) if fragment.has_headers else ""
        return cls(layout.permission(*owner), begun)

    def missing_in(self, root: ReadableRoot, *, is_begun: bool = False) -> str:
        """Describe the first missing marker on a bookie; empty if none is missing.

        Args:
            is_begun: whether the journal has just shown a record. If so, skip the look at the
                journal.

        Raises:
            BookieUnavailableError: the bookie gives no sure answer.
        """
        if root.size(self.permission) is None:
            return "the marker that it stored before it became a member"
        if self.journal and not is_begun and _behind_the_first(root, self.journal) < 0:
            return "the journal that it began before it became a member"
        return ""

    def is_bare_in(self, root: ReadableRoot) -> bool:
        """Return whether a bookie has all markers, and no bytes after the journal's header.

        Raises:
            BookieUnavailableError: the bookie gives no sure answer.
        """
        is_bare = bool(self.journal) and _behind_the_first(root, self.journal) == 0
        return is_bare and not self.missing_in(root, is_begun=True)


def _behind_the_first(root: ReadableRoot, name: str) -> int:
    """Return how many bytes follow a journal's first frame; below 0 if the frame is incomplete."""
    prefix = root.read(name, 0, journal.PREFIX_BYTES)
    length = None if prefix is None else journal.frame_length(prefix, 0, position=0)
    return -1 if length is None else (root.size(name) or 0) - length
