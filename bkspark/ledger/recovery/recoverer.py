"""Carries out the instructions of ``recovering``, and returns their results as events.

No decision is made here. Instructions about bookies go to a runner, all of one batch at once; the
rest touches the metadata store or the operator.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

from bkspark import environment
from bkspark.bookie.contract import BookieAddress, BookieRoot, Journal, told_of
from bkspark.bookie.uri import open_bookie, root_of
from bkspark.cluster import bookie_client, ensembles
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun, Joining, enlist
from bkspark.cluster.fan_out import Heartbeat, Timeouts, ask_all, no_heartbeat
from bkspark.cluster.log_messages import leave_out, leave_out_unless, tell
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    CorruptDataError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchLedgerError,
)
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import EncodedRecord
from bkspark.format.recovery import StuckRecovery
from bkspark.ledger.copying import DamagedInPlaceError, have_entry_log, new_journal
from bkspark.ledger.entry_log_reader import NoGoodSourceError
from bkspark.ledger.journals.journal_reader import JournalReader, find_journals, journals_of
from bkspark.ledger.journals.member_journals import Taken
from bkspark.ledger.recovery import fencing
from bkspark.ledger.recovery.fencing import LastWriter, Since
from bkspark.ledger.recovery.running import Runner
from bkspark.metadata import freshness
from bkspark.protocol.apart import Apart
from bkspark.protocol.ledger.evidence import is_owner
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.record import Piece
from bkspark.protocol.recovery import steps
from bkspark.protocol.recovery.recovering import LedgerRecovery, Looking
from bkspark.protocol.recovery.steps import (
    Displaced,
    Failure,
    KeptGroup,
    LookAgain,
    Open,
    Opened,
    Prune,
    Take,
    Took,
    Unreadable,
    WrittenBack,
)

logger = logging.getLogger(__name__)

# --- write back ----------------------------------------------------------------------------------
# Instruction to one bookie: store its copies of the groups that a recovery keeps.
#
# The instruction is picklable, like those of ``fencing``.


@dataclass(frozen=True, slots=True)
class WriteCopies:
    """Give one bookie its copies of the groups that a recovery keeps.

    Records keep their own term and LAC, byte for byte. With the recovery's LAC, a reader would see
    entries below which the ledger may yet be closed (H8). The copies go to a journal of the
    recovery's own: nothing is appended to another client's journal, and no fence refuses the copies
    (RB-26). If an earlier, unfinished recovery has left the same bytes, the copies there are synced
    and count. Otherwise every recovery would leave a journal for all later recoveries to read.

    Attributes:
        term, token: of the recovery.
        writer: the fenced writer.
        holders: addresses of the groups' holders.
        must_fence: whether the bookie has no fence yet, because it was silent before or joins the
            ensemble only now. The fence is written first.
    """

    ledger_id: int
    term: int
    token: str
    writer: LastWriter
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
        """Copy entry logs; return those damaged in place, with reasons. The rest count all the
        same.
        """
        damaged: list[tuple[Piece, str]] = []
        sources = [self.holders[member] for member in group.holders]
        for log in group.record.entry_logs:
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
        with root_of(self.address, is_found=True) as root:  # the copies are looked for anew below
            file = new_journal(root, self.ledger_id, self.term, self.token)
        try:
            for encoded in records:
                file.append(encoded.frame(self.ensemble_index, file.end))
            self._require_kept(file)
        finally:
            file.close()

    def _are_there(self, records: Sequence[EncodedRecord], beat: Heartbeat) -> bool:
        """Return whether an earlier recovery has left ``records``, and sync them.

        After the sync, the records are looked up again, like newly written records (R6).
        """
        with open_bookie(self.address).open_root() as root:
            # Unlisted copies are written again.
            found = find_journals(root, self.address.bookie_id, self.ledger_id, ()).names
            earlier = [name for name in found if self._is_of_earlier_recovery(name)]
            shown = [name for name in earlier if self._shows(root, name, records, beat)]
            if not shown or not root.sync(shown[0]):
                return False
        with open_bookie(self.address).open_root() as root:
            self._require_fence(root)
            return self._shows(root, shown[0], records, beat)

    def _is_of_earlier_recovery(self, name: str) -> bool:
        return self.writer.term < layout.journal_term(name) < self.term

    def _shows(
        self, root: BookieRoot, name: str, records: Sequence[EncodedRecord], beat: Heartbeat
    ) -> bool:
        """Return whether journal ``name`` begins with exactly the bytes of ``records``."""
        position = 0
        for encoded in records:
            frame = b"".join(encoded.frame(self.ensemble_index, position))
            if root.read(name, position, len(frame)) != frame:
                return False
            position += len(frame)
            beat()
        return True

    def _require_kept(self, file: Journal) -> None:
        """Look the copies up again, as a writer does after an append (R6): the closing counts on
        them.

        A lost fence stops no writer: decisions made under the fence must be made again.
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


