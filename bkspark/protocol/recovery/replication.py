"""Write-back: copies the groups kept by a recovery to the members of their write sets.

Rule 1. Qa members of every write set must have the groups before the ledger is closed. If the
recovery cannot write a group back, the recovery does not close the ledger (RB-15, H27). The rule
holds for the records and for each entry log separately: a bookie with a damaged entry log has good
copies of others. If the ledger guarantees its write quorum, all Qw members must have the groups.

Rule 2. If too few members take the groups, spares replace the members that fail. Until the closing
CAS only this recovery knows the new ensemble: if this recovery dies, the next recovery asks the
ensemble that the writer wrote to (RB-04, RB-05).

Rule 3. A spare holds the fence before any other write to the spare.

Rule 4. Members get their copies in rounds, in parallel. The recovery looks for spares only after a
round; a member that did not answer in time before is not asked again.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, Piece
from bkspark.protocol.recovery import messages as say
from bkspark.protocol.recovery import steps
from bkspark.protocol.recovery.steps import Note


@dataclass(frozen=True, slots=True)
class Replicated:
    """The write-back is done: ``ensemble`` has the groups, including spares."""

    ensemble: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Replication:
    """A write-back in progress.

    Attributes:
        fenced: ensemble indexes of members that hold the fence.
        ensemble: the present targets of the groups.
        awaited: ensemble indexes that have not answered in this round.
        written: ensemble indexes that have their copies, with the entry logs damaged there.
        problems: bookie ids, and why they have no copy.
        unreadable: why the groups can no longer be read; empty if they can.
        outcome: the end of the write-back; None while in progress.
    """

    ledger: LedgerMetadata
    known: tuple[Member, ...]
    groups: tuple[steps.KeptGroup, ...]
    fenced: frozenset[int]
    ensemble: tuple[Member, ...]
    awaited: frozenset[int] = frozenset()
    written: tuple[tuple[int, frozenset[Piece]], ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    unreadable: str = ""
    outcome: Replicated | steps.Displaced | steps.Stuck | None = None

    def begun(self, silent: Collection[int]) -> "Step":
        """Begin the first round, without the ``silent`` members."""
        names = [self.ensemble[index].bookie_id for index in self._owners if index in silent]
        problems = tuple((name, f"bookie {name} does not answer") for name in names)
        turn = [index for index in self._owners if index not in silent]
        return replace(self, problems=problems)._round(turn, ())

    def receive(self, event: steps.Event) -> "Step":
        """Return the next step after an answer to an instruction."""
        match event:
            case steps.Spares(members):
                return self._stand_in(members)
            case steps.Answer(steps.WriteBack(index, member), result):
                state = replace(self, awaited=self.awaited - {index})
                state, notes = state._hear(index, member.bookie_id, result)
                return state._going_on(notes)
        raise AssertionError(f"a write-back awaits no {type(event).__name__}")

    def _hear(self, index: int, name: str, result: object) -> "tuple[Replication, list[Note]]":
        match result:
            case steps.WrittenBack(damaged=damaged):
                written = (*self.written, (index, frozenset(piece for piece, _ in damaged)))
                lines = [f"{name}: {reason}" for _, reason in damaged]
                problems = (*self.problems, *((name, line) for line in lines))
                notes = [Note(f"not written back: {line}") for line in lines]
                return replace(self, written=written, problems=problems), notes
            case steps.Displaced():
                return replace(self, outcome=result), []
            case steps.Unreadable(reason):
                state = replace(self, unreadable=self.unreadable or reason)
            case _:
                reason = str(result)
                state = replace(self, problems=(*self.problems, (name, reason)))
        return state, [Note(f"not written back: {reason}", is_warning=True)]

    @property
    def is_over(self) -> bool:
        """Whether ``outcome`` is final; after a displacement the other answers come first."""
        return self.outcome is not None and not self.awaited

    @property
    def _owners(self) -> list[int]:
        """Ensemble indexes in the write set of some group."""
        return [
            index
            for index in range(len(self.ensemble))
            if any(_belongs_on(group.record, index) for group in self.groups)
        ]

    def _round(self, turn: Iterable[int], notes: Iterable[steps.Instruction]) -> "Step":
        asked = [index for index in turn if self.ensemble[index] in self.known]
        written = tuple((index, damaged) for index, damaged in self.written if index not in asked)
        state = replace(self, awaited=frozenset(asked), written=written)
        return state._going_on([*notes, *(self._instruction(index) for index in asked)])

    def _instruction(self, index: int) -> steps.WriteBack:
        member = self.ensemble[index]
        is_fenced = index in self.fenced and member == self.ledger.last_fragment.ensemble[index]
        groups = tuple(group for group in self.groups if _belongs_on(group.record, index))
        return steps.WriteBack(index, member, groups, must_fence=not is_fenced)

    def _going_on(self, instructions: Collection[steps.Instruction]) -> "Step":
        """Wait for the rest of the round; then end, or ask for spares."""
        if self.awaited or self.outcome is not None:
            return self, tuple(instructions)
        short = self._first_short()
        if short is None:
            return self._done(instructions)
        if self.unreadable:
            stuck = say.cannot_be_read(self.ledger, short, self.unreadable)
            return replace(self, outcome=stuck), tuple(instructions)
        good = frozenset(self.ensemble[index] for index, damaged in self.written if not damaged)
        before = (*self.ensemble, *self.ledger.last_fragment.ensemble)
        exclude = {*(member.bookie_id for member in before), *(name for name, _ in self.problems)}
        failed = tuple(self._failed)
        chosen = steps.ChooseSpares(len(failed), frozenset(exclude), good, self.ensemble, failed)
        return self, (*instructions, chosen)

    @property
    def _failed(self) -> list[int]:
        """The members to replace by spares: without a copy first, then with a damaged copy."""
        written = dict(self.written)
        failed = [index for index in self._owners if index not in written]
        failed += [index for index in self._owners if written.get(index)]
        return failed

    def _stand_in(self, spares: Collection[Member]) -> "Step":
        """Begin the next round, with each of ``spares`` in the place of a failed member."""
        places = dict(zip(self._failed, spares))
        short = self._first_short()
        if not places and short is not None:
            problems = dict(self.problems).values()
            count = self._needed.ack_quorum_size
            return replace(self, outcome=say.too_few(self.ledger, short, count, problems)), ()
        notes = [
            Note(f"{spare.bookie_id} replaces {self.ensemble[index].bookie_id}")
            for index, spare in places.items()
        ]
        state = replace(
            self,
            ensemble=tuple(places.get(i, member) for i, member in enumerate(self.ensemble)),
            known=(*self.known, *spares),
        )
        return state._round(places, notes)

    @property
    def _needed(self) -> Quorum:
        """The quorum that must have the groups (rule 1)."""
        quorum = self.ledger.quorum
        return quorum.full if self.ledger.settings.guarantees_write_quorum else quorum

    def _first_short(self) -> AddRecord | None:
        """Return the first group with too few copies of its record or of an entry log."""
        quorum, written = self._needed, dict(self.written)
        for group in self.groups:
            record = group.record
            if not all(quorum.is_ack_quorum(ws, written) for ws in record.write_sets()):
                return record
            for piece in record.pieces:
                holders = [index for index, damaged in written.items() if piece not in damaged]
                if not quorum.is_ack_quorum(quorum.write_set(piece[1]), holders):
                    return record
        return None

    def _done(self, instructions: Iterable[steps.Instruction]) -> "Step":
        before, written = self.ledger.last_fragment.ensemble, dict(self.written)
        pairs = enumerate(zip(before, self.ensemble, strict=True))
        ensemble = tuple(new if index in written else old for index, (old, new) in pairs)
        plural = "" if len(self.groups) == 1 else "s"
        count = f"{len(self.groups)} group{plural} to {len(written)} bookies"
        notes = [Note(f"wrote back {count}")]
        lacking = [before[index].bookie_id for index in self._owners if index not in written]
        if lacking:
            line = f"closing the ledger without copies on {', '.join(lacking)}"
            notes.append(Note(line, is_warning=True))
        return replace(self, outcome=Replicated(ensemble)), (*instructions, *notes)


Step = tuple[Replication, tuple[steps.Instruction, ...]]


def _belongs_on(group: AddRecord, index: int) -> bool:
    return any(index in write_set for write_set in group.write_sets())
