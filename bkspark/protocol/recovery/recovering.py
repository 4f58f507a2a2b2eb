"""The recovery of a ledger: the order of its steps, and the decision after each.

The steps are those of BookKeeper's protocol, "Recovery", in the order of R16. Each is a class here:

1. ``Looking``: CAS to IN_RECOVERY in the next term. The recovery asks the ensemble of this very
   version. A recovery that another recovery displaces lets the other finish, then begins again.
2. ``Fencing``: on every member of the last fragment first the fence, durably, then a look at the
   records, and then at the writer's marker, which a bookie that has lost data lacks (R18). A newer
   recovery removes the marker too, so the metadata is read again before a loss is believed.
3. ``Deciding``: group by group, from the highest LAC on (``verdicts``). If only lost or damaged
   members could decide, the recovery asks the operator, but never while a member is silent. A
   recovery that keeps no group needs the record of the last confirmed entry (``Seeking``,
   ``record_search``).
4. ``WritingBack``: kept groups, byte-identical, to every member of their write sets, with spares
   for failed members (``replication``). If the ledger guarantees its write quorum, also confirmed
   groups that may have fewer copies; if only silent members might show these, recovery waits.
5. ``Closing``: CAS to CLOSED, once, with all findings of this recovery. Or, for a new writer, CAS
   to OPEN in this recovery's term (``reopening``).

The machine has no effects. Each instruction except notes and the end is answered by one event. A
recovery may be dropped at any point: the next recovery begins anew, and the CAS decides between
concurrent recoveries.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import (
    INVALID_ENTRY_ID,
    Fragment,
    LedgerMetadata,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.record import AddRecord, later
from bkspark.protocol.recovery import messages as say
from bkspark.protocol.recovery import steps
from bkspark.protocol.recovery.conclusions import Decision, Evidence, Term
from bkspark.protocol.recovery.reopening import Reopening, told_of
from bkspark.protocol.recovery.replication import Replicated, Replication
from bkspark.protocol.recovery.steps import Note, Opened
from bkspark.protocol.recovery.verdicts import (
    GroupDecision,
    MemberTail,
    Verdict,
    decide_group,
    last_add_confirmed,
)

# --- record search -------------------------------------------------------------------------------
# Search for the record that ends at the last confirmed entry.
#
# A recovery that keeps no later group still needs this record: only the record states the ledger's
# length and transactions up to there.
#
# If no remaining bookie has the record, the entries up to the last confirmed one stay in the ledger
# (R14: a ledger is never closed below them). Length and transactions then come from the newest
# earlier record. This needs the operator's consent, because acknowledged entries are gone.


@dataclass(frozen=True, slots=True)
class RecordSearch:
    """Searches the record on the members of its own fragment, then of earlier fragments.

    Attributes:
        entry_id: the last confirmed entry.
        known: registered bookies.
        lost: members declared lost; the search does not wait for them.
        ensembles: of the fragments left; the record's own fragment is the first.
        awaited: members that have not answered.
        newest: the newest record shown, None without any.
        problems: members that may have another record, each with the reason in one line.
    """

    entry_id: int
    known: tuple[Member, ...]
    lost: frozenset[Member]
    ensembles: tuple[tuple[Member, ...], ...]
    awaited: frozenset[Member] = frozenset()
    newest: AddRecord | None = None
    problems: tuple[tuple[Member, str], ...] = ()

    @classmethod
    def of(
        cls,
        fragments: Sequence[Fragment],
        entry_id: int,
        known: tuple[Member, ...],
        lost: frozenset[Member],
    ) -> "SearchStep":
        """Begin a search in the last of ``fragments`` that can have the record."""
        can = [fragment for fragment in fragments if fragment.first_entry_id <= entry_id]
        ensembles = tuple(fragment.ensemble for fragment in reversed(can))
        return cls(entry_id, known, lost, ensembles)._look_up()

    def receive(self, event: steps.Event) -> "SearchStep":
        """Return the next step after an answer to an instruction."""
        match event:
            case steps.Answer(steps.LookUp(member), result):
                is_sure = isinstance(result, steps.RecordShown) and not result.problem
                record = result.record if isinstance(result, steps.RecordShown) else None
                problem = result.problem if isinstance(result, steps.RecordShown) else str(result)
                return replace(
                    self,
                    awaited=self.awaited - {member},
                    newest=later(self.newest, record),
                    problems=self.problems if is_sure else (*self.problems, (member, problem)),
                )._going_on()
        raise AssertionError(f"a search awaits no {type(event).__name__}")

    @property
    def is_over(self) -> bool:
        """Whether all asked members have answered."""
        return not self.awaited

    @property
    def end(self) -> int:
        """The last entry of the newest record shown."""
        return INVALID_ENTRY_ID if self.newest is None else self.newest.last_entry_id

    @property
    def silent(self) -> dict[Member, str]:
        """The members that may still show the record, with the reason."""
        if self.end == self.entry_id:
            return {}
        return {member: why for member, why in self.problems if member not in self.lost}

    def _look_up(self) -> "SearchStep":
        """Ask the members of the next ensemble."""
        ensemble, *left = self.ensembles
        gone = (
            (m, f"{m.bookie_id} was initialised again") for m in ensemble if m not in self.known
        )
        asked = [member for member in ensemble if member in self.known]
        state = replace(self, awaited=frozenset(asked), ensembles=tuple(left), problems=tuple(gone))
        if not asked:
            return state._going_on()
        return state, tuple(steps.LookUp(member, self.entry_id) for member in asked)

    def _going_on(self) -> "SearchStep":
        is_here = self.awaited or self.newest is not None or self.silent or not self.ensembles
        return (self, ()) if is_here else self._look_up()


SearchStep = tuple[RecordSearch, tuple[steps.LookUp, ...]]


# --- recovering ----------------------------------------------------------------------------------


TAKEOVERS_MAX = 8
"""Terms taken by a single call; with the waits in between, about a minute."""


class LedgerRecovery:
    """A recovery; ``state`` is its only data, a value to keep, to compare and to restore."""

    def __init__(self, state: "State | None" = None) -> None:
        self.state: State = state or Looking()

    def receive(self, event: steps.Event) -> tuple[steps.Instruction, ...]:
        """Return the next instructions, in order; none while other answers are awaited.

        Args:
            event: ``LedgerSeen`` to begin with, then an answer to each instruction.
        """
        self.state, instructions = self.state.receive(event)
        return instructions


@dataclass(frozen=True, slots=True)
class Looking:
    """The ledger is closed already, or another client owns it and it will be taken over.

    Attributes:
        writer_token: unused token of the new writer that will own the OPEN ledger; empty to close
            it.
    """

    takeovers: int = 0
    writer_token: str = ""

    def receive(self, event: steps.Event) -> "Step":
        match event:
            case steps.LedgerSeen(ledger) if ledger.state is LedgerState.CLOSED:
                end = _end_of(ledger)
                line = f"ledger {ledger.ledger_id} is CLOSED at entry {end} already"
                return Ended(), (Note(line), steps.EndRecovery(end))
            case steps.LedgerSeen(ledger) if self.takeovers >= TAKEOVERS_MAX:
                return Ended(), (steps.Fail(steps.DisplacedError.of(ledger.ledger_id)),)
            case steps.LedgerSeen():
                return self, (steps.TakeOver(),)
            case steps.TakenOver(ledger, known):
                line = f"ledger {ledger.ledger_id} is IN_RECOVERY in term {ledger.term}"
                term = Term(ledger, known, self.takeovers + 1, self.writer_token)
                return _fence(term, Note(line))
        raise _unexpected(self, event)


def _displaced(term: Term, reason: str, instructions: Sequence[steps.Instruction] = ()) -> "Step":
    """Let the recovery that took over finish."""
    notes = (*instructions, Note(f"displaced: {reason}"))
    return Looking(term.number, term.writer_token), (*notes, steps.WaitForOthers(term.number - 1))


def _overtaken(term: Term, newest: LedgerMetadata) -> "Step | None":
    """Return the next step if another recovery closed the ledger or took over; else None."""
    if newest.state is LedgerState.CLOSED:
        return Looking().receive(steps.LedgerSeen(newest))
    is_mine = (newest.term, newest.token) == (term.ledger.term, term.ledger.token)
    line = str(steps.DisplacedError.of(newest.ledger_id).args[0])
    return None if is_mine else _displaced(term, line)


def _fence(term: Term, note: Note) -> "Step":
    """Ask every member except those whose data is gone."""
    known = [(index, member) for index, member in enumerate(term.ensemble) if member in term.known]
    fences = [steps.Fence(index, member, term.floor) for index, member in known]
    names = ", ".join(fence.member.bookie_id for fence in fences) or "no bookie"
    return Fencing(Evidence.of(term)).going_on((note, Note(f"asking {names}"), *fences))


@dataclass(frozen=True, slots=True)
class Fencing:
    """Members are asked; a loss is believed only if the metadata is still the newest afterwards."""

    evidence: Evidence

    def receive(self, event: steps.Event) -> "Step":
        match event:
            case steps.Answer(steps.Fence(index), (MemberTail() | steps.Failure()) as result):
                return replace(self, evidence=self.evidence.hearing(index, result)).going_on(())
            case steps.LedgerSeen(newest):
                return _overtaken(self.evidence.term, newest) or self._told(())
        raise _unexpected(self, event)

    def going_on(self, instructions: Sequence[steps.Instruction]) -> "Step":
        if None in self.evidence.heard:
            return self, tuple(instructions)
        judged = Fencing(self.evidence.judged())
        looks = (*instructions, steps.ReadLedger())
        return (judged, looks) if judged.evidence.shows_loss else judged._told(instructions)

    def _told(self, instructions: Sequence[steps.Instruction]) -> "Step":
        return Deciding(self.evidence), (*instructions, *self.evidence.told, steps.ListLost())


@dataclass(frozen=True, slots=True)
class Deciding:
    """Members have answered; the members declared lost are not read yet."""

    evidence: Evidence

    def receive(self, event: steps.Event) -> "Step":
        assert isinstance(event, steps.DeclaredLost), event
        return _decide(replace(self.evidence, lost=event.members))


def _decide(evidence: Evidence) -> "Step":
    """Decide which groups are kept; stop, or ask, at the first undecided group."""
    answers, notes = evidence.answers()
    quorum = evidence.term.ledger.quorum
    seen = max((tail.last_add_confirmed for tail in evidence.tails.values()), default=-1)
    confirmed = end = last_add_confirmed(answers, max(seen, evidence.term.confirmed))
    notes.append(Note(f"last add confirmed is {confirmed}"))
    kept: list[AddRecord] = []
    while True:
        group = decide_group(end + 1, answers, quorum)
        if group.verdict is not Verdict.KEEP or group.record is None:
            break
        kept.append(group.record)
        end = group.record.last_entry_id
        notes.append(Note(f"kept: {say.entries(group.first_entry_id, end)}"))
    decision = Decision(confirmed, tuple(kept), end, kept[-1] if kept else None)
    if group.verdict is Verdict.ABSENT:
        notes.append(Note(f"entry {end + 1} was never acknowledged"))
        return _seek(evidence, decision, notes)
    in_doubt = InDoubt(evidence, decision, group)
    return in_doubt.ask(notes) if group.verdict is Verdict.LOST else in_doubt.stop(notes)


@dataclass(frozen=True, slots=True)
class InDoubt:
    """A group is undecided, and the operator is asked whether to close the ledger before it."""

    evidence: Evidence
    decision: Decision
    group: GroupDecision

    def ask(self, notes: Sequence[Note]) -> "Step":
        return self, (*notes, steps.Ask(self._loss))

    def receive(self, event: steps.Event) -> "Step":
        assert isinstance(event, steps.Consent), event
        return self._give_up() if event.is_given else self.stop(())

    def stop(self, notes: Sequence[Note]) -> "Step":
        """Stop: a member may still answer, or the operator does not consent."""
        evidence, group, term = self.evidence, self.group, self.evidence.term
        answers, problems = evidence.answers()[0], evidence.problems
        stuck = say.stuck(term.ledger, group, answers, problems, term.known)
        waiting_for = () if group.verdict is Verdict.LOST else evidence.not_lost(group.waiting_for)
        return _stop(term, replace(stuck, waiting_for=waiting_for), notes)

    @property
    def _loss(self) -> str:
        quorum = self.evidence.term.ledger.quorum
        return say.unconfirmed_loss(self.group, self.evidence.answers()[0], quorum)

    def _give_up(self) -> "Step":
        evidence, group = self.evidence, self.group
        answers, problems = evidence.answers()[0], evidence.problems
        why = say.only_they_could_tell(group, evidence.term.ensemble, answers, problems)
        decision, note = self.decision.giving_up(group.first_entry_id, f"{self._loss}: {why}")
        return _seek(evidence, decision, [note])


def _seek(evidence: Evidence, decision: Decision, notes: Sequence[Note]) -> "Step":
    """Find the record of the last confirmed entry, if no later group is kept."""
    confirmed, term = decision.confirmed, evidence.term
    if decision.kept or confirmed == INVALID_ENTRY_ID:
        return _write_back(evidence, decision, notes)
    shown = evidence.record_that_ends_at(confirmed)
    if shown is not None:
        return _write_back(evidence, replace(decision, last=shown), notes)
    search, look_ups = RecordSearch.of(term.ledger.fragments, confirmed, term.known, evidence.lost)
    return Seeking(evidence, decision, search).going_on((*notes, *look_ups))


@dataclass(frozen=True, slots=True)
class Seeking:
    """Members are asked for the record; the operator is asked if no remaining member has it."""

    evidence: Evidence
    decision: Decision
    search: RecordSearch

    def receive(self, event: steps.Event) -> "Step":
        match event:
            case steps.Consent(is_given):
                return self._give_up() if is_given else self._stop()
        search, look_ups = self.search.receive(event)
        return replace(self, search=search).going_on(look_ups)

    def going_on(self, instructions: Sequence[steps.Instruction]) -> "Step":
        search, term = self.search, self.evidence.term
        if not search.is_over:
            return self, tuple(instructions)
        if search.silent:
            stuck = say.no_record(term.ledger, search.entry_id, search.silent, term.known)
            return _stop(term, stuck, instructions)
        if search.end < search.entry_id:
            return self, (*instructions, steps.Ask(self._loss))
        return _write_back(self.evidence, replace(self.decision, last=search.newest), instructions)

    @property
    def _loss(self) -> str:
        return say.confirmed_loss(self.search.end + 1, self.search.entry_id)

    def _stop(self) -> "Step":
        term, unsure = self.evidence.term, self.evidence.unsure
        stuck = say.record_is_lost(term.ledger, self.search.entry_id, self._loss, unsure)
        return _stop(term, stuck, ())

    def _give_up(self) -> "Step":
        loss = f"{self._loss}; the ledger ends after entry {self.search.entry_id} nevertheless"
        decision, note = self.decision.giving_up(self.search.end + 1, loss)
        return _write_back(self.evidence, replace(decision, last=self.search.newest), [note])


def _write_back(
    evidence: Evidence, decision: Decision, instructions: Sequence[steps.Instruction]
) -> "Step":
    """After the decision: note the losses, and write back the kept groups."""
    term, found = evidence.term, evidence.losses(decision.confirmed)
    lagging, gaps = evidence.lagging(decision.confirmed)
    if gaps and evidence.unsure:
        return _stop(term, say.not_replicated(term.ledger, gaps, evidence.unsure), instructions)
    told = tuple(say.loss_with_bookies(loss) for loss in found)
    decision = replace(decision, losses=told, lagging=lagging)
    lost = (Note(say.confirmed_is_gone(loss), is_warning=True) for loss in found)
    notes = (*instructions, *lost)
    closing = Closing(term, decision, evidence.unsure, unfit=evidence.unfit)
    if not decision.written_back:
        return closing.close(notes)
    groups = tuple(evidence.kept(record) for record in decision.written_back)
    fenced = frozenset(index for index, tail in evidence.tails.items() if tail.is_fenced)
    replication = Replication(term.ledger, term.known, groups, fenced, term.ensemble)
    begun, writes = replication.begun(evidence.silent)
    return WritingBack(closing, begun).going_on((*notes, *writes))


@dataclass(frozen=True, slots=True)
class WritingBack:
    """The kept groups are being written back, or a new fragment is being prepared."""

    closing: "Closing"
    work: Replication | Reopening

    def receive(self, event: steps.Event) -> "Step":
        work, instructions = self.work.receive(event)
        return replace(self, work=work).going_on(instructions)

    def going_on(self, instructions: Sequence[steps.Instruction]) -> "Step":
        closing = self.closing
        match self.work.outcome if self.work.is_over else None:
            case steps.Displaced(reason):
                return _displaced(closing.term, reason, instructions)
            case steps.Stuck() as stuck:
                return _stop(closing.term, replace(stuck, waiting_for=closing.unsure), instructions)
            case Replicated(ensemble):
                return replace(closing, ensemble=ensemble).close(instructions)
            case Opened(metadata):
                assert isinstance(self.work, Reopening)
                ends = told_of(metadata, closing.decision, self.work.unjoined)
                return Ended(), (*instructions, *ends)
        return self, tuple(instructions)


@dataclass(frozen=True, slots=True)
class Closing:
    """The closing CAS.

    Attributes:
        unsure: members without a sure answer that are not lost.
        ensemble: members with the kept groups; empty without any.
        unfit: members that the next writer does not use.
    """

    term: Term
    decision: Decision
    unsure: tuple[Member, ...]
    ensemble: tuple[Member, ...] = ()
    unfit: frozenset[Member] = frozenset()

    def close(self, instructions: Sequence[steps.Instruction]) -> "Step":
        ledger, decision = self.term.ledger, self.decision
        if self.term.writer_token:
            reopening = Reopening.of(self.term, decision, self.ensemble)
            begun, asked = reopening.begun(self.unfit)
            return WritingBack(self, begun).going_on((*instructions, *asked))
        close = steps.Close(ledger.term, ledger.token, decision.end, decision.last)
        if self.ensemble and self.ensemble != self.term.ensemble:
            first = decision.written_back[0].first_entry_id
            close = replace(close, first_entry_id=first, ensemble=self.ensemble)
        return self, (*instructions, close)

    def receive(self, event: steps.Event) -> "Step":
        if isinstance(event, steps.Displaced):
            return _displaced(self.term, event.reason)
        assert isinstance(event, steps.Closed), event
        return self._end(event.metadata)

    def _end(self, closed: LedgerMetadata) -> "Step":
        """Adopt the stored version: the winner of a race may have kept entries given up here."""
        ledger, decision, end = self.term.ledger, self.decision, _end_of(closed)
        if (closed.term, closed.token) != (ledger.term, ledger.token):
            decision = replace(decision, lost_from=None, given_up=())
        notes = [Note(f"ledger {ledger.ledger_id} is CLOSED at entry {end}")]
        notes += [Note(f"DATA LOSS: {loss}", is_warning=True) for loss in decision.given_up]
        kept = len(decision.kept)
        return Ended(), (*notes, steps.EndRecovery(end, kept, decision.lost_from, decision.losses))


def _stop(term: Term, stuck: steps.Stuck, instructions: Sequence[steps.Instruction]) -> "Step":
    return Stopping(term, stuck), (*instructions, steps.ReadLedger())


@dataclass(frozen=True, slots=True)
class Stopping:
    """This recovery cannot close the ledger; another recovery may have done so meanwhile."""

    term: Term
    stuck: steps.Stuck

    def receive(self, event: steps.Event) -> "Step":
        mine = self.term.ledger
        match event:
            case steps.LedgerSeen(newest):
                error = NotEnoughBookiesError(self.stuck.reason, hint=self.stuck.hint)
                ends = (steps.LeaveReason(mine.term, self.stuck), steps.Fail(error))
                return _overtaken(self.term, newest) or (Ended(), ends)
        raise _unexpected(self, event)


@dataclass(frozen=True, slots=True)
class Ended:
    """The recovery is over and awaits no event."""

    def receive(self, event: steps.Event) -> "Step":
        raise AssertionError(event)


State = Looking | Fencing | Deciding | InDoubt | Seeking | WritingBack | Closing | Stopping | Ended
Step = tuple[State, tuple[steps.Instruction, ...]]


def _end_of(ledger: LedgerMetadata) -> int:
    return INVALID_ENTRY_ID if ledger.last_entry_id is None else ledger.last_entry_id


def _unexpected(state: State, event: steps.Event) -> AssertionError:
    return AssertionError(f"{type(state).__name__} awaits no {type(event).__name__}")
