"""What a recovery does on one bookie: fence and read, look something up, and later write back.

All are picklable instructions that touch one bookie and nothing else, so that Spark tasks can
carry them out next to the data. They return what they found or why they could not; they do not
raise for a bookie that fails.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bkspark.bookie.contract import BookieAddress, BookieRoot, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.stepping_over import BadCopy, step_over
from bkspark.errors import BookieUnavailableError, CorruptDataError, LedgerFencedError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import EncodedRecord, Tail
from bkspark.ledger.copying import (
    DamagedInPlaceError,
    entry_logs_of,
    have_entry_log,
    new_journal,
)
from bkspark.ledger.entry_log_reader import EntryLogFile, NoGoodSourceError
from bkspark.ledger.journals.journal_folder import find_journals
from bkspark.ledger.journals.journal_reader import StoredRecord
from bkspark.ledger.recovery.journal_tail import newest_record, read_tail
from bkspark.ledger.recovery.writer import Writer
from bkspark.protocol.ledger import evidence
from bkspark.protocol.ledger.losses import Span, not_shown
from bkspark.protocol.ledger.member_tail import MemberTail
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, DigestSpec, Member
from bkspark.protocol.ledger.record import AddRecord, EntryLog, Piece, later
from bkspark.protocol.ledger.recovery import Doubt, MemberAnswer
from bkspark.protocol.ledger.recovery_steps import (
    Displaced,
    Failure,
    KeptGroup,
    Shown,
    Unreadable,
    WrittenBack,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FenceAndRead:
    """Fence a ledger's writer on one bookie, then read the end of the journals there.

    The order is the whole point: an absence that is seen before the fence is durable can still turn
    into an acknowledged entry (RB-01, R16). And only behind all that is read is looked
    for what the bookie took before the metadata named it: what is there then was there while the
    rest was looked for, so nothing was lost in between (R18).

    Attributes:
        writer: whom to fence. A journal of a later term holds copies made by a recovery that did
            not close the ledger: whatever damage hides there, the writer never counted it, so what
            the writer's own journal lacks stays absent.
        journals: those that the metadata tells by their names.
    """

    ledger_id: int
    writer: Writer
    ensemble_index: int
    address: BookieAddress
    digest: DigestSpec
    password: Password
    after: int
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
        """Why the writer could not be fenced, in one line; empty if it was.

        A bookie that cannot be written to may be readable all the same (H38).
        """
        try:
            root.put_new(self.writer.fence, b"")
        except BookieUnavailableError as error:
            return f"bookie {self.address.bookie_id} cannot be fenced: {error.args[0]}"
        return ""

    def _judged(self, tail: MemberTail) -> MemberTail:
        """``tail``, and whether the bookie has lost data of the ledger; looked up anew."""
        if tail.answer.doubt is Doubt.UNCLEAR:
            return tail
        with open_bookie(self.address).open_root() as root:
            missing = self.writer.taken.missing_in(root, is_begun=tail.is_begun)
        if not missing:
            return tail
        return tail.without(
            self.after + 1,
            f"bookie {self.address.bookie_id} has lost data of ledger {self.ledger_id}: it lacks "
            f"{missing}",
        )

    def _read(
        self, root: BookieRoot, digester: Digester, beat: Heartbeat = no_heartbeat
    ) -> MemberTail:
        records: dict[int, tuple[AddRecord, frozenset[Piece]]] = {}
        parts: dict[int, Mapping[int, bytes]] = {}
        confirmed: AddRecord | None = None
        highest, doubt, problem = -1, None, ""
        reached, had = INVALID_ENTRY_ID, list[evidence.Stored]()
        hidden, shown = list[Span](), list[tuple[int, int]]()
        is_begun = False
        found = find_journals(root, self.address.bookie_id, self.ledger_id, self.journals)
        unclear = [found.problem] if found.problem else []
        for name in found.names:
            try:
                tail = read_tail(
                    root, name, digester, ledger_id=self.ledger_id, after=self.after, beat=beat
                )
            except CorruptDataError as error:
                unclear.append(f"bookie {self.address.bookie_id}: {error.args[0]}")
                continue
            last_part = name.rpartition("/")[2]
            term = layout.journal_term(last_part)
            # A writer of an earlier term laid the ledger down with all its records acknowledged, so
            # none that its torn end hides is in doubt.
            is_in_doubt = term == self.writer.term and tail.tail is not Tail.CLEAN
            if is_in_doubt and doubt is not Doubt.DAMAGED:
                doubt = _DOUBTS[tail.tail]
                where = f"journal {last_part} on bookie {self.address.bookie_id}"
                problem = f"{where} ends {tail.tail.value}"
            if term <= self.writer.term:
                hidden += tail.hidden
            shown += tail.shown
            had.append(tail.had)
            is_begun = is_begun or (tail.has_records and name == self.writer.taken.journal)
            reached = max(reached, tail.reached)
            highest = max(highest, tail.last_add_confirmed)
            confirmed = later(confirmed, tail.confirmed)
            for stored in tail.records:
                first = stored.record.first_entry_id
                good = self._good_pieces(root, stored, digester, beat)
                records[first] = (stored.record, good)
                parts[first] = stored.messages
        if unclear:
            doubt, problem = Doubt.UNCLEAR, "; ".join([*unclear, *([problem] if problem else [])])
        answer = MemberAnswer(records, doubt)
        left = tuple(not_shown(hidden, shown))
        return MemberTail(
            answer,
            parts,
            highest,
            confirmed,
            problem,
            left,
            reached=reached,
            had=evidence.together(had),
            is_begun=is_begun,
        )

    def _good_pieces(
        self, root: BookieRoot, stored: StoredRecord, digester: Digester, beat: Heartbeat
    ) -> frozenset[Piece]:
        """What this bookie has of the record's rows, every byte checked."""
        logs = entry_logs_of(stored.record)
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
class LookUp:
    """Find the newest record that ends at ``entry_id`` or in front of it; changes nothing.

    Attributes:
        journals: those that the metadata tells by their names.
    """

    ledger_id: int
    address: BookieAddress
    digest: DigestSpec
    password: Password
    entry_id: int
    journals: tuple[str, ...] = ()

    def run(self, beat: Heartbeat = no_heartbeat) -> Shown | Failure:
        """Runs on: driver thread | executor."""
        digester = make_digester(self.digest, self.password)
        try:
            with open_bookie(self.address).open_root() as root:
                return self._shown(root, digester, beat)
        except (BookieUnavailableError, CorruptDataError) as error:
            return Failure(str(error))

    def _shown(self, root: BookieRoot, digester: Digester, beat: Heartbeat) -> Shown:
        found = find_journals(root, self.address.bookie_id, self.ledger_id, self.journals)
        newest: AddRecord | None = None
        problems = [found.problem] if found.problem else []
        for name in found.names:
            try:
                record = newest_record(
                    root,
                    name,
                    digester,
                    ledger_id=self.ledger_id,
                    entry_id=self.entry_id,
                    beat=beat,
                )
                newest = later(newest, record)
            except CorruptDataError as error:
                problems.append(f"bookie {self.address.bookie_id}: {error.args[0]}")
        return Shown(newest, "; ".join(problems))


