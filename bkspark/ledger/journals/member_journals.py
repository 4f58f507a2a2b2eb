"""Reads one ledger's journals on one bookie: finds them by name and reads them by pages.

Only one task at a time uses an object. Every question opens the storage anew, so a wiped, swapped
or unmounted directory is noticed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeGuard, TypeVar

from bkspark.bookie.contract import BookieAddress, BookieRoot, told_of
from bkspark.bookie.uri import open_bookie
from bkspark.errors import CorruptDataError
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.ledger.journals.journal_end import JournalEnds
from bkspark.ledger.journals.journal_folder import find_journals, journals_of
from bkspark.ledger.journals.journal_pages import IndexEntry, JournalPage, JournalPages
from bkspark.ledger.journals.journal_reader import StoredRecord
from bkspark.ledger.journals.member_end import MemberEnd, member_end
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.ownership import owners
from bkspark.protocol.ledger.record import AddRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NamedPage:
    """A page and the name of its journal."""

    journal: str
    page: JournalPage


class MemberJournals:
    """The journals of ledger ``ledger_id`` on ``member``.

    Args:
        address: finds the member; raises ``BookieUnavailableError``.
        index: starting places in some of the journals, for a reader of a part of the ledger.
    """

    def __init__(
        self,
        member: Member,
        address: Callable[[Member], BookieAddress],
        digester: Digester,
        *,
        ledger_id: int,
        index: Iterable[IndexEntry] = (),
    ) -> None:
        self._member = member
        self._address = address
        self._digester = digester
        self._ledger_id = ledger_id
        self._starts = {entry.name: entry for entry in index}
        self._journals: dict[str, JournalPages] = {}
        self._ends = JournalEnds()
        self._problems: dict[str, str] = {}

    def end(self, ledger: LedgerMetadata) -> MemberEnd:
        """Return how far ``ledger`` may be read, by the journals of this bookie.

        Raises:
            BookieUnavailableError: the bookie gives no sure answer. All methods with questions
                raise it.
        """
        with self._asked() as root:
            return member_end(root, self._member, ledger, self._digester, self._ends)

    @property
    def problem(self) -> str:
        """Why the bookie may have had more than it showed at the last question; mostly empty."""
        return "; ".join(list(self._problems.values()))

    @property
    def progress(self) -> int:
        """Grows during a long question; other tasks may read it."""
        return sum(pages.progress for pages in list(self._journals.values()))

    def pages_of(
        self,
        ledger: LedgerMetadata,
        entry_id: int,
        refused: Sequence[AddRecord] = (),
        *,
        only_new: bool = False,
    ) -> list[NamedPage] | None:
        """Return the pages that hold ``entry_id`` if the bookie has the entry; None without a
        journal.

        If a known journal shows a counting record of the entry, new journals are not looked for.

        Args:
            refused: unwanted records, wherever they lie.
            only_new: skip known journals; for callers that have already seen their pages.
        """

        def is_enough(page: JournalPage) -> bool:
            stored = page.counting(ledger, entry_id)
            return _shows_all(stored) and stored.record not in refused

        with self._asked() as root:
            known = () if only_new else self._journals.values()
            pages = self._pages(root, known, ledger, entry_id, is_enough)
            if not any(found.page.counting(ledger, entry_id) for found in pages):
                new = self._find_journals(root, ledger)
                pages += self._pages(root, new, ledger, entry_id, is_enough)
        return pages if self._journals else None

    def first_after(self, ledger: LedgerMetadata, entry_id: int) -> int | None:
        """Return the first entry of the first group that begins after ``entry_id``."""
        with self._asked() as root:
            self._find_journals(root, ledger)
            found = self._each(
                self._journals.values(), lambda pages: pages.first_after(root, entry_id)
            )
        return min((first for _, first in found if first is not None), default=None)

    def index(self, ledger: LedgerMetadata, end: int) -> list[IndexEntry]:
        """Return where pages begin, up to entry ``end``."""
        with self._asked() as root:
            self._find_journals(root, ledger)
            self._each(self._journals.values(), lambda pages: pages.walk(root, end))
        return [entry for pages in self._journals.values() for entry in pages.index]

    def _pages(
        self,
        root: BookieRoot,
        journals: Iterable[JournalPages],
        ledger: LedgerMetadata,
        entry_id: int,
        is_enough: Callable[[JournalPage], bool],
    ) -> list[NamedPage]:
        """Return pages of the journals that may hold the entry; journals of older terms are
        skipped.

        The owner's journals come first. Journals of later terms hold copies; they are read only if
        the owner's journals do not show the whole record.
        """
        terms = owners(ledger.fragments, entry_id)
        likely = [pages for pages in journals if layout.journal_term(pages.name) >= terms.start]
        own = [pages for pages in likely if layout.journal_term(pages.name) in terms]
        found = self._pages_in(root, own, entry_id)
        if any(is_enough(named.page) for named in found):
            return found
        others = [pages for pages in likely if pages not in own]
        return found + self._pages_in(root, others, entry_id)

    def _pages_in(
        self, root: BookieRoot, journals: Iterable[JournalPages], entry_id: int
    ) -> list[NamedPage]:
        found = self._each(journals, lambda pages: pages.page_of(root, entry_id))
        return [NamedPage(name, page) for name, page in found if page is not None]

    def _each(
        self, journals: Iterable[JournalPages], ask: Callable[[JournalPages], T]
    ) -> list[tuple[str, T]]:
        """Ask each journal; return answers with the journals' names. Damage becomes a problem."""
        found = []
        for pages in journals:
            try:
                found.append((pages.name, ask(pages)))
            except CorruptDataError as error:
                self._problems[pages.name] = told_of(self._member.bookie_id, error.args[0])
        return found

    def _find_journals(self, root: BookieRoot, ledger: LedgerMetadata) -> list[JournalPages]:
        """Find the journals; return those not known yet."""
        known = journals_of(ledger, self._member)
        folder = find_journals(root, self._member.bookie_id, self._ledger_id, known)
        if folder.problem:
            self._problems[""] = folder.problem
        new = []
        for name in folder.names:
            if name not in self._journals:
                pages = JournalPages(
                    name, self._digester, ledger_id=self._ledger_id, start=self._starts.get(name)
                )
                self._journals[name] = pages
                new.append(pages)
        return new

    @contextmanager
    def _asked(self) -> Iterator[BookieRoot]:
        """Open the bookie for one question, and clear problems of earlier questions."""
        self._problems.clear()
        with open_bookie(self._address(self._member)).open_root() as root:
            yield root


def _shows_all(stored: StoredRecord | None) -> TypeGuard[StoredRecord]:
    """Return whether a record is here with all its parts, so that further copies add no data."""
    return stored is not None and len(stored.messages) == len(stored.record.parts)
