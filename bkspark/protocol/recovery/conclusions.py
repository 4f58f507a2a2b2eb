"""The evidence of a recovery, and the decision made from it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.record import AddRecord
from bkspark.protocol.recovery.steps import Failure, KeptGroup, Note, Silence
from bkspark.protocol.recovery.verdicts import (
    Doubt,
    Loss,
    MemberAnswer,
    MemberTail,
    Span,
    Verdict,
    decide_group,
    losses,
    lost_data,
    not_shown,
)


@dataclass(frozen=True, slots=True)
class Term:
    """A ledger taken over by a recovery.

    Attributes:
        ledger: as stored by the takeover.
        known: registered bookies.
        number: how many terms this recovery has taken, including this term.
        writer_token: token of the new writer; empty if the ledger is to be closed.
    """

    ledger: LedgerMetadata
    known: tuple[Member, ...]
    number: int
    writer_token: str = ""

    @property
    def ensemble(self) -> tuple[Member, ...]:
        """The members asked: those that the writer wrote to (RB-05)."""
        return self.ledger.last_fragment.ensemble

    @property
    def floor(self) -> int:
        """The last entry before the last fragment; all entries up to it are decided (RB-02)."""
        return self.ledger.last_fragment.first_entry_id - 1

    @property
    def confirmed(self) -> int:
        """The last entry acknowledged according to the metadata alone."""
        return max(self.floor, self.ledger.last_fragment.confirmed)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The basis of all decisions: the members' answers, and the members declared lost.

    Attributes:
        heard: by ensemble index; None while an answer is awaited.
        lost: members declared lost.
    """

    term: Term
    heard: tuple[MemberTail | Failure | None, ...]
    lost: frozenset[Member] = frozenset()

    @classmethod
    def of(cls, term: Term) -> "Evidence":
        """Begin without answers, except from members that were initialised anew."""
        gone = (
            None
            if member in term.known
            else Failure(f"{member.bookie_id} was initialised again, and its data is gone")
            for member in term.ensemble
        )
        return cls(term, tuple(gone))

    def hearing(self, index: int, answer: MemberTail | Failure) -> "Evidence":
        heard = (answer if i == index else other for i, other in enumerate(self.heard))
        return replace(self, heard=tuple(heard))

    def judged(self) -> "Evidence":
        """Return the evidence after all answers, with data losses shown by other members (R14)."""
        lost = lost_data(self.tails, self.term.ledger)
        return replace(self, heard=tuple(lost.get(i, one) for i, one in enumerate(self.heard)))

    @property
    def silent(self) -> frozenset[int]:
        """Ensemble indexes of the members that did not answer in time."""
        return frozenset(i for i, one in enumerate(self.heard) if isinstance(one, Silence))

    @property
    def tails(self) -> dict[int, MemberTail]:
        return {i: one for i, one in enumerate(self.heard) if isinstance(one, MemberTail)}

    @property
    def shows_loss(self) -> bool:
        """Whether a member lacks, or cannot show, what it took according to the metadata."""
        doubts = (tail.answer.doubt for tail in self.tails.values())
        return any(doubt in (Doubt.DATA_LOST, Doubt.UNCLEAR) for doubt in doubts)

    @property
    def problems(self) -> dict[int, str]:
        """The reasons why answers are in doubt or missing, in one line each."""
        lines = (one.problem if isinstance(one, MemberTail) else str(one) for one in self.heard)
        return {index: line for index, line in enumerate(lines) if line}

    @property
    def told(self) -> list[Note]:
        """Notes for operators: the members that answered, and the problems of the others."""
        names = [self.term.ensemble[index].bookie_id for index in self.tails]
        notes = [Note(f"fenced and read {', '.join(names) or 'no bookie'}")]
        for index, problem in self.problems.items():
            kind = "in doubt" if index in self.tails else "no answer"
            notes.append(Note(f"{kind}: {problem}", is_warning=True))
        return notes

    def answers(self) -> tuple[dict[int, MemberAnswer], list[Note]]:
        """Return the answers, with answers for lost members that will never give any.

        A lost member that answers may have come back without its data.
        """
        answers = {index: tail.answer for index, tail in self.tails.items()}
        notes: list[Note] = []
        for index, member in enumerate(self.term.ensemble):
            if member not in self.lost:
                continue
            was_declared = f"{member.bookie_id} was declared lost"
            if index not in answers:
                answers[index] = MemberAnswer({}, Doubt.LOST)
                notes.append(Note(f"{was_declared}, so the recovery does not wait for it"))
                continue
            if answers[index].doubt is not Doubt.DAMAGED:
                answers[index] = replace(answers[index], doubt=Doubt.LOST)
            notes.append(
                Note(
                    f"{was_declared} but answers: its records count, and its missing data is "
                    "not evidence"
                )
            )
        return answers, notes

    def lagging(self, confirmed: int) -> tuple[tuple[AddRecord, ...], tuple[Span, ...]]:
        """Return confirmed entries that may have fewer copies than the ledger guarantees.

        Returns the records shown with all their rows, in order, and the entries that no answer
        shows.
        """
        if not self.term.ledger.settings.guarantees_write_quorum:
            return (), ()
        answers, quorum = self.answers()[0], self.term.ledger.quorum
        said = (tail.last_add_fully_replicated for tail in self.tails.values())
        done = max([self.term.floor, *said])
        shown = sorted({first for answer in answers.values() for first in answer.records})
        groups = (decide_group(first, answers, quorum) for first in shown)
        good = (group.record for group in groups if group.verdict is Verdict.KEEP)
        found = [one for one in good if one and done < one.first_entry_id <= confirmed]
        spans = [(record.first_entry_id, record.last_entry_id) for record in found]
        return tuple(found), tuple(not_shown([(done + 1, confirmed)], spans))

    def kept(self, record: AddRecord) -> KeptGroup:
        """Return the group with its inline rows, collected from all members."""
        first, parts = record.first_entry_id, dict[int, bytes]()
        for tail in self.tails.values():
            parts.update(tail.parts.get(first, {}))
        holders = [i for i, tail in self.tails.items() if first in tail.answer.records]
        members = tuple(self.term.ensemble[index] for index in holders)
        return KeptGroup(record, parts, members if record.attempts else ())

    def record_that_ends_at(self, entry_id: int) -> AddRecord | None:
        """Return the record if a member has shown it."""
        for tail in self.tails.values():
            shown = [record for record, _ in tail.answer.records.values()]
            for record in (*shown, tail.confirmed):
                if record is not None and record.last_entry_id == entry_id:
                    return record
        return None

    def losses(self, confirmed: int) -> list[Loss]:
        """Return the confirmed entries that are, or may be, lost with bookies or by damage."""
        ledger = self.term.ledger
        gone = {m for m in Locations(ledger).members if m in self.lost or m not in self.term.known}
        damaged = {self.term.ensemble[index]: tail.hidden for index, tail in self.tails.items()}
        return losses(ledger, gone, confirmed, damaged)

    def not_lost(self, indexes: Iterable[int]) -> tuple[Member, ...]:
        """Return the members to wait for; a lost member decides nothing."""
        members = (self.term.ensemble[index] for index in indexes)
        return tuple(member for member in members if member not in self.lost)

    @property
    def unfit(self) -> frozenset[Member]:
        """The members that gave no answer after a fence, or are lost."""
        ensemble = self.term.ensemble
        heard = {ensemble[index] for index, tail in self.tails.items() if tail.is_fenced}
        return frozenset(member for member in ensemble if member not in heard - self.lost)

    @property
    def unsure(self) -> tuple[Member, ...]:
        """The members that gave no sure answer and are not lost."""
        return self.not_lost(self.problems)


@dataclass(frozen=True, slots=True)
class Decision:
    """Where the ledger is to end.

    Attributes:
        confirmed: the last add confirmed.
        kept: the later groups, in order.
        lagging: earlier groups that are to get all their copies, in order.
        end: the last entry.
        last: the record that states the length and the transactions up to the end; None in an empty
            ledger, or if no such record is left.
        lost_from: first entry lost with the operator's consent.
        given_up: the entries lost with the consent, in words.
        losses: confirmed entries that are, or may be, lost, in words.
    """

    confirmed: int
    kept: tuple[AddRecord, ...]
    end: int
    last: AddRecord | None = None
    lost_from: int | None = None
    given_up: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    lagging: tuple[AddRecord, ...] = ()

    @property
    def written_back(self) -> tuple[AddRecord, ...]:
        """All groups to write back before the ledger is closed."""
        return (*self.lagging, *self.kept)

    def giving_up(self, first: int, loss: str) -> tuple["Decision", Note]:
        """Return the decision with the operator's consent, and a note: the close may yet fail."""
        line = f"will be lost if the ledger can be closed: {loss}"
        decision = replace(self, lost_from=first, given_up=(*self.given_up, loss))
        return decision, Note(line, is_warning=True)
