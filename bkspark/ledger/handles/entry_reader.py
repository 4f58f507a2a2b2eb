"""Reads the records of a ledger, with their rows, from any bookies with good copies.

A bounded amount of the read pages is kept, because readers mostly want the neighbours next. Damaged
and missing copies, absent bookies and bookies that hang are skipped, and noted with the reason
(BookKeeper's protocol, "Reading").
"""

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bkspark.bookie.contract import BookieAddress, told_of
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.fan_out import FanOut
from bkspark.cluster.log_messages import BadCopy, leave_out, step_over
from bkspark.cluster.records import StepOver
from bkspark.errors import BookieUnavailableError
from bkspark.format.digest import Digester
from bkspark.ledger.handles.how_far import IsEnough, MemberAnswers
from bkspark.ledger.handles.settings import USUAL_READS, ReaderSettings
from bkspark.ledger.journals.journal_pages import IndexEntry, JournalPage
from bkspark.ledger.journals.member_journals import MemberEnd, MemberJournals, NamedPage
from bkspark.metadata import freshness
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.record import AddRecord

logger = logging.getLogger(__name__)

CACHE_BYTES = 16 * 2**20
"""Most bytes of read pages that a reader keeps, but at least one page."""

CACHE_PAGES = 64


@dataclass(slots=True)
class RecordReplies:
    """The record with a given entry, and the messages of its parts found so far, by stripe.

    Attributes:
        ledger: decides which record counts, if several have the entry (``ownership``).
        refused: records with good digests but undecodable rows, made by no bkspark writer.
        header: of the record, as a bookie has it.
    """

    entry_id: int
    ledger: LedgerMetadata
    refused: Sequence[AddRecord] = ()
    record: AddRecord | None = None
    header: bytes = b""
    messages: dict[int, bytes] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return self.record is not None and len(self.messages) == len(self.record.parts)

    def take(self, page: JournalPage) -> None:
        """Add the parts on ``page``."""
        stored = page.counting(self.ledger, self.entry_id)
        if stored is None or stored.record in self.refused:
            return
        if self.record is None:
            self.record, self.header = stored.record, stored.header
        if stored.record == self.record:
            self.messages.update(stored.messages)


class Places(Protocol):
    """The addresses of a cluster's bookies: the part of ``Cluster`` that reading needs."""

    @property
    def cluster_id(self) -> str: ...

    def addresses_of(
        self, members: Iterable[Member], step_over: StepOver | None = None, /, *, is_anew: bool
    ) -> Mapping[Member, BookieAddress]: ...