# --- opener --------------------------------------------------------------------------------------
# Sets a recovered ledger OPEN for a new writer (``reopening``).
#
# This process asks the bookies itself, all of one batch at once, instead of a runner's tasks: the
# bookies begin the open journals of a writer in this process.


# --- pruning -------------------------------------------------------------------------------------
# Removes files of earlier writers from a bookie after a takeover (``reopening``, rules 5, 7, 8).


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


# --- opener --------------------------------------------------------------------------------------


_Located: TypeAlias = Callable[[Member], BookieAddress]


class Opener:
    """Prepares a ledger for one writer and draws the writer's token.

    Attributes:
        writer_token: of the writer.
        begun: the writer's journals; a caller that does not write must close them.
        seen: the ledger once OPEN for the writer; None before.
    """

    def __init__(self, cluster: Cluster, digester: Digester, located: _Located) -> None:
        self.writer_token = environment.token()
        self.begun = Begun()
        self.seen: Versioned[LedgerMetadata] | None = None
        self._cluster = cluster
        self._digester = digester
        self._located = located

    def begin_anew(self) -> None:
        """Drop journals begun in an earlier term; called after each takeover of the ledger."""
        self.begun.close()
        self.begun = Begun()

    def take(self, asked: Sequence[Take], ledger: LedgerMetadata, others: int) -> list[steps.Event]:
        """Make bookies take the writer's permission and begin its journal; ask each bookie once.

        Args:
            ledger: as taken over by the recovery.
            others: number of further bookies able to step in.
        """
        joining = Joining.of(
            ledger.ledger_id,
            ledger.quorum,
            term=ledger.term,
            token=self.writer_token,
            digester=self._digester,
        )
        places = {take.index: self._located(take.member) for take in asked}
        begun = enlist(places, joining, needed=len(places) - others)
        self.begun.add(begun)
        begun.require_asked()
        found: list[steps.Event] = []
        for take in asked:
            name, problem = take.member.bookie_id, ""
            if name not in begun.bookie_ids:
                self._cluster.note_failure(take.member)
                problem = told_of(name, begun.failed[name])
            found.append(Took(take, problem))
        return found

    def look_again(self, asked: Sequence[LookAgain], ledger: LedgerMetadata) -> list[steps.Event]:
        """Check for each bookie that the permission and the journal are still there."""
        whose = (ledger.ledger_id, ledger.term, self.writer_token)
        taken = Taken(layout.permission(*whose), layout.journal(*whose))
        clients = [BookieClient(self._located(look.member)) for look in asked]
        answers = ask_all(
            {client: partial(_missing, client.address, taken) for client in clients},
            Timeouts(bookie_client.ANSWER_SECONDS),
            is_usable=_is_told,
            needed=len(clients),
        )
        return [
            Took(look, str(answers[client])) for look, client in zip(asked, clients, strict=True)
        ]

    def open(self, plan: Open, taken: Versioned[LedgerMetadata]) -> steps.Event:
        """Set the ledger OPEN by one CAS.

        Args:
            taken: the ledger as taken over by the recovery.
        """
        update, plan = self._cluster.ledgers.update, replace(plan, now_ms=environment.now_ms())
        try:
            ledger_id = taken.value.ledger_id
            self.seen = update(str(ledger_id), partial(_applied, plan), seen=taken)
        except LedgerFencedError as error:
            return steps.Displaced(str(error.args[0]))
        return Opened(self.seen.value)

    def prune(self, asked: Sequence[Prune]) -> None:
        """Remove unneeded files of earlier writers; log failures and continue."""
        assert self.seen is not None
        opened = self.seen.value
        questions = {
            BookieClient(address): partial(prune, address, plan, opened, self._digester)
            for plan in asked
            for address in [self._located(plan.member)]
        }
        answers = ask_all(questions, Timeouts(bookie_client.ANSWER_SECONDS), is_usable=_is_told)
        for client, answer in answers.items():
            if isinstance(answer, BookieUnavailableError):
                bookie_name, why = client.address.bookie_id, answer.args[0]
                said = "ledger %d: markers of its previous writer stay on bookie %s: %s"
                logger.info(said, opened.ledger_id, bookie_name, why)


