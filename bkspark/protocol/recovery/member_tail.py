"""A bookie's answer to a recovery about a ledger's end, checked against other answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bkspark.protocol.ledger import evidence
from bkspark.protocol.ledger.evidence import Stored
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata
from bkspark.protocol.ledger.record import AddRecord
from bkspark.protocol.recovery.losses import Span, not_shown
from bkspark.protocol.recovery.verdicts import CAN_TELL, Doubt, MemberAnswer


@dataclass(frozen=True, slots=True)
class MemberTail:
    """The unconfirmed end of a ledger on a fenced bookie.

    Attributes:
        parts: by first entry id of the record, the messages stored there by stripe.
        confirmed: the record that ends the confirmed entries, if this bookie has it.
        problem: why the answer is in doubt, in one line; empty without a doubt.
        hidden: first and last entries that damage may hide here, or that were lost here, without
            those shown here; None as the last entry if no good record follows.
        is_fenced: whether the bookie was fenced before the read.
        reached: the last entry of the newest record from the ledger's writer, -1 without any.
        had: what the ensemble's members had, according to the records here.
        last_add_fully_replicated: according to the records here, if the ledger guarantees its write
            quorum; else -1.
        is_begun: whether the writer's own journal shows any record, even only a header.
    """

    answer: MemberAnswer
    parts: Mapping[int, Mapping[int, bytes]] = field(hash=False)
    last_add_confirmed: int
    confirmed: AddRecord | None
    problem: str = ""
    hidden: tuple[Span, ...] = ()
    is_fenced: bool = True
    reached: int = INVALID_ENTRY_ID
    had: Stored = field(default_factory=dict, hash=False)
    is_begun: bool = False
    last_add_fully_replicated: int = INVALID_ENTRY_ID

    def doubted(self, doubt: Doubt, problem: str) -> "MemberTail":
        """Return the tail with another doubt, which includes the present doubts."""
        problems = "; ".join(filter(None, (problem, self.problem)))
        return replace(
            self,
            answer=replace(self.answer, doubt=doubt),
            problem=problems,
            is_fenced=doubt is not Doubt.UNFENCED,
        )

    def without(self, first_entry_id: int, problem: str) -> "MemberTail":
        """Return the tail of a bookie that has lost its data from an entry on."""
        records = self.answer.records.items()
        shown = [(first, record.last_entry_id) for first, (record, _) in records]
        hidden = tuple(not_shown([(first_entry_id, None)], shown))
        return replace(self.doubted(Doubt.DATA_LOST, problem), hidden=(*self.hidden, *hidden))


def lost_data(tails: Mapping[int, MemberTail], ledger: LedgerMetadata) -> dict[int, MemberTail]:
    """Return, with a doubt, the tails of bookies that lack what a record says they had (R14).

    All were fenced before the read, so every counted record was there to be read.
    """
    had = evidence.together(tail.had for tail in tails.values())
    sure = {i: tail for i, tail in tails.items() if tail.answer.doubt in CAN_TELL}
    lacking = evidence.lacking(had, {index: tail.reached for index, tail in sure.items()})
    fragment = ledger.last_fragment
    return {
        index: tails[index].without(
            max(tails[index].reached + 1, fragment.first_entry_id),
            f"bookie {fragment.ensemble[index].bookie_id} has lost data of ledger "
            f"{ledger.ledger_id}: it had entry {entry_id}, and its journal ends before that "
            "entry",
        )
        for index, entry_id in lacking.items()
    }
