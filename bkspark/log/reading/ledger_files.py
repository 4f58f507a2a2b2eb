"""Read the files of a ledger on bookies: its readable end, its add records, its entry logs."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import TypeVar

from bkspark import progress
from bkspark.bookie.contract import BookieAddress, ReadableRoot, TellsGrowth
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.bookie_client import READ_SECONDS, BookieClient, close_all
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import FanOut, Timeouts
from bkspark.cluster.log_messages import BadCopy, leave_out, step_over
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookieUnavailableError, CorruptDataError, UnauthorizedError
from bkspark.format import layout
from bkspark.ledger.handles.how_far import (
    IsEnough,
    LastSeen,
    MemberAnswers,
    Readable,
    look,
)
from bkspark.ledger.journals.journal_pages import JournalEnds, JournalName, records_after
from bkspark.ledger.journals.journal_reader import (
    JournalGoneError,
    find_journals,
    journals_of,
)
from bkspark.ledger.journals.member_journals import MemberEnd, Taken, member_end
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.evidence import counts_in
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, Member, TimeStep
from bkspark.protocol.ledger.record import AddRecord, EntryLog, first_entry_of

logger = logging.getLogger(__name__)
T = TypeVar("T")


class OpenBookies:
    """The bookies of a cluster; each is opened on first use, and at most once.

    No bookie is waited for longer than the read timeout (``BookieClient``).

    Args:
        away: bookies known to be unusable, each with the reason.
    """

    def __init__(self, cluster: Cluster, away: Mapping[Member, str] | None = None) -> None:
        self._cluster = cluster
        self._channels: dict[Member, BookieClient] = {}
        self._away = dict(away or {})

    def __enter__(self) -> "OpenBookies":
        return self

    def __exit__(self, *_: object) -> None:
        close_all(self._channels.values())

    def root(self, member: Member) -> ReadableRoot:
        """Return the storage of ``member``.

        Raises:
            BookieUnavailableError: the bookie cannot be used, does not answer in time, or has
                become another bookie.
        """
        channel = self._channel(member)
        try:
            channel.open()
        except BookieUnavailableError:
            if not self._has_moved(member):
                raise
            channel = self._channel(member)
            channel.open()
        return channel.storage()

    def step_over(self, member: Member, ledger_id: int, problems: Sequence[str]) -> None:
        """Log why the journals of ``member`` were not enough, if there are ``problems``."""
        if problems:
            copy = BadCopy(self._cluster.cluster_id, member.bookie_id, f"ledger {ledger_id}")
            step_over(logger, copy, "; ".join(problems))

    def ask(
        self, members: Iterable[Member], question: Callable[[ReadableRoot, Member], T]
    ) -> dict[Member, T | BookieUnavailableError]:
        """Ask all ``members`` at once; return each answer, or the reason why a member gave none.

        Raises:
            Exception: any other error of a question.
        """

        def about(member: Member) -> T:
            return question(self._channels[member].root(), member)

        asked = list(members)
        self._cluster.addresses_of(asked, leave_out)  # all at once
        answers = self._asked_of(asked, about)
        silent = [m for m, answer in answers.items() if isinstance(answer, BookieUnavailableError)]
        moved = [member for member in silent if self._has_moved(member)]
        if moved:
            answers |= self._asked_of(moved, about)
        return answers

    def all_say(
        self, members: Sequence[Member], question: Callable[[TellsGrowth, Member], bool]
    ) -> bool:
        """Return whether all ``members`` say yes; their storage is not opened."""
        found = self._cluster.addresses_of(members, leave_out)
        bookies = {member: open_bookie(address) for member, address in found.items()}
        telling = {m: bookie for m, bookie in bookies.items() if isinstance(bookie, TellsGrowth)}
        if len(telling) < len(members):
            return False

        def about(member: Member) -> bool:
            return question(telling[member], member)

        answers = self._asked_of(members, about)
        return all(answer is True for answer in answers.values())

    def _asked_of(
        self, members: Iterable[Member], about: Callable[[Member], T]
    ) -> dict[Member, T | BookieUnavailableError]:
        fan_out = FanOut(self._channel, only_reads=True)
        return fan_out.ask(members, about, Timeouts(READ_SECONDS))

    def _has_moved(self, member: Member) -> bool:
        """Look up the place of a silent ``member`` again; return whether it is another place."""
        before = self._cluster.addresses_of([member], leave_out).get(member)
        now = self._cluster.addresses_of([member], leave_out, is_anew=True).get(member)
        channel = self._channels.get(member)
        if before is None or now is None or now == before or channel is None:
            return False
        channel.close()
        del self._channels[member]
        return True

    def located(self, window: Sequence[Member]) -> tuple[BookieAddress, ...]:
        """Return the addresses of the members of ``window``; failed members too, for reports."""
        return tuple(self._cluster.addresses_of(window, leave_out).values())

    def _channel(self, member: Member) -> BookieClient:
        channel = self._channels.get(member)
        if channel is None:
            channel = self._channels[member] = BookieClient(self._address(member))
        return channel

    def _address(self, member: Member) -> BookieAddress:
        if member in self._away:
            raise BookieUnavailableError(self._away[member])
        address = self._cluster.addresses_of([member], leave_out).get(member)
        if address is None:
            raise BookieUnavailableError(
                f"bookie {member.bookie_id} was initialised again and has lost its data, or "
                "its metadata record cannot be read"
            )
        return address


def readable(
    bookies: OpenBookies,
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    known: JournalEnds | None = None,
    *,
    enough: int | None = None,
    last_seen: LastSeen | None = None,
) -> Readable:
    """Find out how much of a ledger may be read now.

    Args:
        known: caches, between calls, how far each journal was read.
        enough: an entry id; the search may stop once this entry is known to be readable.
        last_seen: see ``how_far.look``.

    Raises:
        NoSuchLedgerError: the ledger does not exist, or no longer exists.
        BookieUnavailableError: the ledger is not closed, and too few members of its last fragment
            answer to know the readable end: unknown is never absent.
        UnauthorizedError: the password is missing or wrong.
    """
    ends = known or JournalEnds()

    def ask(ledger: LedgerMetadata, _is_enough: IsEnough) -> MemberAnswers:
        digester = make_digester(ledger.settings.digest, password)

        def question(root: ReadableRoot, member: Member) -> MemberEnd:
            return member_end(root, member, ledger, digester, ends)

        found = bookies.ask(Locations(ledger).last.members, question)
        silent = {m: str(e) for m, e in found.items() if isinstance(e, BookieUnavailableError)}
        heard = {m: e for m, e in found.items() if isinstance(e, MemberEnd)}
        return MemberAnswers(heard, silent)

    def note(answers: MemberAnswers) -> None:
        for member, why in answers.problems.items():
            bookies.step_over(member, ledger_id, [why])

    return look(cluster, ledger_id, ask, note, enough=enough, last_seen=last_seen)


def is_quiet(bookies: OpenBookies, ledger: LedgerMetadata, known: JournalEnds) -> bool:
    """Return whether no bookie tells of a record in the writer's journal that is not ``known``.

    It is no look: a bookie that was wiped is quiet, and so is a journal of copies.
    """
    name = Taken.of(ledger).journal

    def has_none(bookie: TellsGrowth, member: Member) -> bool:
        end = known.known_end(ledger.ledger_id, member, name)
        return end is not None and not bookie.may_have_grown(name, end)

    return bookies.all_say(Locations(ledger).last.members, has_none)


@dataclass(frozen=True, slots=True)
class PlacedLog:
    """A committed entry log.

    Attributes:
        first_entry_id: entry id of its first row.
        window: the members that should hold the file, in write order.
        times: when the entries of its record were committed.
    """

    entry_log: EntryLog
    first_entry_id: int
    window: tuple[Member, ...]
    times: tuple[TimeStep, ...]


RecordsAhead = Mapping[tuple[Member, int], Sequence[AddRecord]]
"""Records of the journals that are read first, by the bookie and the ledger id."""


def read_ahead(
    bookies: OpenBookies, wanted: Iterable[tuple[LedgerMetadata, int]], password: Password
) -> RecordsAhead:
    """Read the first journals of many ledgers, with one question for each bookie.

    Journals with any problem are left out: ``find_records`` reads them, and says why.

    Args:
        wanted: ledgers, each with the entry to begin at.
    """
    of_member: dict[Member, list[tuple[LedgerMetadata, int]]] = {}
    for ledger, begin in wanted:
        of_member.setdefault(Locations(ledger).newest_members[0], []).append((ledger, begin))

    def question(root: ReadableRoot, member: Member) -> dict[int, Sequence[AddRecord]]:
        found: dict[int, Sequence[AddRecord]] = {}
        for ledger, begin in of_member[member]:
            problems: list[str] = []
            with suppress(CorruptDataError, UnauthorizedError):
                digester = make_digester(ledger.settings.digest, password)
                source = JournalName(ledger.ledger_id, member, journal_name(ledger), digester)
                records = records_after(root, source, begin, problems)
                found |= {} if problems else {ledger.ledger_id: records}
            progress.made()
        return found

    return {
        (member, ledger_id): records
        for member, answer in bookies.ask(of_member, question).items()
        if not isinstance(answer, BookieUnavailableError)
        for ledger_id, records in answer.items()
    }


def find_records(
    bookies: OpenBookies,
    ledger: LedgerMetadata,
    password: Password,
    *,
    begin: int | None = None,
    end: int | None = None,
    ahead: RecordsAhead = MappingProxyType({}),
) -> Sequence[AddRecord]:
    """Return the add records that commit the entries ``[begin, end)``, in order and without a gap.

    The records come from as few journals as possible; several are needed if the ensemble changed or
    a recovery added a journal. Of a ledger with inline rows only the first record found is
    returned, which shows that the rows are inline and names no files.

    Args:
        begin: None for the first available entry of the ledger.
        end: None for the end of a closed ledger. If the ledger is not closed, the caller must have
            seen that all entries below ``end`` are confirmed.
        ahead: records read from ``begin`` on.

    Raises:
        NoSuchEntryError: the ledger no longer has ``begin``.
        CorruptDataError: no bookie gives some record.
        UnauthorizedError: the password is missing or wrong.
    """
    begin = ledger.first_available if begin is None else begin
    last = INVALID_ENTRY_ID if ledger.last_entry_id is None else ledger.last_entry_id
    stop = last + 1 if end is None else end
    if stop <= begin:
        return ()
    Locations(ledger).of_entry(begin)
    found: dict[int, AddRecord] = {}
    problems: list[str] = []
    journals = _journals(bookies, ledger, password, begin, problems)
    for records in chain(_known(ledger, ahead), journals):
        for record in records:
            if record.parts:
                return (record,)
            keep_owned(found, record, ledger)
        gapless = _chain(found, begin, stop)
        if gapless is not None:
            return gapless
    raise CorruptDataError(
        f"no bookie gives the add records of ledger {ledger.ledger_id}: "
        f"{'; '.join(problems) or 'some are in no journal'}",
        hint="bring back one of these bookies",
    )


def _known(ledger: LedgerMetadata, ahead: RecordsAhead) -> Iterator[Sequence[AddRecord]]:
    for member in Locations(ledger).newest_members:
        if (member, ledger.ledger_id) in ahead:
            yield ahead[member, ledger.ledger_id]


def _journals(
    bookies: OpenBookies,
    ledger: LedgerMetadata,
    password: Password,
    begin: int,
    problems: list[str],
) -> Iterator[Sequence[AddRecord]]:
    """Yield each journal's records from entry ``begin`` on; add read errors to ``problems``.

    A member that got its place when the ledger was closed has other journals than the one read
    first. If the member shows any journal, the absence of the first is not reported.
    """
    digester = make_digester(ledger.settings.digest, password)
    for member in Locations(ledger).newest_members:
        known = len(problems)
        absent: str | None = None
        shows_any = False
        try:
            root = bookies.root(member)
            for name in _journal_names(root, member, ledger, problems):
                source = JournalName(ledger.ledger_id, member, name, digester)
                try:
                    records = records_after(root, source, begin, problems)
                    shows_any = True
                    yield records
                except JournalGoneError as error:
                    problems.append(str(error))
                    absent = str(error)
                except CorruptDataError as error:
                    problems.append(str(error))
        except BookieUnavailableError as error:
            problems.append(str(error))
        finally:  # also if the caller has enough records and stops the iteration
            told = [p for p in problems[known:] if not (shows_any and p == absent)]
            bookies.step_over(member, ledger.ledger_id, told)


def _journal_names(
    root: ReadableRoot, member: Member, ledger: LedgerMetadata, problems: list[str]
) -> Iterator[str]:
    """Yield the ledger's journals on a bookie, the journal of its last writer or recovery first.

    The other journals are listed only if the first was not enough.
    """
    own = journal_name(ledger)
    yield own
    known = journals_of(ledger, member)
    found = find_journals(root, member.bookie_id, ledger.ledger_id, known)
    if found.problem:
        problems.append(found.problem)
    yield from (name for name in found.names if name != own)


def keep_owned(found: dict[int, AddRecord], record: AddRecord, ledger: LedgerMetadata) -> None:
    """Add ``record`` to ``found`` if it counts in ``ledger``; other records may share its id."""
    if is_owned(record, ledger):
        found[record.first_entry_id] = record


def is_owned(record: AddRecord, ledger: LedgerMetadata) -> bool:
    """Whether ``record`` is the record that counts for its entries."""
    is_by_a_writer = record.term != ledger.term or record.token == ledger.token
    is_one = (
        is_by_a_writer and record.quorum == sizes.of_records(ledger) and not record.is_confirmation
    )
    return is_one and counts_in(ledger, record)


def _chain(found: Mapping[int, AddRecord], begin: int, end: int) -> list[AddRecord] | None:
    """Return the records among ``found`` that cover ``[begin, end)``; None if there is a gap."""
    first = max((first for first in found if first <= begin), default=None)
    record = None if first is None else found[first]
    chain: list[AddRecord] = []
    while record is not None and record.last_entry_id >= begin:
        chain.append(record)
        if record.last_entry_id + 1 >= end:
            return chain
        record = found.get(record.last_entry_id + 1)
    return None


def stores_rows_inline(bookies: OpenBookies, ledger: LedgerMetadata, password: Password) -> bool:
    """Whether the ledger's rows are stored in its journals; decided by the first record found.

    False if no bookie gives a record now, so for an open ledger False may later become True.

    Raises:
        UnauthorizedError: the password is missing or wrong.
    """
    try:
        records = find_records(bookies, ledger, password, end=ledger.first_available + 1)
    except CorruptDataError:
        return False
    return any(record.parts for record in records)


def placed_logs(ledger: LedgerMetadata, records: Sequence[AddRecord]) -> Iterator[PlacedLog]:
    """Yield the entry logs that ``records`` name."""
    for record in records:
        location = Locations(ledger).of_entry(record.first_entry_id)
        for attempt in record.attempts:
            for log in attempt.entry_logs:
                window = location.holders(log.stripe)
                yield PlacedLog(log, first_entry_of(attempt, log), window, record.steps)


def journal_name(ledger: LedgerMetadata) -> str:
    """Return the name of the journal that holds the add records of a closed ledger."""
    return layout.journal(ledger.ledger_id, ledger.term, ledger.token)