_DOUBTS = {Tail.INCOMPLETE: Doubt.TORN, Tail.CORRUPT: Doubt.DAMAGED}


@dataclass(frozen=True, slots=True)
class WriteBack:
    """Give one bookie its copies of the groups that a recovery keeps.

    Records keep their own term and LAC, byte for byte: a recovery's own LAC in them would let a
    reader see what the ledger may yet be closed below (H8). They go to a journal of the recovery's
    own, so nothing is appended behind what somebody else wrote, and no fence refuses them (RB-26).
    Where an earlier recovery, which came to nothing, has left the very same bytes, they are made
    durable and count: else every one of them would leave a journal for all later ones to read.

    Attributes:
        term, token: of the recovery.
        writer: who is fenced there.
        holders: where the holders of the groups are.
        must_fence: whether the bookie has no fence yet: it was silent before, or joins the ensemble
            only now. It comes before anything else is written.
    """

    ledger_id: int
    term: int
    token: str
    writer: Writer
    ensemble_index: int
    address: BookieAddress
    digest: DigestSpec
    password: Password
    groups: tuple[KeptGroup, ...]
    holders: Mapping[Member, BookieAddress]
    must_fence: bool = False

    def run(self, beat: Heartbeat = no_heartbeat) -> WrittenBack | Displaced | Unreadable | Failure:
        """Runs on: driver thread | executor."""
        digester = make_digester(self.digest, self.password)
        try:
            if self.must_fence:
                with open_bookie(self.address).open_root() as root:
                    root.put_new(self.writer.fence, b"")
            damaged: list[tuple[Piece, str]] = []
            for group in self.groups:
                damaged += self._copy_entry_logs(group, digester, beat)
            self._write_records(digester, beat)
        except LedgerFencedError as error:
            return Displaced(str(error))
        except NoGoodSourceError as error:
            return Unreadable(str(error.args[0]))
        except (BookieUnavailableError, CorruptDataError) as error:
            return Failure(str(error))
        return WrittenBack(len(self.groups), tuple(damaged))

    def _copy_entry_logs(
        self, group: KeptGroup, digester: Digester, beat: Heartbeat
    ) -> list[tuple[Piece, str]]:
        """Returns those that are damaged here, and why: the others count all the same."""
        damaged: list[tuple[Piece, str]] = []
        sources = [self.holders[member] for member in group.holders]
        for log in entry_logs_of(group.record):
            if self.ensemble_index in group.record.quorum.write_set(log.stripe):
                try:
                    have_entry_log(
                        log, sources, self.address, digester, ledger_id=self.ledger_id, beat=beat
                    )
                except DamagedInPlaceError as error:
                    damaged.append(((log.attempt_id, log.stripe), str(error)))
        return damaged

    def _write_records(self, digester: Digester, beat: Heartbeat) -> None:
        records = [journal.encode(group.record, digester, group.parts) for group in self.groups]
        if self.term > self.writer.term + 1 and self._are_there(records, beat):
            return
        with open_bookie(self.address).open_root() as root:
            file = new_journal(root, self.ledger_id, self.term, self.token)
        try:
            for encoded in records:
                file.append(encoded.frame(self.ensemble_index, file.end))
            self._require_kept(file)
        finally:
            file.close()

    def _are_there(self, records: Sequence[EncodedRecord], beat: Heartbeat) -> bool:
        """Whether an earlier recovery has left ``records``, which are durable by now.

        They are looked for anew behind that, like those that are written (R6).
        """
        with open_bookie(self.address).open_root() as root:
            # Copies that are not listed are written anew.
            found = find_journals(root, self.address.bookie_id, self.ledger_id, ()).names
            earlier = [name for name in found if self._is_of_earlier_recovery(name)]
            shown = [name for name in earlier if self._shows(root, name, records, beat)]
            if not shown or not root.sync(shown[0]):
                return False
        with open_bookie(self.address).open_root() as root:
            self._require_fence(root)
            return self._shows(root, shown[0], records, beat)

    def _is_of_earlier_recovery(self, name: str) -> bool:
        return self.writer.term < layout.journal_term(name.rpartition("/")[2]) < self.term

    def _shows(
        self, root: BookieRoot, name: str, records: Sequence[EncodedRecord], beat: Heartbeat
    ) -> bool:
        """Whether journal ``name`` begins with the bytes that would be written for ``records``."""
        position = 0
        for encoded in records:
            frame = b"".join(encoded.frame(self.ensemble_index, position))
            if root.read(name, position, len(frame)) != frame:
                return False
            position += len(frame)
            beat()
        return True

    def _require_kept(self, file: Journal) -> None:
        """The copies count for the closing, so they are looked for as a writer's records are (R6).

        A fence that is gone fences nobody: what was decided behind it is to be decided anew.
        """
        with open_bookie(self.address).open_root() as root:
            if not root.has_journal(file):
                raise BookieUnavailableError(
                    f"bookie {self.address.bookie_id} does not show the journal that was written "
                    "to it"
                )
            self._require_fence(root)

    def _require_fence(self, root: BookieRoot) -> None:
        if root.size(self.writer.fence) is None:
            raise LedgerFencedError(
                f"bookie {self.address.bookie_id} has lost its fence of ledger {self.ledger_id}"
            )
