"""Instructions to one bookie: fence and read the end of its journals; look a record up.

Each is picklable and touches only its bookie, so Spark tasks can run it next to the data. A failing
bookie is a result, not an exception.
"""

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain

from bkspark.bookie.contract import BookieAddress, BookieRoot, about, confirmed_at_end, told_of
from bkspark.bookie.uri import open_bookie, root_of
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.log_messages import BadCopy, step_over
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookieUnavailableError, CorruptDataError
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.ledger.entry_log_reader import EntryLogFile
from bkspark.ledger.journals.journal_reader import JournalReader, StoredRecord, find_journals
from bkspark.ledger.journals.member_journals import Taken
from bkspark.protocol.ledger import evidence
from bkspark.protocol.ledger.evidence import Stored, counts, owners
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, DigestSpec, Fragment, LedgerMetadata
from bkspark.protocol.ledger.record import AddRecord, EntryLog, Piece, later
from bkspark.protocol.recovery.steps import (
    Failure,
    RecordShown,
)
from bkspark.protocol.recovery.verdicts import Doubt, MemberAnswer, MemberTail, not_shown

# --- writer --------------------------------------------------------------------------------------
# Describes the writer to fence, and the markers on each bookie of its ledger.


@dataclass(frozen=True, slots=True)
class LastWriter:
    """The last writer of a ledger; a recovery fences the writer before looking for records.

    Only the last writer can still be writing, so one marker fences all, after any number of
    recoveries (R20).

    Attributes:
        fence: the marker that fences the writer.
        taken: markers on each member for this writer, taken before the metadata named the member.
    """

    term: int
    fence: str
    taken: Taken

    @classmethod
    def of(cls, ledger: LedgerMetadata) -> "LastWriter":
        """Return the writer of the ledger's last fragment."""
        ledger_id, fragment = ledger.ledger_id, ledger.last_fragment
        fence = layout.term_marker(ledger_id, fragment.term + 1)
        return cls(fragment.term, fence, Taken.of(ledger))


# --- journal tail --------------------------------------------------------------------------------
# Reads the end of a journal, backwards: enough for a recovery, however long the journal is.
#
# The way back goes from trailer to trailer. At a damaged trailer, the usual trace of a killed
# writer, the search continues at the last frame before with a visible prefix. An application's data
# could imitate a frame, and a crash could leave such bytes at the end of a journal. But records of
# a journal name their writer's random token, so only records with the token lead the way. A journal
# made by a recovery holds records of other writers, and is read from its start.
#
# Frames found after damage count like other frames: their digests bind them to their place. The
# entries before and after damage tell which entries it hides.


IN_FLIGHT_BYTES_MAX = 2**31 + 64 * 2**20
"""Most bytes of unconfirmed rows: a writer's limit, plus one group of the largest size."""

MET_BYTES_MAX = 2**20
"""Bytes of records kept on the way back for the way forwards."""


@dataclass(frozen=True, slots=True)
class Since:
    """Which records of a ledger a recovery asks for: those after the entries already settled.

    Attributes:
        after: the last entry before the last fragment.
        last_confirmed: the last entry acknowledged when the metadata named the last fragment.
        is_fully_replicated: whether to ask for acknowledged entries too, until they are known to be
            fully replicated.
    """

    after: int
    last_confirmed: int
    is_fully_replicated: bool = False

    def said_by(self, record: AddRecord) -> int:
        """Return the last settled entry according to ``record``."""
        if self.is_fully_replicated:
            return max(self.after, record.last_add_fully_replicated)
        return max(self.after, record.last_add_confirmed)


