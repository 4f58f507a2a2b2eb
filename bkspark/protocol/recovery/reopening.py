"""Reopening: sets a recovered ledger OPEN for a new writer, in the term of the recovery.

Rule 1. The new fragment begins after the recovered end. Any later leftover of an older term, on any
bookie, belongs to a term without ownership of the id (``ownership``), and need not be found or
removed.

Rule 2. Each of its E members has taken the new writer's permission and begun the writer's journal
before the metadata names the member; a member without them later has lost data (R18). A spare
replaces a bookie that did not surely take both, and the bookie is never asked again for the same
writer (R19).

Rule 3. The recovery looks at all members once more right before the change of the metadata. A
member with a loss by then is replaced; otherwise the loss would count against the fragment from the
start. But a recovery after a newer takeover removes the same data, so the metadata is read before a
loss is believed.

Rule 4. One compare-and-set, in the name of the recovery, makes the ledger OPEN in its term for the
writer's own token. Entries moved to other members keep their owner. If the answer is lost, the
recovery may store the same value again; no bookie is asked to take anything after the first
compare-and-set was sent.

Rule 5. Only after the new metadata was read back are the previous writer's markers pruned, in
ascending order: first the permission, durably, and then the fence. In this order the previous
writer finds the fence, or no permission (R20). No guarantee depends on pruning: the recovery awaits
no answer, and does not ask bookies that were silent before.

Rule 6. The writer learns the asked bookies that are no members, and asks them for nothing (R19).

Rule 7. The previous writer's journal is pruned before its permission, if its term owns no entry in
the metadata read back. So writers without any entry leave no journals to list, however many there
were. No record in the journal counts, since a record counts by its term (``ownership``), and the
new fragment's first entry states the same confirmed entries. The journal is found by its name,
never by its term alone: a recovery of the same term may have put copies there that count, in a
journal of its own.

* A sleeping writer appends to a file without a name, and finds that the file is not its journal. If
  the writer could make part of the journal reappear, as on object storage, the journal stays
  (``contract.BookieRoot.forget_journal``). Before adding a bookie, a writer reads the
  metadata.
* A recovery with an older version of the metadata finds a member without its journal. The
  recovery reads the metadata again before reporting a loss, and ends as displaced. The finding is a
  doubt, never an absence, and no decision from it is stored (rule 4). The same holds for readers
  and audits.
* If the journal stays, because its bookie was away or came back from a snapshot, listings have one
  more name, and no client reads the journal.
* If the operator accepted a loss, the journal stays: no client removes the remains of a loss.

Rule 8. Leftovers of earlier takeovers that died before pruning go too, in ascending order. A
listing finds the permissions of all writers before the last one; each goes with its fence after it,
and with its journal before it if the journal has no record except its header. A fence whose
permission is not listed stays, because a listing is a hint (H21): a takeover that died or slept
leaves at most that fence.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from bkspark.protocol.ledger.evidence import is_owner
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.recovery import messages as say
from bkspark.protocol.recovery import steps
from bkspark.protocol.recovery.conclusions import Decision, Term
from bkspark.protocol.recovery.steps import LookAgain, Note, Open, Opened, Prune, Take, Took


@dataclass(frozen=True, slots=True)
class Reopening:
    """A new fragment being prepared for the metadata.

    Attributes:
        ledger: as taken over by the recovery.
        plan: the change to store; its ensemble has the present candidates of the new fragment.
        taken: ensemble indexes of members that took permission and journal.
        shown: those of ``taken`` that showed both again.
        awaited: ensemble indexes that have not answered.
        asked: ids of all bookies ever asked.
        problems: bookie ids, and why they are no members.
        outcome: the end of the reopening; None while in progress.
        is_loss: whether entries of the previous writer are given up.
        missing: what members lost after taking it, in words, until believed (rule 3).
    """

    ledger: LedgerMetadata
    plan: Open
    taken: frozenset[int] = frozenset()
    shown: frozenset[int] = frozenset()
    awaited: frozenset[int] = frozenset()
    asked: frozenset[str] = frozenset()
    problems: tuple[tuple[str, str], ...] = ()
    outcome: Opened | steps.Displaced | steps.Stuck | None = None
    is_loss: bool = False
    missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, term: Term, decision: Decision, kept_by: tuple[Member, ...]) -> "Reopening":
        """Prepare a reopening after a decision.

        Args:
            kept_by: members with the kept groups; empty without any.
        """
        ledger, ensemble = term.ledger, kept_by or term.ensemble
        plan = Open(ledger.term, ledger.token, term.writer_token, decision.end, ensemble)
        if decision.last is not None:
            plan = replace(plan, length_bytes=decision.last.length_bytes)
        if ensemble != term.ensemble:
            first = decision.written_back[0].first_entry_id
            plan = replace(plan, first_kept=first, kept_by=ensemble)
        return cls(ledger, plan, is_loss=bool(decision.given_up))

    @property
    def is_over(self) -> bool:
        return self.outcome is not None

    def begun(self, unfit: Collection[Member]) -> "Step":
        """Ask all members except the ``unfit`` ones."""
        ensemble = self.plan.ensemble
        members = dict.fromkeys((*ensemble, *self.ledger.last_fragment.ensemble))
        names = [member.bookie_id for member in members if member in unfit]
        problems = tuple((name, f"bookie {name} gave no sure answer") for name in names)
        turn = [index for index, member in enumerate(ensemble) if member not in unfit]
        return replace(self, problems=problems)._take(turn, ())

    def receive(self, event: steps.Event) -> "Step":
        """Return the next step after an answer to an instruction."""
        match event:
            case Took(Take(index) | LookAgain(index), problem):
                return self._hear(event.to, index, problem)
            case steps.LedgerSeen(newest):
                return self._believe(newest)
            case steps.Spares(members):
                return self._stand_in(members)
            case Opened(metadata):
                return self._prune(metadata)
            case steps.Displaced():
                return replace(self, outcome=event), ()
        raise AssertionError(f"a reopening awaits no {type(event).__name__}")

    def _take(self, turn: Iterable[int], notes: Iterable[steps.Instruction]) -> "Step":
        """Ask members to take permission and journal (rule 2)."""
        takes = [Take(index, self.plan.ensemble[index]) for index in turn]
        asked = self.asked | {take.member.bookie_id for take in takes}
        state = replace(self, awaited=frozenset(turn), asked=asked, shown=frozenset())
        return state._going_on((*notes, *takes))

    def _hear(self, to: Take | LookAgain, index: int, problem: str) -> "Step":
        state = replace(self, awaited=self.awaited - {index})
        if not problem:
            if isinstance(to, Take):
                return replace(state, taken=state.taken | {index})._going_on(())
            return replace(state, shown=state.shown | {index})._going_on(())
        told = (*self.problems, (to.member.bookie_id, problem))
        state = replace(state, taken=state.taken - {index}, problems=told)
        if isinstance(to, LookAgain):
            return replace(state, missing=(*state.missing, problem))._going_on(())
        return state._going_on([_no_member(problem)])

    def _believe(self, newest: LedgerMetadata) -> "Step":
        """Believe a loss if this recovery still owns the ledger, else end as displaced (rule 3)."""
        mine = self.ledger
        if (newest.term, newest.token) != (mine.term, mine.token):
            reason = str(steps.DisplacedError.of(mine.ledger_id).args[0])
            return replace(self, outcome=steps.Displaced(reason)), ()
        return replace(self, missing=())._going_on(map(_no_member, self.missing))

    def _going_on(self, instructions: Iterable[steps.Instruction]) -> "Step":
        """Wait for the rest; then for spares, for another look, or for the metadata."""
        if self.awaited:
            return self, tuple(instructions)
        if self.missing:
            return self, (*instructions, steps.ReadLedger())
        every = frozenset(range(len(self.plan.ensemble)))
        if self.taken != every:
            good = frozenset(self.plan.ensemble[index] for index in self.taken)
            missing = tuple(sorted(every - self.taken))
            members = self.plan.ensemble
            chosen = steps.ChooseSpares(len(missing), self._unwanted, good, members, missing)
            return self, (*instructions, chosen)
        if self.shown != every:
            looks = (LookAgain(i, member) for i, member in enumerate(self.plan.ensemble))
            return replace(self, awaited=every, shown=frozenset()), (*instructions, *looks)
        return self, (*instructions, self.plan)

    @property
    def _unwanted(self) -> frozenset[str]:
        """Ids of bookies that must not be chosen any more (rule 2), or never."""
        members = (*self.plan.ensemble, *self.ledger.left)
        names = (member.bookie_id for member in members)
        return frozenset(dict(self.problems)).union(names)

    def _stand_in(self, spares: Collection[Member]) -> "Step":
        """Put each of ``spares`` in the place of a member that has not taken both."""
        ensemble = list(self.plan.ensemble)
        missing = [index for index in range(len(ensemble)) if index not in self.taken]
        if len(spares) < len(missing):
            problems = dict(self.problems).values()
            return replace(self, outcome=say.too_few_members(self.ledger, problems)), ()
        notes = []
        for index, spare in zip(missing, spares):
            line = f"{spare.bookie_id} replaces {ensemble[index].bookie_id}"
            notes.append(Note(f"{line} from entry {self.plan.last_entry_id + 1} on"))
            ensemble[index] = spare
        plan = replace(self.plan, ensemble=tuple(ensemble))
        return replace(self, plan=plan)._take(missing, notes)

    def _prune(self, metadata: LedgerMetadata) -> "Step":
        """Prune markers (rule 5) and the journal (rule 7) of the previous writer."""
        before = self.ledger.last_fragment
        is_empty = not is_owner(metadata.fragments, before.term) and not self.is_loss
        told = ((before.term, before.token), is_empty)
        silent = dict(self.problems)
        there = (member for member in before.ensemble if member.bookie_id not in silent)
        prunes = tuple(Prune(member, *told) for member in there)
        return replace(self, outcome=Opened(metadata)), prunes

    @property
    def unjoined(self) -> frozenset[str]:
        """Ids of bookies that may have taken something, and are no members (rule 2)."""
        return self.asked - {member.bookie_id for member in self.plan.ensemble}


def _no_member(problem: str) -> Note:
    return Note(f"not a member of the new fragment: {problem}", is_warning=True)


def told_of(
    opened: LedgerMetadata, decision: Decision, unjoined: frozenset[str]
) -> tuple[steps.Instruction, ...]:
    """Return the end of a recovery that leaves the ledger OPEN."""
    begin = opened.last_fragment.first_entry_id
    line = f"ledger {opened.ledger_id} is OPEN in term {opened.term}, from entry {begin} on"
    lost = (Note(f"DATA LOSS: {loss}", is_warning=True) for loss in decision.given_up)
    told = (len(decision.kept), decision.lost_from, decision.losses)
    end = steps.EndRecovery(decision.end, *told, opened, decision.last, unjoined)
    return (Note(line), *lost, end)


Step = tuple[Reopening, tuple[steps.Instruction, ...]]
