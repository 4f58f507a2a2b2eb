"""What a recovery has found out, and what it decides from that."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.record import AddRecord
from bkspark.protocol.recovery.losses import Loss, Span, losses, not_shown
from bkspark.protocol.recovery.member_tail import MemberTail, lost_data
from bkspark.protocol.recovery.steps import Failure, KeptGroup, Note, Silence
from bkspark.protocol.recovery.verdicts import Doubt, MemberAnswer, Verdict, decide_group


@dataclass(frozen=True, slots=True)
class Term:
    """What a recovery has taken over.

    Attributes:
        ledger: as it was stored then.
        known: registered bookies.
        number: how many terms this recovery has taken, this one among them.
        writer_token: of whom the ledger is set OPEN for again; empty if it is to be closed.
    """

    ledger: LedgerMetadata
    known: tuple[Member, ...]
    number: int
    writer_token: str = ""

    @property
    def ensemble(self) -> tuple[Member, ...]:
        """Whom it asks: the members that the writer wrote to (RB-05)."""
        return self.ledger.last_fragment.ensemble

    @property
    def floor(self) -> int:
        """The last entry in front of the last fragment: nothing up to it is in question (RB-02)."""
        return self.ledger.last_fragment.first_entry_id - 1

    @property
    def confirmed(self) -> int:
        """The last entry that is acknowledged by the metadata alone."""
        return max(self.floor, self.ledger.last_fragment.confirmed)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a recovery decides from: one look at the members, and who was declared lost.

    Attributes:
        heard: by ensemble index; None where an answer is awaited.
        lost: who was declared lost.
    """

    term: Term
    heard: tuple[MemberTail | Failure | None, ...]
    lost: frozenset[Member] = frozenset()

    @classmethod
    def of(cls, term: Term) -> "Evidence":
        """Nothing is heard yet but of those that were initialised anew."""
        gone = (
            None
            if member in term.known
            else Failure(f"{member.bookie_id} was initialised anew, its data is gone")
            for member in term.ensemble
        )
        return cls(term, tuple(gone))

    def hearing(self, index: int, answer: MemberTail | Failure) -> "Evidence":
        heard = (answer if i == index else other for i, other in enumerate(self.heard))
        return replace(self, heard=tuple(heard))

    def judged(self) -> "Evidence":
        """The same when all have been heard: one may lack what others say that it had (R14)."""
        lost = lost_data(self.tails, self.term.ledger)
        return replace(self, heard=tuple(lost.get(i, one) for i, one in enumerate(self.heard)))

    @property
    def silent(self) -> frozenset[int]:
        """Who was waited for in vain."""
        return frozenset(i for i, one in enumerate(self.heard) if isinstance(one, Silence))

    @property
    def tails(self) -> dict[int, MemberTail]:
        return {i: one for i, one in enumerate(self.heard) if isinstance(one, MemberTail)}

    @property
    def shows_loss(self) -> bool:
        """Whether a member lacks, or cannot show, what the metadata says that it has taken."""
        doubts = (tail.answer.doubt for tail in self.tails.values())
        return any(doubt in (Doubt.DATA_LOST, Doubt.UNCLEAR) for doubt in doubts)

    @property
    def problems(self) -> dict[int, str]:
        """Why answers are in doubt, or missing, in one line each."""
        lines = (one.problem if isinstance(one, MemberTail) else str(one) for one in self.heard)
        return {index: line for index, line in enumerate(lines) if line}

    @property
    def told(self) -> list[Note]:
        """Which members have answered, and what is the matter with the others, for people."""
        names = [self.term.ensemble[index].bookie_id for index in self.tails]
        notes = [Note(f"fenced and read {', '.join(names) or 'no bookie'}")]
        for index, problem in self.problems.items():
            kind = "in doubt" if index in self.tails else "no answer"
            notes.append(Note(f"{kind}: {problem}", is_warning=True))
        return notes

    def answers(self) -> tuple[dict[int, MemberAnswer], list[Note]]:
        """What was answered, with those that never will because they are lost.

        One that was lost and answers all the same may have come back without what it had.
        """
        answers = {index: tail.answer for index, tail in self.tails.items()}
        notes: list[Note] = []
        for index, member in enumerate(self.term.ensemble):
            if member not in self.lost:
                continue
            was_declared = f"{member.bookie_id} was declared lost"
            if index not in answers:
                answers[index] = MemberAnswer({}, Doubt.LOST)
                notes.append(Note(f"{was_declared} and is waited for no more"))
                continue
            if answers[index].doubt is not Doubt.DAMAGED:
                answers[index] = replace(answers[index], doubt=Doubt.LOST)
            notes.append(
                Note(
                    f"{was_declared}, and answers all the same: what it shows counts, what it "
                    "lacks proves nothing"
                )
            )
        return answers, notes

    def lagging(self, confirmed: int) -> tuple[tuple[AddRecord, ...], tuple[Span, ...]]:
        """What is confirmed and may have fewer copies than the ledger guarantees.

        Returns the records that are shown with all their rows, in order, and the entries of which
        nobody shows any.
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
        """The group with its inline rows, put together from whoever has them."""
        first, parts = record.first_entry_id, dict[int, bytes]()
        for tail in self.tails.values():
            parts.update(tail.parts.get(first, {}))
        holders = [i for i, tail in self.tails.items() if first in tail.answer.records]
        members = tuple(self.term.ensemble[index] for index in holders)
        return KeptGroup(record, parts, members if record.attempts else ())

    def record_that_ends_at(self, entry_id: int) -> AddRecord | None:
        """The record, if a member has shown it."""
        for tail in self.tails.values():
            shown = [record for record, _ in tail.answer.records.values()]
            for record in (*shown, tail.confirmed):
                if record is not None and record.last_entry_id == entry_id:
                    return record
        return None

    def losses(self, confirmed: int) -> list[Loss]:
        """Which confirmed entries are gone, with their bookies or by damage, or may be."""
        ledger = self.term.ledger
        members = {member for fragment in ledger.fragments for member in fragment.ensemble}
        gone = {m for m in members if m in self.lost or m not in self.term.known}
        damaged = {self.term.ensemble[index]: tail.hidden for index, tail in self.tails.items()}
        return losses(ledger, gone, confirmed, damaged)

    def not_lost(self, indexes: Iterable[int]) -> tuple[Member, ...]:
        """Who of them is waited for: one that is lost decides nothing."""
        members = (self.term.ensemble[index] for index in indexes)
        return tuple(member for member in members if member not in self.lost)

    @property
    def unfit(self) -> frozenset[Member]:
        """Who gave no answer behind the fence, or is lost."""
        ensemble = self.term.ensemble
        heard = {ensemble[index] for index, tail in self.tails.items() if tail.is_fenced}
        return frozenset(member for member in ensemble if member not in heard - self.lost)

    @property
    def unsure(self) -> tuple[Member, ...]:
        """Who gave no sure answer and is not lost."""
        return self.not_lost(self.problems)


@dataclass(frozen=True, slots=True)
class Decision:
    """Where the ledger is to end.

    Attributes:
        confirmed: the last add confirmed.
        kept: the groups beyond it, in order.
        lagging: groups up to it that are to get all their copies, in order.
        end: the last entry.
        last: the record that says the length and the transactions up to there; None of an empty
            ledger, or if none is left.
        lost_from: first entry lost on the operator's word.
        given_up: what is lost so, in words.
        losses: what is, or may be, lost of the confirmed entries, in words.
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
        """All that is to be on its members before the ledger is closed."""
        return (*self.lagging, *self.kept)

    def giving_up(self, first: int, loss: str) -> tuple["Decision", Note]:
        """The same on the operator's word, and what the closing may yet fail to give up."""
        line = f"will be lost if the ledger can be closed: {loss}"
        decision = replace(self, lost_from=first, given_up=(*self.given_up, loss))
        return decision, Note(line, is_warning=True)
