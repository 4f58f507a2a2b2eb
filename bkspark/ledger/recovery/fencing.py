"""Instructions to one bookie: fence and read the end of its journals; look a record up.

Each is picklable and touches only its bookie, so Spark tasks can run it next to the data. A failing
bookie is a result, not an exception.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain

from bkspark.bookie.contract import BookieAddress, BookieRoot, about, told_of
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.log_messages import BadCopy, step_over
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookieUnavailableError, CorruptDataError
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.ledger.entry_log_reader import EntryLogFile
from bkspark.ledger.journals.journal_folder import find_journals
from bkspark.ledger.journals.journal_reader import StoredRecord
from bkspark.ledger.recovery.journal_tail import JournalTail, Since, newest_record, read_tail
from bkspark.ledger.recovery.writer import LastWriter
from bkspark.protocol.ledger import evidence
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, Fragment
from bkspark.protocol.ledger.ownership import owners
from bkspark.protocol.ledger.record import AddRecord, EntryLog, Piece, later
from bkspark.protocol.ledger.settings import DigestSpec
from bkspark.protocol.recovery.losses import not_shown
from bkspark.protocol.recovery.member_tail import MemberTail
from bkspark.protocol.recovery.steps import (
    Failure,
    RecordShown,
)
from bkspark.protocol.recovery.verdicts import Doubt, MemberAnswer

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
        with open_bookie(self.address).open_root() as root:
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