@dataclass(frozen=True, slots=True)
class JournalTail:
    """The last records of a journal, oldest first.

    Attributes:
        tail: how the journal ends after them.
        records: that commit entries.
        last_add_fully_replicated: according to the records read, if asked for; -1 otherwise.
        last_add_confirmed: the highest LAC among the records read, also after damage (R14); -1
            without records.
        confirmed: the last record read whose entries are all confirmed. A confirmation also has the
            length and the transactions up to there.
        shown: first and last entries of the good records read.
        hidden: first and last entries that damaged records may have held; the last is None if no
            good record follows.
        reached: the last entry of the newest good record by the journal's own writer; -1 without
            one, as in a recovery's journal of copies.
        had: last entries on the ensemble's members, as stated by the good records read.
        has_records: whether there is a good record of any kind, also a header or a confirmation.
        rest_bytes: bytes after the last record reachable from the start.
    """

    records: tuple[StoredRecord, ...]
    tail: Tail
    last_add_confirmed: int
    confirmed: AddRecord | None
    shown: tuple[tuple[int, int], ...] = ()
    hidden: tuple[tuple[int, int | None], ...] = ()
    reached: int = INVALID_ENTRY_ID
    had: Stored = field(default_factory=dict)
    has_records: bool = False
    rest_bytes: int = 0
    last_add_fully_replicated: int = INVALID_ENTRY_ID


def read_tail(
    root: BookieRoot,
    name: str,
    digester: Digester,
    *,
    ledger_id: int,
    fragments: Sequence[Fragment],
    since: Since,
    beat: Heartbeat = no_heartbeat,
) -> JournalTail:
    """Return the records of journal ``name`` that ``since`` asks for.

    Records that do not count in the ledger are left out, after they have helped to tell what damage
    may hide.

    Args:
        fragments: of the ledger.
        beat: called after each piece read.

    Raises:
        CorruptDataError: the journal is gone.
        BookieUnavailableError: the bookie gives no sure answer.
    """
    reader = JournalReader(root, name, digester, ledger_id=ledger_id, beat=beat)
    begin, met = _begin_of_tail(reader, since)

    def read(at: int) -> StoredRecord | None:
        return met.pop(at, None) or reader.stored(at)

    found = _without_old_rows(reader.forwards(read, begin), since)
    tail, damage = reader.tail(reach=reader.size), reader.end
    hidden: tuple[tuple[int, int | None], ...] = ()
    if tail is not Tail.CLEAN:
        before = max((stored.record.last_entry_id for stored in found), default=INVALID_ENTRY_ID)
        again = (read(at) for at in sorted(met) if at > damage)
        behind = [stored for stored in again if stored is not None]
        hidden = _hidden(before + 1, damage, behind, reader.size)
        found += behind
    found = [stored for stored in found if counts(fragments, stored.record)]
    summed_up = _summed_up(found, since)
    own = (stored.record for stored in found if reader.is_by_its_writer(stored.record))
    return replace(
        summed_up,
        tail=tail,
        hidden=hidden,
        reached=max((record.last_entry_id for record in own), default=INVALID_ENTRY_ID),
        rest_bytes=reader.size - damage,
    )


def _summed_up(found: Sequence[StoredRecord], since: Since) -> JournalTail:
    """Summarise good records, as of a journal that ends well."""
    confirmed = max((stored.record.last_add_confirmed for stored in found), default=-1)
    floor = max((since.said_by(stored.record) for stored in found), default=since.after)
    committing = [stored for stored in found if not stored.record.is_confirmation]
    done = [stored.record for stored in found if stored.record.last_entry_id <= floor]
    return JournalTail(
        tuple(stored for stored in committing if stored.record.first_entry_id > floor),
        Tail.CLEAN,
        confirmed,
        done[-1] if done else None,
        tuple((one.record.first_entry_id, one.record.last_entry_id) for one in committing),
        had=evidence.stored((stored.record for stored in found), since.last_confirmed),
        has_records=bool(found),
        last_add_fully_replicated=floor if since.is_fully_replicated else INVALID_ENTRY_ID,
    )


def newest_record(
    root: BookieRoot,
    name: str,
    digester: Digester,
    *,
    ledger_id: int,
    fragments: Sequence[Fragment],
    entry_id: int,
    beat: Heartbeat = no_heartbeat,
) -> AddRecord | None:
    """Return the last record of journal ``name`` that ends at or before ``entry_id``; None without
    one.

    Args:
        fragments: of the ledger; they decide whether a record counts.

    Raises:
        As ``read_tail``.
    """
    reader = JournalReader(root, name, digester, ledger_id=ledger_id, beat=beat)
    back = reader.backwards(reader.stored, past_damage=True)
    begin = next(
        (
            found.begin
            for found in back
            if found.record.last_entry_id <= entry_id and counts(fragments, found.record)
        ),
        0,
    )
    newest: AddRecord | None = None
    for stored in reader.forwards(reader.stored, begin):
        record = stored.record
        is_in_front = record.last_entry_id <= entry_id and not record.is_header
        if is_in_front and counts(fragments, record):
            newest = later(newest, record)
    return newest


