"""Carries out the instructions of ``recovering``, and returns their results as events.

No decision is made here. Instructions about bookies go to a runner, all of one batch at once; the
rest touches the metadata store or the operator.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster import ensembles
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.log_messages import leave_out, leave_out_unless, tell
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned
from bkspark.errors import BookKeeperError, LedgerClosedError, NoSuchLedgerError
from bkspark.format.recovery import StuckRecovery
from bkspark.ledger.journals.journal_reader import journals_of
from bkspark.ledger.recovery import fencing, write_back
from bkspark.ledger.recovery.fencing import LastWriter, Since
from bkspark.ledger.recovery.opener import Opener
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.recovery import steps
from bkspark.protocol.recovery.recovering import LedgerRecovery, Looking
from bkspark.protocol.recovery.steps import LookAgain, Open, Prune, Take

# --- notes ---------------------------------------------------------------------------------------
# Keeps a recovery's lines for its report, passes each line to the caller, and logs each line.


logger = logging.getLogger(__name__)


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
    ) -> None:
        self.note = note
        self._cluster = cluster
        self._ledger_id = ledger_id
        self._password = password
        self._run = run
        self._accepts_loss = accepts_loss
        self._known: dict[Member, BookieAddress] = {}
        self._seen = cluster.ledger(ledger_id)
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
                    others = len(self._known) - self._ledger.quorum.ensemble_size
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
                return steps.DeclaredLost(self._cluster.lost_members(leave_out))
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
        self._known |= self._addresses()
        found = ensembles.stand_ins(
            self._cluster, wanted.count, exclude=wanted.exclude, near=wanted.near
        )
        return steps.Spares(tuple(address.member for address in found))

    def _addresses(self) -> dict[Member, BookieAddress]:
        """Return the addresses of all bookies.

        Raises:
            BookKeeperError: the record of a bookie named by the ledger is unreadable.
        """
        named = {member.bookie_id for member in Locations(self._ledger).members}
        return self._cluster.addresses(leave_out_unless(named))

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
        return write_back.WriteCopies(*whose, *on_it, groups, holders, instruction.must_fence)

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
