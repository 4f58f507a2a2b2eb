"""Setting a recovered ledger OPEN again for a new writer, in the term of the recovery.

Rule 1. The new fragment begins behind the recovered end. So whatever an older term has left over
there is of a term that does not own its id (``ownership``), on whatever bookie, and needs neither
to be found nor to be removed.

Rule 2. Each of its E members has taken the new writer's permission and begun his journal before the
metadata names it: one that lacks them later has lost data (R18). Whoever does not surely take both
is replaced by a spare, and never asked again for this writer (R19).

Rule 3. All are looked at once more right before the change of the metadata. One that has lost by
then what it took is replaced: else the loss would count against the fragment from the start. But a
recovery that took the ledger over removes it too, so the metadata is read before that is believed.

Rule 4. One compare-and-set, in the name of the recovery, makes the ledger OPEN in its term for the
writer's own token. What was moved to other members keeps its owner. The answer may be lost and the
same be stored again; nobody is asked to take anything once it was sent.

Rule 5. Only when that has been read back are the markers of the writer before pruned, ascending:
his permission, durably, and then his fence. In this order he finds the fence, or no permission
(R20). Nothing depends on it: no answer is awaited, and who was silent before is not asked.

Rule 6. Who was asked and is no member is told to the writer, who asks it for nothing either (R19).

Rule 7. With them goes his journal, before his permission, if his term owns no entry by what was
read back: so those who never wrote leave nothing for others to list, however many they were.
Nothing in it counts, for a record does by its term (``ownership``); and what it says to have been
confirmed, the new fragment's first entry says too. Which journal that is, is told by its name,
never by its term alone: a recovery of that term may have put copies there which count, in a journal
of its own.

* A writer who is asleep appends to a file without a name, and finds that it is not his journal's.
  Where he could make part of one appear again, as on object storage, it stays
  (``contract.BookieRoot.forget_journal``). Before he takes another bookie in, he asks the metadata.
* A recovery that knows an older version of the metadata finds that a member lacks what it began.
  It reads the metadata again before it says so, and ends as displaced. That is a doubt, never an
  absence, and nothing that it decides is stored (rule 4). The same holds for readers and audits.
* Where it stays, because its bookie was away or came back from a snapshot, it is one name more in a
  list, and is read by nobody.
* Where the operator gave something up, it stays: nobody removes what is left of a loss.

Rule 8. What takeovers before have left that died in front of this goes as well, ascending: the
permissions of all writers in front of the last one are found by a listing, each with its fence
behind it, and in front of it the journal, if nothing is in it but what it was begun with. A fence
whose permission is not listed stays, for a listing is a hint (H21): a takeover that died or slept
leaves no more than that one.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.ownership import is_owner
from bkspark.protocol.recovery import messages as say
from bkspark.protocol.recovery import steps
from bkspark.protocol.recovery.conclusions import Decision, Term
from bkspark.protocol.recovery.reopening_steps import LookAgain, Open, Opened, Prune, Take, Took
from bkspark.protocol.recovery.steps import Note


@dataclass(frozen=True, slots=True)
class Reopening:
    """A new fragment on its way into the metadata.

    Attributes:
        ledger: as the recovery has taken it over.
        plan: what is to be stored; its ensemble is who is to have the new fragment now.
        taken: ensemble indexes of members that took it.
        shown: those of them that have shown it again.
        awaited: ensemble indexes that have not answered.
        asked: bookie ids that were ever asked.
        problems: bookie ids, and why they are no members.
        outcome: how it ends; None while it goes on.
        is_loss: whether something of the writer before is given up.
        missing: what members lack that had taken it, in words, until that is believed (rule 3).
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
        """Behind a decision.

        Args:
            kept_by: who has what is kept; empty if nothing is.
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
        """Ask all members but those that are ``unfit``."""
        ensemble = self.plan.ensemble
        members = dict.fromkeys((*ensemble, *self.ledger.last_fragment.ensemble))
        names = [member.bookie_id for member in members if member in unfit]
        problems = tuple((name, f"bookie {name} gave no sure answer") for name in names)
        turn = [index for index, member in enumerate(ensemble) if member not in unfit]
        return replace(self, problems=problems)._take(turn, ())

    def receive(self, event: steps.Event) -> "Step":
        """What an answer to one of its instructions leads to."""
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
        """Rule 2."""
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
        """Rule 3."""
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
            chosen = steps.ChooseSpares(len(every - self.taken), self._unwanted, good)
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
        """Each of ``spares`` in the place of one that has not taken it."""
        ensemble = list(self.plan.ensemble)
        missing = [index for index in range(len(ensemble)) if index not in self.taken]
        if len(spares) < len(missing):
            problems = dict(self.problems).values()
            return replace(self, outcome=say.too_few_members(self.ledger, problems)), ()
        notes = []
        for index, spare in zip(missing, spares):
            line = f"{spare.bookie_id} stands in for {ensemble[index].bookie_id}"
            notes.append(Note(f"{line} from entry {self.plan.last_entry_id + 1} on"))
            ensemble[index] = spare
        plan = replace(self.plan, ensemble=tuple(ensemble))
        return replace(self, plan=plan)._take(missing, notes)

    def _prune(self, metadata: LedgerMetadata) -> "Step":
        """Rules 5 and 7."""
        before = self.ledger.last_fragment
        is_empty = not is_owner(metadata.fragments, before.term) and not self.is_loss
        told = ((before.term, before.token), is_empty)
        silent = dict(self.problems)
        there = (member for member in before.ensemble if member.bookie_id not in silent)
        prunes = tuple(Prune(member, *told) for member in there)
        return replace(self, outcome=Opened(metadata)), prunes if before.token else ()

    @property
    def unjoined(self) -> frozenset[str]:
        """Ids of bookies that may have taken something, and are no members (rule 2)."""
        return self.asked - {member.bookie_id for member in self.plan.ensemble}


def _no_member(problem: str) -> Note:
    return Note(f"no member: {problem}", is_warning=True)


def told_of(
    opened: LedgerMetadata, decision: Decision, unjoined: frozenset[str]
) -> tuple[steps.Instruction, ...]:
    """The end of a recovery behind which the ledger is OPEN."""
    begin = opened.last_fragment.first_entry_id
    line = f"ledger {opened.ledger_id} is OPEN in term {opened.term}, from entry {begin} on"
    lost = (Note(f"DATA LOSS: {loss}", is_warning=True) for loss in decision.given_up)
    told = (len(decision.kept), decision.lost_from, decision.losses)
    end = steps.End(decision.end, *told, opened, decision.last, unjoined)
    return (Note(line), *lost, end)


Step = tuple[Reopening, tuple[steps.Instruction, ...]]