def _is_told(_answer: object) -> bool:
    return True


def _missing(address: BookieAddress, taken: Taken) -> str:
    """Describe a missing marker of a bookie in one line; empty if none is missing."""
    with open_bookie(address).open_root() as root:
        missing = taken.missing_in(root)
    return f"bookie {address.bookie_id} lacks {missing}" if missing else ""


def _applied(plan: Open, ledger: LedgerMetadata | None) -> LedgerMetadata:
    if ledger is None:
        raise NoSuchLedgerError("the ledger was deleted and collected during the recovery")
    return plan.applied_to(ledger)


# --- notes ---------------------------------------------------------------------------------------
# Keeps a recovery's lines for its report, passes each line to the caller, and logs each line.


class RecoveryNotes:
    """Takes notes.

    Attributes:
        lines: all notes, in order.
    """

    def __init__(self, ledger_id: int, tell: Callable[[str], None] | None = None) -> None:
        self.lines: list[str] = []
        self._ledger_id = ledger_id
        self._tell = tell

    def __call__(self, line: str) -> None:
        """Note a step."""
        self._note(logging.INFO, line)

    def warn(self, line: str) -> None:
        """Note a bookie that could not help, or a loss."""
        self._note(logging.WARNING, line)

    def _note(self, level: int, line: str) -> None:
        self.lines.append(line)
        number = self._ledger_id
        tell(logger, "recovery of ledger %d: %s", number, line, level=level, ledger_id=number)
        if self._tell is not None:
            self._tell(line)


# --- displacement --------------------------------------------------------------------------------
# Waits after another recovery has displaced this recovery; then a new attempt may begin.
#
# Each recovery raises the term, and so undoes the work of the recovery before. Any number may begin
# at once, but a displaced recovery lets the other finish. It waits while the ledger is in recovery
# and changes, then for several looks without a change. The pause is random and doubles with each
# displacement. An OPEN ledger ends the wait: its writer may change the record for ever. Waiting
# only helps progress; no decision rests on it.


_LOOKS = 8
FIRST_PAUSE_SECONDS = 0.02


def wait_for_others(
    cluster: Cluster, ledger_id: int, displaced_before: int
) -> Versioned[LedgerMetadata]:
    """Return the ledger once no recovery runs, or once several looks found no change.

    Args:
        displaced_before: how often this recovery was displaced before, >= 0.
    """
    pause = FIRST_PAUSE_SECONDS * 2**displaced_before * (0.5 + environment.draw())
    seen, unchanged = cluster.ledger(ledger_id), 0
    while seen.value.state is not LedgerState.CLOSED and unchanged < _LOOKS:
        environment.sleep(pause)
        newest = cluster.ledger(ledger_id)
        unchanged = unchanged + 1 if newest.stored.version == seen.stored.version else 0
        seen = newest
        if seen.value.state is LedgerState.OPEN:
            break
    return seen


# --- recoverer -----------------------------------------------------------------------------------


Consent = Callable[[str], bool]
"""Called with a sentence that names the loss; returns whether the operator accepts the loss."""

_ON_BOOKIES = (steps.Fence, steps.LookUp, steps.WriteBack)


