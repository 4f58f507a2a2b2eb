"""What a recovery may conclude from what the bookies answered.

Rule 1. Everything is read from the last fragment's ensemble as it was when the recovery began, and
nothing below that fragment: earlier fragments are complete (RB-02, RB-05).

Rule 2. A group of entries is *kept* if every one of its rows has a good copy among the answers: one
is enough, since digests tell good from bad ("positive generous"). Copies are judged file by file:
that a bookie has a bad one says nothing about the others it has.

Rule 3. A group is *absent* if some write set that it needs has (Qw - Qa) + 1 proofs of absence,
each from a bookie that was fenced before it was looked at ("negative strict"). It then never was,
and never can be, acknowledged.

Rule 4. Anything else is undecided while a member is silent (RB-31): recovery stops and says whom it
waits for. Any member of the ensemble: one that has no copy may still know that the entry is
confirmed. A torn last record is such a doubt too; it becomes an absence only when every member of
the write set has answered, none is lost or damaged, and none has the record (H22). Damage in the
middle of a journal never becomes one: what stands before it is believed, because digests tell, and
what it may have held is unknown (RB-11). What is strange among a member's journals, as long as
nobody has cleared it up, is as good as silence, but for what the member shows all the same. So is a
member that can be read and not be fenced: its writer may still write to it.

Rule 5. A member that an operator declared lost for ever has answered, but its answer says nothing:
it is waited for no more, and is no proof of an absence. That holds as well if it comes back: what
it shows counts, and what it lacks may have been lost. Where everybody has answered and only members
that are lost or damaged could tell, the group is *lost*: no answer will ever decide, and nothing
but the operator's explicit word may close the ledger in front of it. So a lost member beside the
torn end of a killed writer takes the word, though the end was never acknowledged: a disk fault
leaves the same trace. A member that lacks what it took before the metadata named it has lost data
of this ledger: for the ledger it is as good as declared lost, now and for ever (R18, RB-14). So has
one that lacks what a record says it had (R14, see ``evidence``).

Rule 6. The ledger is never closed below a last-add-confirmed that was seen anywhere (R14, H20).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, Piece


class Verdict(Enum):
    """What is known about the group that begins at one entry."""

    KEEP = "every row has a good copy"
    ABSENT = "it never was acknowledged and never can be"
    UNDECIDED = "more bookies must answer"
    LOST = "it may have been acknowledged, and only what is lost or damaged could tell"


class Doubt(Enum):
    """Why what a member does not show may have been there all the same."""

    TORN = "its journal ends in an incomplete record, whatever that may have been"
    DAMAGED = "its journal is damaged with something behind the damage"
    LOST = "an operator declared it lost for ever, whether or not it came back"
    UNCLEAR = "what lies among its journals is none, or one that was listed cannot be read"
    DATA_LOST = "it lacks what it took before the metadata named it, or is known to have had"
    UNFENCED = "it can be read but not be fenced"


WAITED_FOR = (Doubt.UNCLEAR, Doubt.UNFENCED)
"""What may be cleared up yet: as good as silence."""

CAN_TELL = (None, Doubt.TORN)
"""What a member lacks may be a proof."""


@dataclass(frozen=True, slots=True)
class MemberAnswer:
    """What one member of the ensemble showed after it was fenced.

    Attributes:
        records: good records by first entry id, with the pieces it has a good copy of.
        doubt: None if what is not in ``records`` is surely not there.
    """

    records: Mapping[int, tuple[AddRecord, frozenset[Piece]]] = field(hash=False)
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """The verdict on the group that begins at ``first_entry_id``, and what it rests on.

    Attributes:
        record: the group's record if any member has it.
        waiting_for: ensemble indexes whose answers could still decide; if it is lost, those that
            are lost or damaged.
    """

    first_entry_id: int
    verdict: Verdict
    record: AddRecord | None = None
    waiting_for: tuple[int, ...] = ()


def decide_group(
    first_entry_id: int, answers: Mapping[int, MemberAnswer], quorum: Quorum
) -> GroupDecision:
    """Decide about the group that begins at ``first_entry_id``.

    Args:
        answers: by ensemble index; a member that did not answer surely is not in it, unless it was
            declared lost.
    """
    holders = {
        index: answer.records[first_entry_id]
        for index, answer in answers.items()
        if first_entry_id in answer.records
    }
    record = next((found for found, _ in holders.values()), None)
    held = frozenset[Piece]().union(*(pieces for _, pieces in holders.values()))
    if record is not None and record.pieces <= held:
        return GroupDecision(first_entry_id, Verdict.KEEP, record)
    write_sets = _needed_write_sets(first_entry_id, record, quorum)
    if any(_is_absent(write_set, holders, answers, quorum) for write_set in write_sets):
        return GroupDecision(first_entry_id, Verdict.ABSENT, record)
    silent = tuple(index for index in range(quorum.ensemble_size) if index not in answers)
    silent += tuple(index for index, one in answers.items() if one.doubt in WAITED_FOR)
    if silent:
        return GroupDecision(first_entry_id, Verdict.UNDECIDED, record, silent)
    needed = sorted({index for write_set in write_sets for index in write_set})
    unable = tuple(i for i in needed if i in holders or answers[i].doubt not in CAN_TELL)
    return GroupDecision(first_entry_id, Verdict.LOST, record, unable)


def last_add_confirmed(answers: Mapping[int, MemberAnswer], floor: int) -> int:
    """The highest LAC that any record carries, at least ``floor``."""
    seen = (
        record.last_add_confirmed
        for answer in answers.values()
        for record, _ in answer.records.values()
    )
    return max(seen, default=floor) if floor < 0 else max([floor, *seen])


def _needed_write_sets(
    first_entry_id: int, record: AddRecord | None, quorum: Quorum
) -> tuple[tuple[int, ...], ...]:
    """Without any copy of the record only its first entry's write set is sure to be needed."""
    return record.write_sets() if record is not None else (quorum.write_set(first_entry_id),)


def _is_absent(
    write_set: Sequence[int],
    holders: Mapping[int, object],
    answers: Mapping[int, MemberAnswer],
    quorum: Quorum,
) -> bool:
    doubts = {i: answers[i].doubt for i in write_set if i in answers and i not in holders}
    can_all_tell = all(doubt in CAN_TELL for doubt in doubts.values())
    is_shown_nowhere = len(doubts) == len(write_set) and can_all_tell
    proofs = CAN_TELL if is_shown_nowhere else (None,)
    return quorum.is_absent(write_set, [i for i, doubt in doubts.items() if doubt in proofs])