def _begin_of_tail(
    reader: JournalReader, since: Since
) -> tuple[int, dict[int, StoredRecord | None]]:
    """Return where to begin reading: at a frame with only settled entries, or at the start.

    Also return the good records met from there on, by their beginnings. None stands for records to
    be read again, because so many rows are not kept.
    """
    seen, left, met = since.after, MET_BYTES_MAX, dict[int, StoredRecord | None]()
    for found in reader.backwards(reader.stored, past_damage=True):
        seen = max(seen, since.said_by(found.record))
        left -= found.end - found.begin
        met[found.begin] = found if left >= 0 else None
        if found.record.last_entry_id <= seen:
            return found.begin, met
    return 0, met


def _without_old_rows(records: Iterable[StoredRecord], since: Since) -> list[StoredRecord]:
    """Return ``records``, without the rows of settled entries.

    So memory holds only rows in flight when the writer ended, however long the journal is.

    Raises:
        CorruptDataError: more bytes than any writer has in flight.
    """
    found: list[StoredRecord] = []
    floor, kept, byte_count = since.after, deque[int](), 0
    for stored in records:
        floor = max(floor, since.said_by(stored.record))
        kept.append(len(found))
        found.append(stored)
        byte_count += stored.byte_count
        while kept and found[kept[0]].record.first_entry_id <= floor:
            old = kept.popleft()
            byte_count -= found[old].byte_count
            found[old] = replace(found[old], messages={})
        if byte_count > IN_FLIGHT_BYTES_MAX:
            raise CorruptDataError(f"more than {IN_FLIGHT_BYTES_MAX} bytes of rows are unconfirmed")
    return found


def _hidden(
    entry_id: int, damage: int, behind: Sequence[StoredRecord], size: int
) -> tuple[tuple[int, int | None], ...]:
    """Return the entries that damage may hide: those between the records on both sides.

    A journal's entries ascend, so their ids tell. A confirmation has no entries.

    Args:
        entry_id: the first entry that damage may hide.
        damage: where damage begins.
        size: of the journal.
    """
    found: list[tuple[int, int | None]] = []
    end, is_damaged = damage, False
    for stored in behind:
        is_damaged = is_damaged or stored.begin > end
        end, record = stored.end, stored.record
        if record.is_confirmation:
            continue
        if is_damaged and record.first_entry_id > entry_id:
            found.append((entry_id, record.first_entry_id - 1))
        entry_id, is_damaged = record.last_entry_id + 1, False
    if is_damaged or end < size:
        found.append((entry_id, None))
    return tuple(found)


