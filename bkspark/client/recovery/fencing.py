"""What a recovery does on one bookie: fence and read, look something up, and later write back.

All are picklable instructions that touch one bookie and nothing else, so that Spark tasks can
carry them out next to the data. They return what they found or why they could not; they do not
raise for a bookie that fails.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from secrets import token_hex

from bkspark.bookie.contract import BookieAddress, BookieRoot, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.client.copying import NoGoodSourceError, copy_entry_log
from bkspark.client.entry_log_file import EntryLogFile
from bkspark.client.password import Password, make_digester
from bkspark.client.post_check import post_check
from bkspark.client.recovery.journal_tail import StoredRecord, later, newest_record, read_tail
from bkspark.client.recovery.running import Beat, Failure, unheard
from bkspark.errors import BookieUnavailableError, CorruptDataError, LedgerFencedError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.protocol.ledger import FIRST_TERM, DigestSpec
from bkspark.protocol.losses import Span, not_shown
from bkspark.protocol.record import AddRecord, EntryLog
from bkspark.protocol.recovery import Doubt, MemberAnswer


@dataclass(frozen=True, slots=True)
class MemberTail:
    """What a fenced bookie has of the ledger's unconfirmed end.

    Attributes:
        parts: by first entry id of the record, the messages stored there by stripe.
        confirmed: the record that ends the confirmed entries, if this bookie has it.
        problem: why the answer is in doubt, in one line; empty if it is not.
        hidden: first and last entries that damage may hide here and that nothing else here shows;
            None as the last one where no good record follows.
    """

    answer: MemberAnswer
    parts: Mapping[int, Mapping[int, bytes]]
    last_add_confirmed: int
    confirmed: AddRecord | None
    problem: str = ""
    hidden: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class FenceAndRead:
    """Fence a ledger in ``term`` on one bookie, then read the end of its journals there.

    The order is the whole point: an absence that is seen before the fence is durable can still turn
    into an acknowledged entry (RB-01, reliability R16).

    Attributes:
        writer_term: of the ledger's last writer. A journal of a later term holds copies made by a
            recovery that did not close the ledger: whatever damage hides there, the writer never
            counted it, so what the writer's own journal lacks stays absent.
    """

    ledger_id: int
    term: int
    ensemble_index: int
    address: BookieAddress
    digest: DigestSpec
    password: Password
    after: int
    writer_term: int

    def run(self, beat: Beat = unheard) -> MemberTail | Failure:
        """Runs on: driver thread | executor."""
        digester = make_digester(self.digest, self.password)
        try:
            with open_bookie(self.address).open_root() as root:
                _fence(root, self.ledger_id, self.term)
                return self._read(root, digester, beat)
        except (BookieUnavailableError, CorruptDataError) as error:
            return Failure(str(error))

    def _read(self, root: BookieRoot, digester: Digester, beat: Beat = unheard) -> MemberTail:
        records: dict[int, tuple[AddRecord, frozenset[int]]] = {}
        parts: dict[int, Mapping[int, bytes]] = {}
        confirmed: AddRecord | None = None
        highest, doubt, problem = -1, None, ""
        hidden, shown = list[Span](), list[tuple[int, int]]()
        folder = layout.journal_folder(self.ledger_id)
        for name in root.list(folder):
            tail = read_tail(
                root,
                f"{folder}/{name}",
                digester,
                ledger_id=self.ledger_id,
                after=self.after,
                beat=beat,
            )
            term = layout.journal_term(name)
            # A writer of an earlier term laid the ledger down with all its records acknowledged, so
            # none that its torn end hides is in doubt.
            is_in_doubt = term == self.writer_term and tail.tail is not Tail.CLEAN
            if is_in_doubt and doubt is not Doubt.DAMAGED:
                doubt = _DOUBTS[tail.tail]
                where = f"journal {name} on bookie {self.address.bookie_id}"
                problem = f"{where} ends {tail.tail.value}"
            if term <= self.writer_term:
                hidden += tail.hidden
            shown += tail.shown
            highest = max(highest, tail.last_add_confirmed)
            confirmed = later(confirmed, tail.confirmed)
            for stored in tail.records:
                first = stored.record.first_entry_id
                good = self._good_stripes(root, stored, digester, beat)
                records[first] = (stored.record, good)
                parts[first] = stored.parts
        answer = MemberAnswer(records, doubt)
        left = tuple(not_shown(hidden, shown))
        return MemberTail(answer, parts, highest, confirmed, problem, left)

    def _good_stripes(
        self, root: BookieRoot, stored: StoredRecord, digester: Digester, beat: Beat
    ) -> frozenset[int]:
        """Stripes of which this bookie has every row of the record, checked."""
        if stored.record.parts:
            return frozenset(stored.parts)
        by_stripe: dict[int, bool] = {}
        for log in _entry_logs(stored.record):
            is_good = self._is_good(root, log, digester, beat)
            by_stripe[log.stripe] = by_stripe.get(log.stripe, True) and is_good
        return frozenset(stripe for stripe, is_good in by_stripe.items() if is_good)

    def _is_good(self, root: BookieRoot, log: EntryLog, digester: Digester, beat: Beat) -> bool:
        try:
            replica = EntryLogFile(root, log, digester, ledger_id=self.ledger_id)
            for block in replica.blocks:
                replica.block_bytes(block)
                beat()
        except CorruptDataError:
            return False
        return root.sync(replica.name)


@dataclass(frozen=True, slots=True)
class Shown:
    """The newest record that a bookie shows up to some entry; None if it shows none."""

    record: AddRecord | None


@dataclass(frozen=True, slots=True)
class LookUp:
    """Find the newest record that ends at ``entry_id`` or in front of it; changes nothing."""

    ledger_id: int
    address: BookieAddress
    digest: DigestSpec
    password: Password
    entry_id: int

    def run(self, beat: Beat = unheard) -> Shown | Failure:
        """Runs on: driver thread | executor."""
        digester = make_digester(self.digest, self.password)
        try:
            with open_bookie(self.address).open_root() as root:
                return Shown(newest_record(root, self.ledger_id, digester, self.entry_id, beat))
        except (BookieUnavailableError, CorruptDataError) as error:
            return Failure(str(error))


_DOUBTS = {Tail.INCOMPLETE: Doubt.TORN, Tail.CORRUPT: Doubt.DAMAGED}


@dataclass(frozen=True, slots=True)
class RecoveredGroup:
    """A group to write back: its record and all its inline parts, or where its entry logs are."""

    record: AddRecord
    parts: Mapping[int, bytes]
    sources: tuple[BookieAddress, ...]


@dataclass(frozen=True, slots=True)
class WrittenBack:
    """Every group given is durable on this bookie."""

    group_count: int


@dataclass(frozen=True, slots=True)
class Displaced:
    """Somebody has taken the ledger over from this recovery, in one line."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """No holder of an entry log gives it any more, in one line; the target is not to blame."""

    reason: str


@dataclass(frozen=True, slots=True)
class WriteBack:
    """Give one bookie its copies of the groups that a recovery keeps.

    Records keep their own term and LAC, byte for byte: a recovery's own LAC in them would let a
    reader see what the ledger may yet be closed below (reliability H8). They go to a journal of the
    recovery's own, so nothing is appended behind what somebody else wrote.

    Attributes:
        must_fence: whether the bookie has no markers of this term yet: it was silent before, or
            joins the ensemble only now. They come before anything else is written.
    """

    ledger_id: int
    term: int
    token: str
    ensemble_index: int
    address: BookieAddress
    digest: DigestSpec
    password: Password
    groups: tuple[RecoveredGroup, ...]
    must_fence: bool = False

    def run(self, beat: Beat = unheard) -> WrittenBack | Displaced | Unreadable | Failure:
        """Runs on: driver thread | executor."""
        digester = make_digester(self.digest, self.password)
        try:
            if self.must_fence:
                with open_bookie(self.address).open_root() as root:
                    _fence(root, self.ledger_id, self.term)
            for group in self.groups:
                self._copy_entry_logs(group, digester, beat)
            self._write_records(digester)
        except LedgerFencedError as error:
            return Displaced(str(error))
        except NoGoodSourceError as error:
            return Unreadable(str(error.args[0]))
        except (BookieUnavailableError, CorruptDataError) as error:
            return Failure(str(error))
        return WrittenBack(len(self.groups))

    def _copy_entry_logs(self, group: RecoveredGroup, digester: Digester, beat: Beat) -> None:
        for log in _entry_logs(group.record):
            if self.ensemble_index in group.record.quorum.write_set(log.stripe):
                self._copy(log, group.sources, digester, beat)

    def _copy(
        self, log: EntryLog, sources: Sequence[BookieAddress], digester: Digester, beat: Beat
    ) -> None:
        """Another attempt may have made the copy just now: the second look finds it in place."""
        copy = partial(
            copy_entry_log,
            log,
            sources,
            self.address,
            digester,
            ledger_id=self.ledger_id,
            beat=beat,
        )
        try:
            copy()
        except BookieUnavailableError:
            copy()

    def _write_records(self, digester: Digester) -> None:
        with open_bookie(self.address).open_root() as root:
            file = self._new_journal(root)
        try:
            for group in self.groups:
                encoded = journal.encode(group.record, digester, group.parts)
                file.append(encoded.frame(self.ensemble_index, file.end))
            # The copies count for the closing, so they pass what a writer's records pass (R6).
            post_check(self.address, file, ledger_id=self.ledger_id, term=self.term)
        finally:
            file.close()

    def _new_journal(self, root: BookieRoot) -> Journal:
        """A journal of this attempt alone.

        Spark may run an instruction twice, one after the other or both at once. Whoever comes
        second takes a name of its own (R3): the copies are the same, and each attempt answers for
        what it wrote.
        """
        try:
            return root.open_journal(layout.journal(self.ledger_id, self.term, self.token))
        except BookieUnavailableError:
            return root.open_journal(layout.journal(self.ledger_id, self.term, token_hex(16)))


def _fence(root: BookieRoot, ledger_id: int, term: int) -> None:
    """Create all markers up to ``term``, ascending and durable, also those found in place (H3)."""
    for number in range(FIRST_TERM, term + 1):
        root.put_new(layout.term_marker(ledger_id, number), b"")


def _entry_logs(record: AddRecord) -> Iterator[EntryLog]:
    for attempt in record.attempts:
        yield from attempt.entry_logs