class Recoverer:
    """Carries out the recovery of one ledger.

    Attributes:
        opener: sets the ledger OPEN for a new writer at the end; None if the recovery closes the
            ledger.
    """

    def __init__(
        self,
        cluster: Cluster,
        ledger_id: int,
        password: Password,
        run: Runner,
        note: RecoveryNotes,
        accepts_loss: Consent,
        *,
        opens: bool = False,
        seen: Versioned[LedgerMetadata] | None = None,
    ) -> None:
        self.note = note
        self._cluster = cluster
        self._ledger_id = ledger_id
        self._password = password
        self._run = run
        self._accepts_loss = accepts_loss
        self._known: dict[Member, BookieAddress] = {}
        # A ledger that is not CLOSED is taken over by a compare-and-set, which an old record fails.
        self._seen = seen or cluster.ledger(ledger_id)
        self.opener: Opener | None = None
        if opens:
            digester = make_digester(self._ledger.settings.digest, password)
            self.opener = Opener(cluster, digester, self._address)

    @property
    def _ledger(self) -> LedgerMetadata:
        """The ledger as last read or written."""
        return self._seen.value

    def recover(self) -> steps.EndRecovery:
        """Run the state machine to its end.

        Raises:
            BookKeeperError: the machine's failure, or an error of the metadata store.
        """
        token = "" if self.opener is None else self.opener.writer_token
        machine = LedgerRecovery(Looking(writer_token=token))
        happened: deque[steps.Event] = deque([steps.LedgerSeen(self._ledger)])
        while True:
            asked: list[Any] = []
            for instruction in machine.receive(happened.popleft()):
                match instruction:
                    case steps.Note(line, is_warning):
                        self.note.warn(line) if is_warning else self.note(line)
                    case steps.LeaveReason(term, stuck):
                        self._leave_reason(term, stuck)
                    case steps.Fail(error):
                        raise error
                    case steps.EndRecovery():
                        self._carry_out(asked)
                        return instruction
                    case _:
                        asked.append(instruction)
            happened.extend(self._carry_out(asked))

    def _carry_out(self, asked: Sequence[Any]) -> list[steps.Event]:
        """Carry out ``asked``; return an event for each instruction."""
        if asked and isinstance(asked[0], _ON_BOOKIES):
            results = self._run([self._located(instruction) for instruction in asked])
            return [steps.Answer(to, result) for to, result in zip(asked, results, strict=True)]
        if asked and self.opener is not None:
            match asked[0]:
                case Take():
                    size = self._ledger.quorum.ensemble_size
                    others = self._cluster.count_others(self._names, size)
                    return self.opener.take(asked, self._ledger, others)
                case LookAgain():
                    return self.opener.look_again(asked, self._ledger)
                case Prune():
                    self.opener.prune(asked)
                    return []
        return [self._answer(instruction) for instruction in asked]

    def _answer(self, instruction: steps.Instruction) -> steps.Event:
        match instruction:
            case steps.ReadLedger():
                return self._look()
            case steps.WaitForOthers(displaced_before):
                self._seen = wait_for_others(self._cluster, self._ledger_id, displaced_before)
                return steps.LedgerSeen(self._ledger)
            case steps.TakeOver():
                return self.take_over()
            case steps.ListLost():
                return steps.DeclaredLost(self._cluster.lost_members(leave_out, self._names))
            case steps.Ask(loss):
                return steps.Consent(self._accepts_loss(loss))
            case steps.ChooseSpares():
                return self._spares(instruction)
            case steps.Close():
                return self.close(instruction)
            case Open() if self.opener is not None:
                return self.opener.open(instruction, self._seen)
        raise AssertionError(f"unhandled instruction {instruction}")

    def _look(self) -> steps.Event:
        self._seen = self._cluster.ledger(self._ledger_id)
        return steps.LedgerSeen(self._ledger)

    def take_over(self) -> steps.Event:
        """Step 1: take the ledger over by one CAS, with a new random token."""
        make_digester(
            self._ledger.settings.digest, self._password
        )  # a wrong password must not fence a writer
        with freshness.from_here():  # the addresses are as new as the record
            try:
                self._seen = self._update(partial(_taken_over, environment.token()))
            except LedgerClosedError:
                return self._look()
            self._known = self._addresses()
        if self.opener is not None:
            self.opener.begin_anew()
        return steps.TakenOver(self._ledger, tuple(self._known))

    def close(self, close: steps.Close) -> steps.Event:
        """Step 5: one CAS."""
        try:
            return steps.Closed(self._update(close.applied_to).value)
        except steps.DisplacedError as error:
            return steps.Displaced(str(error.args[0]))

    def _update(
        self, change: Callable[[LedgerMetadata], LedgerMetadata]
    ) -> Versioned[LedgerMetadata]:
        """Apply ``change`` to the last known record, or to the present record if the store has a
        newer one.

        Raises:
            NoSuchLedgerError: the ledger has been deleted or collected meanwhile.
        """

        def changed(metadata: LedgerMetadata | None) -> LedgerMetadata:
            if metadata is None or metadata.state is LedgerState.DELETING:
                raise NoSuchLedgerError(f"ledger {self._ledger_id} does not exist any more")
            return change(metadata)

        return self._cluster.ledgers.update(str(self._ledger_id), changed, seen=self._seen)

    def _spares(self, wanted: steps.ChooseSpares) -> steps.Event:
        with freshness.from_here():
            self._known |= self._addresses()
            found = ensembles.stand_ins(
                self._cluster,
                wanted.count,
                exclude=wanted.exclude,
                near=wanted.near,
                vacant=ensembles.Vacant(Apart.of(self._ledger), wanted.ensemble, wanted.places),
            )
            self._known |= {address.member: address for address in found}
        return steps.Spares(tuple(address.member for address in found))

    def _addresses(self) -> dict[Member, BookieAddress]:
        """Return the addresses of the bookies that the ledger names, as they are registered now.

        Raises:
            BookKeeperError: the record of one of them is unreadable.
        """
        return self._cluster.present(self._names, leave_out_unless(self._names))

    @property
    def _names(self) -> frozenset[str]:
        return frozenset(member.bookie_id for member in Locations(self._ledger).members)

    def _address(self, member: Member) -> BookieAddress:
        return self._known[member]

    def _located(self, instruction: Any) -> Any:
        """Return the picklable form of an instruction about a member."""
        ledger, address = self._ledger, self._address(instruction.member)
        writer = LastWriter.of(ledger)
        on_it = (address, ledger.settings.digest, self._password)
        known = (ledger.fragments, journals_of(ledger, instruction.member))
        match instruction:
            case steps.Fence(index, _, after):
                since = Since(after, ledger.last_confirmed, ledger.settings.guarantees_write_quorum)
                return fencing.FenceAndRead(ledger.ledger_id, writer, index, *on_it, since, *known)
            case steps.LookUp(_, entry_id):
                return fencing.FindRecord(ledger.ledger_id, *on_it, entry_id, *known)
        groups = instruction.groups
        holders = {member: self._known[member] for group in groups for member in group.holders}
        whose = (ledger.ledger_id, ledger.term, ledger.token, writer, instruction.index)
        return WriteCopies(*whose, *on_it, groups, holders, instruction.must_fence)

    def _leave_reason(self, term: int, stuck: steps.Stuck) -> None:
        reason = StuckRecovery(
            ledger_id=self._ledger_id,
            term=term,
            entry_id=stuck.entry_id,
            waiting_for=tuple(member.bookie_id for member in stuck.waiting_for),
            reason=stuck.reason,
            hint=stuck.hint,
            told_ms=environment.now_ms(),
        )
        try:
            self._cluster.upkeep.recoveries.update(str(self._ledger_id), lambda _before: reason)
        except BookKeeperError as problem:
            self.note.warn(f"the reason could not be stored for `bkspark status`: {problem}")


def _taken_over(token: str, metadata: LedgerMetadata) -> LedgerMetadata:
    is_own = metadata.state is LedgerState.IN_RECOVERY and metadata.token == token
    return metadata if is_own else metadata.in_recovery(token)