# --- fencing -------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FenceAndRead:
    """Fence a ledger's writer on one bookie, then read the end of the journals there.

    The order is essential: an absence seen before the fence is durable can still turn into an
    acknowledged entry (RB-01, R16). After all reading, the instruction looks for the markers that
    the bookie took before the metadata named the bookie. Markers present then were present during
    the reading, so no data was lost in between (R18).

    Attributes:
        writer: the writer to fence. A journal of a later term holds copies made by a recovery that
            did not close the ledger. The writer never counted such copies, so damage there does not
            put entries missing from the writer's own journal in doubt.
        fragments: of the ledger; they decide which records count.
        journals: journal names known from the metadata.
    """

    ledger_id: int
    writer: LastWriter
    ensemble_index: int
    address: BookieAddress
    digest: DigestSpec
    password: Password
    since: Since
    fragments: tuple[Fragment, ...]
    journals: tuple[str, ...] = ()

    def run(self, beat: Heartbeat = no_heartbeat) -> MemberTail | Failure:
        """Runs on: driver thread | executor."""
        digester = make_digester(self.digest, self.password)
        try:
            with open_bookie(self.address).open_root() as root:
                unfenced = self._fence(root)
                with confirmed_at_end(root):
                    tail = self._read(root, digester, beat)
            return tail.doubted(Doubt.UNFENCED, unfenced) if unfenced else self._judged(tail)
        except (BookieUnavailableError, CorruptDataError) as error:
            return Failure(str(error))

    def _fence(self, root: BookieRoot) -> str:
        """Fence the writer; return why the fence failed, in one line, or an empty text.

        A bookie that refuses writes may still be readable (H38).
        """
        try:
            root.put_new(self.writer.fence, b"")
        except BookieUnavailableError as error:
            bookie_name = f"bookie {self.address.bookie_id}"
            return f"{bookie_name} cannot be fenced: {about(bookie_name, error.args[0])}"
        return ""

    def _judged(self, tail: MemberTail) -> MemberTail:
        """Return ``tail``, marked as lost data if a new look finds a marker missing."""
        if tail.answer.doubt is Doubt.UNCLEAR:
            return tail
        with root_of(self.address, is_found=True) as root:  # after its reads
            missing = self.writer.taken.missing_in(root, is_begun=tail.is_begun)
        if not missing:
            return tail
        return tail.without(
            self.since.after + 1,
            f"bookie {self.address.bookie_id} has lost data of ledger {self.ledger_id}: it lacks "
            f"{missing}",
        )

    def _read(
        self, root: BookieRoot, digester: Digester, beat: Heartbeat = no_heartbeat
    ) -> MemberTail:
        found = find_journals(root, self.address.bookie_id, self.ledger_id, self.journals)
        unclear = [found.problem] if found.problem else []
        tails: dict[str, JournalTail] = {}
        records: dict[int, tuple[AddRecord, frozenset[Piece]]] = {}
        for name in filter(self._matters, found.names):
            try:
                tails[name] = read_tail(
                    root,
                    name,
                    digester,
                    ledger_id=self.ledger_id,
                    fragments=self.fragments,
                    since=self.since,
                    beat=beat,
                )
            except CorruptDataError as error:
                unclear.append(told_of(self.address.bookie_id, error.args[0]))
                continue
            for stored in tails[name].records:
                good = self._good_pieces(root, stored, digester, beat)
                records[stored.record.first_entry_id] = (stored.record, good)
        doubt, problem = self._doubt(tails, unclear)
        return self._together(tails, MemberAnswer(records, doubt), problem)

    def _matters(self, name: str) -> bool:
        """Return whether a journal may hold records of the last fragment.

        If fragments name their owners, journals of earlier terms hold none. So the cost does not
        grow with the number of earlier writers.
        """
        is_owned = self.fragments[-1].owner > 0
        return not is_owned or layout.journal_term(name) >= self.writer.term

    def _doubt(
        self, tails: Mapping[str, JournalTail], unclear: Sequence[str]
    ) -> tuple[Doubt | None, str]:
        """Return why records not shown may still exist on the bookie, with the reason in one
        line.
        """
        doubt, problem = None, ""
        for name, tail in tails.items():
            # All records of an earlier term's writer are decided: the writer had ended properly
            # (versions without owners), or was recovered. So a torn end of its journal puts no
            # record in doubt.
            term = layout.journal_term(name)
            is_in_doubt = term == self.writer.term and tail.tail is not Tail.CLEAN
            if is_in_doubt and doubt is not Doubt.DAMAGED:
                doubt = _DOUBTS[tail.tail]
                where = f"journal {name.rpartition('/')[2]} on bookie {self.address.bookie_id}"
                problem = f"{where} ends {tail.tail.value} ({tail.rest_bytes:,} bytes)"
        if unclear:
            return Doubt.UNCLEAR, "; ".join([*unclear, *([problem] if problem else [])])
        return doubt, problem

    def _together(
        self, tails: Mapping[str, JournalTail], answer: MemberAnswer, problem: str
    ) -> MemberTail:
        """Combine the results of all journals."""
        each = tails.values()
        own = [name for name in tails if layout.journal_term(name) <= self.writer.term]
        hidden = chain.from_iterable(tails[name].hidden for name in own)
        begun = tails.get(self.writer.taken.journal)
        stored = chain.from_iterable(tail.records for tail in each)
        return MemberTail(
            answer,
            {one.record.first_entry_id: one.messages for one in stored},
            max((tail.last_add_confirmed for tail in each), default=INVALID_ENTRY_ID),
            reduce(later, (tail.confirmed for tail in each), None),
            problem,
            tuple(not_shown(hidden, chain.from_iterable(tail.shown for tail in each))),
            reached=max((tail.reached for tail in each), default=INVALID_ENTRY_ID),
            had=evidence.together(tail.had for tail in each),
            is_begun=begun is not None and begun.has_records,
            last_add_fully_replicated=max(
                (tail.last_add_fully_replicated for tail in each), default=INVALID_ENTRY_ID
            ),
        )

    def _good_pieces(
        self, root: BookieRoot, stored: StoredRecord, digester: Digester, beat: Heartbeat
    ) -> frozenset[Piece]:
        """Return which of the record's rows this bookie has, with every byte checked."""
        logs = stored.record.entry_logs
        good = [log for log in logs if self._is_good(root, log, digester, beat)]
        inline = (("", stripe) for stripe in stored.messages)
        return frozenset([*inline, *((log.attempt_id, log.stripe) for log in good)])

    def _is_good(
        self, root: BookieRoot, log: EntryLog, digester: Digester, beat: Heartbeat
    ) -> bool:
        try:
            replica = EntryLogFile(root, log, digester, ledger_id=self.ledger_id)
            for block in replica.blocks:
                replica.block_bytes(block)
                beat()
        except CorruptDataError as error:
            what = f"entry log {log.attempt_id}-{log.stripe}"
            copy = BadCopy(self.address.cluster_id, self.address.bookie_id, what)
            step_over(logger, copy, str(error.args[0]))
            return False
        return root.sync(replica.name)


