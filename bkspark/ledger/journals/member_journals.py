"""One ledger's journals on one bookie: reads them, and tells their end and their losses."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeGuard, TypeVar

from bkspark.bookie.contract import BookieAddress, BookieRoot, ReadableRoot, told_of
from bkspark.bookie.uri import open_bookie
from bkspark.errors import CorruptDataError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.ledger.journals.journal_pages import (
    IndexEntry,
    JournalEnd,
    JournalEnds,
    JournalName,
    JournalPage,
    JournalPages,
)
from bkspark.ledger.journals.journal_reader import StoredRecord, find_journals, journals_of
from bkspark.protocol.ledger import evidence
from bkspark.protocol.ledger.evidence import Stored, owners
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, Member
from bkspark.protocol.ledger.record import AddRecord

# --- member loss ---------------------------------------------------------------------------------
# Tells whether a member of a ledger's last fragment has lost data of the ledger.
#
# Rule. Before the metadata named the member, it took markers that no client makes again
# (``enlisting``). If a marker is gone, more may be gone. Then a missing entry on this member proves
# nothing, for ever, whatever copies a recovery has written there since (R18). An empty journal
# counts as a missing journal.


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


# --- member end ----------------------------------------------------------------------------------
# Finds how far a ledger may be read, by the journals of one bookie.


@dataclass(frozen=True, slots=True)
class MemberEnd:
    """The ends of a ledger's journals on one bookie.

    Attributes:
        ends: journal name -> end.
        problem: why the bookie may have had more than it shows, in one line; mostly empty.
    """

    ends: Mapping[str, JournalEnd] = field(default_factory=dict)
    problem: str = ""

    @property
    def last_record(self) -> AddRecord | None:
        """The last record with the highest LAC."""
        records = (end.record for end in self.ends.values() if end.record is not None)
        return max(records, key=lambda record: record.last_add_confirmed, default=None)

    @property
    def last_add_confirmed(self) -> int:
        """The highest LAC; -1 if no record has a LAC."""
        record = self.last_record
        return INVALID_ENTRY_ID if record is None else record.last_add_confirmed

    @property
    def reached(self) -> int:
        """The last entry of the newest record in the writer's own journal, -1 without a record.

        Other journals hold copies of the writer's records.
        """
        own = (
            end.record.last_entry_id
            for name, end in self.ends.items()
            if end.record is not None and name == _journal_of(end.record)
        )
        return max(own, default=INVALID_ENTRY_ID)

    def had(self, last_confirmed: int) -> Stored:
        """Return the last entries on the last fragment's members, as the last records here state
        them.

        Args:
            last_confirmed: the LAC at the time when the metadata named the members.
        """
        records = (end.record for end in self.ends.values() if end.record is not None)
        return evidence.stored(records, last_confirmed)

    def is_sure(self, before: "MemberEnd | None") -> bool:
        """Return whether the bookie surely had no more records, now or at the look ``before``.

        A journal may have bytes after its last record if the last record has moved on since
        ``before``: an append was running then.
        """
        return not self.problem and all(
            end.is_whole or (before is not None and _grew(before.ends.get(name), end))
            for name, end in self.ends.items()
        )


def _journal_of(record: AddRecord) -> str:
    return layout.journal(record.ledger_id, record.term, record.token)


def _grew(before: JournalEnd | None, now: JournalEnd) -> bool:
    return before is not None and before.end < now.end


def member_end(
    root: ReadableRoot,
    member: Member,
    ledger: LedgerMetadata,
    digester: Digester,
    known: JournalEnds,
) -> MemberEnd:
    """Return how far ``ledger`` may be read, by the journals of ``member`` of its last fragment.

    Journals of terms before that fragment's are skipped: the fragment's beginning says as much.

    Args:
        known: ends that were read before.

    Raises:
        BookieUnavailableError: the bookie gives no sure answer.
    """
    base = ledger.last_fragment.term
    known_names = journals_of(ledger, member)
    found = find_journals(root, member.bookie_id, ledger.ledger_id, known_names)
    problem = found.problem
    ends: dict[str, JournalEnd] = {}
    for name in found.names:
        if layout.journal_term(name) >= base:
            source = JournalName(ledger.ledger_id, member, name, digester)
            try:
                ends[name] = _believed(known.look(root, source), ledger)
            except CorruptDataError as error:
                problem = problem or told_of(member.bookie_id, error.args[0])
    if not problem:
        problem = _lost(root, member, ledger, ends)
    return MemberEnd(ends, problem)


def _believed(end: JournalEnd, ledger: LedgerMetadata) -> JournalEnd:
    """Return ``end``; raise if its record's term is not open yet in the metadata.

    A LAC counts only with metadata in which its term is open.
    """
    if end.record is not None and end.record.term > ledger.term:
        raise CorruptDataError(f"a record is of term {end.record.term}, which has not begun yet")
    return end


def _lost(
    root: ReadableRoot, member: Member, ledger: LedgerMetadata, ends: Mapping[str, JournalEnd]
) -> str:
    """Return why the bookie may have had more than it shows: a marker of its first step is missing.

    Records written there since by a recovery are copies, and do not show all former records. A
    remaining journal may have lost its end together with the marker (R18).
    """
    taken = Taken.of(ledger)
    own = ends.get(taken.journal)
    missing = taken.missing_in(root, is_begun=own is not None and own.record is not None)
    if not missing:
        return ""
    return (
        f"bookie {member.bookie_id} has lost data of ledger {ledger.ledger_id}: it lacks {missing}"
    )


# --- member journals -----------------------------------------------------------------------------
# Reads one ledger's journals on one bookie: finds them by name and reads them by pages.
#
# Only one task at a time uses an object. Every question opens the storage anew, so a wiped, swapped
# or unmounted directory is noticed.


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