class EntryReader:
    """Reads the records of one ledger.

    Args:
        index: where to begin in some journals, by member; for a reader of a part of the ledger.
        turn: with which of several equal bookies to begin, so that readers share the work.

    Attributes:
        faults: skipped bookies, each with the reason in one line.
    """

    def __init__(
        self,
        cluster: Places,
        ledger_id: int,
        digester: Digester,
        *,
        settings: ReaderSettings = USUAL_READS,
        index: Sequence[tuple[Member, IndexEntry]] = (),
        turn: int = 0,
    ) -> None:
        def journals_of(member: Member) -> MemberJournals:
            begin = [entry for owner, entry in index if owner == member]
            return MemberJournals(member, self._address, digester, ledger_id=ledger_id, index=begin)

        self.faults: dict[str, str] = {}
        self._cluster = cluster
        self._ledger_id = ledger_id
        self._settings = settings
        self._fan_out: FanOut[Member] = FanOut(
            lambda member: BookieClient(self._address(member)), self._progress, only_reads=True
        )
        self._turn = turn
        self._addresses: dict[Member, BookieAddress | None] = {}
        self._journals: dict[Member, MemberJournals] = {}
        self._journals_of = journals_of
        self._pages: deque[tuple[Member, JournalPage]] = deque()
        self._favourite: Member | None = None
        self._refused: list[AddRecord] = []

    def refresh_addresses(self) -> None:
        """Look the bookies up again when they are asked next."""
        self._addresses = {}

    def _look_up(self, members: Iterable[Member]) -> None:
        """Look up the members that this reader has not met: those of its ledger alone."""
        new = [member for member in members if member not in self._addresses]
        if new:
            with freshness.from_begin():
                found = self._cluster.addresses_of(new, leave_out, is_anew=True)
            self._addresses |= {member: found.get(member) for member in new}

    def ends(
        self, ledger: LedgerMetadata, is_enough: IsEnough, timeout: float | None = None
    ) -> MemberAnswers:
        """Ask the last fragment's members how far ``ledger`` may be read."""
        ends: dict[Member, MemberEnd] = {}

        def accept(member: Member, end: MemberEnd) -> bool:
            ends[member] = end
            return is_enough(ends)

        members = Locations(ledger).last.members
        self._look_up(members)
        self._fan_out.ask(
            members,
            lambda member: self._member(member).end(ledger),
            self._settings.all_at_once.at_most(timeout),
            is_usable=accept,
            enough=1,
        )
        self._note_faults()
        faults = self._fan_out.faults
        return MemberAnswers(ends, {m: faults[m] for m in members if m in faults and m not in ends})

    def note(self, answers: MemberAnswers) -> None:
        """Note the members whose answers about a ledger's end cannot be used."""
        for member, end in answers.ends.items():
            if end.problem:
                self.faults[member.bookie_id] = end.problem

    def find(self, ledger: LedgerMetadata, entry_id: int) -> RecordReplies:
        """Find the record with ``entry_id``, whole if the answering bookies have all parts."""
        replies = RecordReplies(entry_id, ledger, self._refused)
        asked_before = set()
        for member, page in self._pages:
            if page.counting(ledger, entry_id) is None:
                continue
            replies.take(page)
            if replies.is_whole:
                return replies
            asked_before.add(member)
        members = sorted(self._order(ledger, entry_id), key=asked_before.__contains__)
        showed = self._ask_for(replies, members)
        if showed and not replies.is_whole:
            self._ask_for(replies, showed, only_new=True)
        return replies

    def _ask_for(
        self, replies: RecordReplies, members: Sequence[Member], *, only_new: bool = False
    ) -> list[Member]:
        """Ask ``members`` until the record is whole; return members that showed a part.

        Args:
            only_new: whether they look only for journals that appeared since the last look.
        """
        self._look_up(members)
        ledger, entry_id, refused = replies.ledger, replies.entry_id, tuple(self._refused)
        showed: list[Member] = []

        def accept(member: Member, pages: list[NamedPage] | None) -> bool:
            self._look_at(ledger, member, pages)
            for found in pages or ():
                replies.take(found.page)
                self._keep(member, found.page)
            if any(found.page.counting(ledger, entry_id) for found in pages or ()):
                showed.append(member)
            else:
                self._note_problem(member)
            if replies.is_whole:
                self._favourite = member
            return replies.is_whole

        def question(member: Member) -> list[NamedPage] | None:
            journals = self._member(member)
            return journals.pages_of(ledger, entry_id, refused, only_new=only_new)

        self._fan_out.ask(members, question, self._settings.one_by_one, is_usable=accept, enough=1)
        self._note_faults()
        return showed

    def refuse(self, record: AddRecord, reason: str) -> None:
        """Skip ``record`` in every journal: other copies may hold the right rows."""
        self._refused.append(record)
        for member, page in self._pages:
            stored = page.record_of(record.first_entry_id)
            if stored is not None and stored.record == record:
                self._step_over(member, told_of(member.bookie_id, reason))

    def first_after(self, ledger: LedgerMetadata, entry_id: int) -> int | None:
        """Return the first entry of the next record of which an answering bookie has a part."""
        begin = Locations(ledger).next_begin(entry_id)
        found = [] if begin is None else [begin]
        members = self._order(ledger, entry_id)
        self._look_up(members)
        answers = self._fan_out.ask(
            members,
            lambda member: self._member(member).first_after(ledger, entry_id),
            self._settings.all_at_once,
        )
        self._note_faults()
        return min(found + [a for a in answers.values() if isinstance(a, int)], default=None)

    def index(self, ledger: LedgerMetadata, end: int) -> list[tuple[Member, IndexEntry]]:
        """Return where pages begin in the journals of all answering members, up to entry
        ``end``.
        """
        members = Locations(ledger).members
        self._look_up(members)
        answers = self._fan_out.ask(
            members,
            lambda member: self._member(member).index(ledger, end),
            self._settings.all_at_once,
        )
        return [
            (member, entry)
            for member, index in answers.items()
            if not isinstance(index, BookieUnavailableError)
            for entry in index
        ]

    def _order(self, ledger: LedgerMetadata, entry_id: int) -> list[Member]:
        """Order the bookies for an entry: its write set first, bookies with faults last."""
        ensemble = Locations(ledger).of_entry(entry_id).members
        holds_all = ledger.quorum.stripe_count == 1
        if holds_all and self._settings.is_sticky:
            start = (ledger.ledger_id + self._turn) % len(ensemble)
            order = [*ensemble[start:], *ensemble[:start]]
            order.sort(key=lambda member: member != self._favourite)
        else:
            start = entry_id % len(ensemble)
            order = [*ensemble[start:], *ensemble[:start]]
        return sorted(order, key=self._fan_out.faults.__contains__)

    def _member(self, member: Member) -> MemberJournals:
        if member not in self._journals:
            self._journals[member] = self._journals_of(member)
        return self._journals[member]

    def _progress(self, member: Member) -> int:
        return self._member(member).progress

    def _address(self, member: Member) -> BookieAddress:
        address = self._addresses.get(member)
        if address is None:
            raise BookieUnavailableError(
                f"bookie {member.bookie_id} was initialised again and has lost its data, or "
                "its metadata record cannot be read"
            )
        return address

    def _look_at(
        self, ledger: LedgerMetadata, member: Member, pages: Sequence[NamedPage] | None
    ) -> None:
        """Note problems of the pages from a bookie."""
        is_closed = ledger.state is LedgerState.CLOSED
        if pages is None and is_closed:
            self._step_over(member, f"bookie {member.bookie_id} has no journal of it")
        for found in pages or ():
            # An open ledger's journal may be read in the middle of an append.
            if found.page.problem and (is_closed or not found.page.is_cut):
                where = f"journal {found.journal} on bookie {member.bookie_id}"
                self._step_over(member, f"{where} {found.page.problem}")

    def _note_problem(self, member: Member) -> bool:
        """Return whether the bookie may have had more than it showed, and note the reason."""
        problem = self._member(member).problem
        if problem:
            self._step_over(member, problem)
        return bool(problem)

    def _note_faults(self) -> None:
        for member, reason in self._fan_out.faults.items():
            self._step_over(member, reason)

    def _step_over(self, member: Member, reason: str) -> None:
        self.faults[member.bookie_id] = reason
        ledger = f"ledger {self._ledger_id}"
        step_over(logger, BadCopy(self._cluster.cluster_id, member.bookie_id, ledger), reason)

    def _keep(self, member: Member, page: JournalPage) -> None:
        self._pages.appendleft((member, page))
        size = sum(kept.byte_count for _, kept in self._pages)
        while len(self._pages) > 1 and (size > CACHE_BYTES or len(self._pages) > CACHE_PAGES):
            size -= self._pages.pop()[1].byte_count