@dataclass(frozen=True, slots=True)
class FindRecord:
    """Find the newest record that ends at or before ``entry_id``; changes nothing.

    Attributes:
        fragments: of the ledger; they decide which records count.
        journals: journal names known from the metadata.
    """

    ledger_id: int
    address: BookieAddress
    digest: DigestSpec
    password: Password
    entry_id: int
    fragments: tuple[Fragment, ...]
    journals: tuple[str, ...] = ()

    def run(self, beat: Heartbeat = no_heartbeat) -> RecordShown | Failure:
        """Runs on: driver thread | executor."""
        digester = make_digester(self.digest, self.password)
        try:
            with open_bookie(self.address).open_root() as root:
                return self._shown(root, digester, beat)
        except (BookieUnavailableError, CorruptDataError) as error:
            return Failure(str(error))

    def _shown(self, root: BookieRoot, digester: Digester, beat: Heartbeat) -> RecordShown:
        found = find_journals(root, self.address.bookie_id, self.ledger_id, self.journals)
        newest: AddRecord | None = None
        problems = [found.problem] if found.problem else []
        for name in self._likely_first(found.names):
            try:
                record = newest_record(
                    root,
                    name,
                    digester,
                    ledger_id=self.ledger_id,
                    fragments=self.fragments,
                    entry_id=self.entry_id,
                    beat=beat,
                )
                newest = later(newest, record)
            except CorruptDataError as error:
                problems.append(told_of(self.address.bookie_id, error.args[0]))
            if newest is not None and newest.last_entry_id == self.entry_id:
                return RecordShown(newest)  # no other journal can have a newer record
        return RecordShown(newest, "; ".join(problems))

    def _likely_first(self, names: Sequence[str]) -> list[str]:
        """Return the journals of the term that owns the entry, then the rest."""
        terms = owners(self.fragments, self.entry_id)
        return sorted(names, key=lambda name: layout.journal_term(name) not in terms)


_DOUBTS = {Tail.INCOMPLETE: Doubt.TORN, Tail.CORRUPT: Doubt.DAMAGED}
