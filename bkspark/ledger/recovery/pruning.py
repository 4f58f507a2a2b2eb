"""Removes files of earlier writers from a bookie after a takeover (``reopening``, rules 5, 7,
8).
"""

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
    """Remove unneeded files, one writer after the other, in ascending order of their terms.

    Args:
        opened: the ledger as read back.

    Raises:
        BookieUnavailableError: a file stays, or may stay.
    """
    with open_bookie(address).open_root() as root:
        place = _Place(root, opened, digester)
        # Beside the permission of a term's writer, a bookie may hold permissions left by takeovers
        # that died.
        for term, writers in groupby(place.left_over(plan.writer[0]), itemgetter(0)):
            for _, token in writers:
                place.forget(term, token, with_journal=place.is_blank(term, token))
            place.unfence(term)
        place.forget(*plan.writer, with_journal=plan.is_empty)
        place.unfence(plan.writer[0])


@dataclass(frozen=True, slots=True)
class _Place:
    """A bookie's files of the ledger."""

    root: BookieRoot
    ledger: LedgerMetadata
    digester: Digester

    def left_over(self, before: int) -> Iterator[tuple[int, str]]:
        """Yield terms and tokens of writers whose permissions still exist, ascending.

        Args:
            before: only terms before this term.
        """
        folder = layout.terms_folder(self.ledger.ledger_id)
        writers = (layout.writer_of(name) for name in self.root.list(folder))
        yield from sorted(writer for writer in writers if writer and writer[0] < before)

    def is_blank(self, term: int, token: str) -> bool:
        """Return whether a journal surely holds only its header, and its term owns no entries."""
        ledger_id = self.ledger.ledger_id
        if is_owner(self.ledger.fragments, term):
            return False
        name = layout.journal(ledger_id, term, token)
        reader = JournalReader(self.root, name, self.digester, ledger_id=ledger_id)
        try:
            is_begun = all(head.record.is_header for head in reader.forwards(reader.head))
        except CorruptDataError:
            return False  # there is no journal
        return is_begun and not reader.is_blocked

    def forget(self, term: int, token: str, *, with_journal: bool) -> None:
        """Remove a writer's permission, after its journal and before the fence.

        So a client that looks for the fence, and then for the permission, always finds the fence or
        a loss (R20). The permission is needed until the journal is gone: it names the journal that
        may be there.
        """
        ledger_id = self.ledger.ledger_id
        if with_journal:
            self.root.forget_journal(layout.journal(ledger_id, term, token))
        self.root.delete(layout.permission(ledger_id, term, token))

    def unfence(self, term: int) -> None:
        """Remove the fence of a term, once no permission of the term is left."""
        self.root.delete(layout.term_marker(self.ledger.ledger_id, term + 1))
