"""What a takeover removes from a bookie of who wrote before (``reopening``, rules 5, 7 and 8)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.errors import CorruptDataError
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.ledger.journals.journal_reader import JournalReader
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.ownership import is_owner
from bkspark.protocol.recovery.reopening_steps import Prune


def prune(address: BookieAddress, plan: Prune, opened: LedgerMetadata, digester: Digester) -> None:
    """Remove what nobody needs, of one writer after the other, in ascending order of their terms.

    Args:
        opened: the ledger as it was read back.

    Raises:
        BookieUnavailableError: something stays, or may.
    """
    with open_bookie(address).open_root() as root:
        place = _Place(root, opened, digester)
        # A bookie may have a permission that nobody else knows of beside the writer's of that term.
        for term, writers in groupby(place.left_over(plan.writer[0]), itemgetter(0)):
            for _, token in writers:
                place.forget(term, token, with_journal=place.is_blank(term, token))
            place.unfence(term)
        place.forget(*plan.writer, with_journal=plan.is_empty)
        place.unfence(plan.writer[0])


@dataclass(frozen=True, slots=True)
class _Place:
    """What a bookie has of the ledger."""

    root: BookieRoot
    ledger: LedgerMetadata
    digester: Digester

    def left_over(self, before: int) -> Iterator[tuple[int, str]]:
        """Terms and tokens of writers whose permissions are still there, ascending.

        Args:
            before: only those of terms in front of this one.
        """
        folder = layout.terms_folder(self.ledger.ledger_id)
        writers = (layout.writer_of(name) for name in self.root.list(folder))
        yield from sorted(writer for writer in writers if writer and writer[0] < before)

    def is_blank(self, term: int, token: str) -> bool:
        """Whether a journal surely holds nothing but what it was begun with, and owns nothing."""
        ledger_id = self.ledger.ledger_id
        if is_owner(self.ledger.fragments, term):
            return False
        name = layout.journal(ledger_id, term, token)
        reader = JournalReader(self.root, name, self.digester, ledger_id=ledger_id)
        try:
            is_begun = all(head.record.is_header for head in reader.forwards(reader.head))
        except CorruptDataError:
            return False  # there is none
        return is_begun and not reader.is_blocked

    def forget(self, term: int, token: str, *, with_journal: bool) -> None:
        """The permission before the fence, so that who looks for the fence and then for it never
        finds neither fence nor loss (R20). And behind the journal: it tells whose may be there."""
        ledger_id = self.ledger.ledger_id
        if with_journal:
            self.root.forget_journal(layout.journal(ledger_id, term, token))
        self.root.delete(layout.permission(ledger_id, term, token))

    def unfence(self, term: int) -> None:
        """Remove the fence of a term, once no permission of it is left."""
        self.root.delete(layout.term_marker(self.ledger.ledger_id, term + 1))
