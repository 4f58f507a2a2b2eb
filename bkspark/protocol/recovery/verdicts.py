"""What a recovery may conclude from the bookies' answers.

Rule 1. The recovery reads from the last fragment's ensemble as named when the recovery began, and
reads no entry before that fragment: earlier fragments are complete (RB-02, RB-05).

Rule 2. A group of entries is *kept* if every one of its rows has a good copy among the answers. A
single copy is enough, since digests tell good from bad ("positive generous"). Copies are judged
file by file: a bad copy says nothing about the bookie's other copies.

Rule 3. A group is *absent* if some write set of the group has (Qw - Qa) + 1 proofs of absence, each
from a bookie fenced before the look ("negative strict"). Such a group never was, and never can be,
acknowledged.

Rule 4. Any other group is undecided while a member is silent (RB-31): recovery stops and names the
members to wait for. Any member of the ensemble counts, because a member without a copy may still
know that the entry is confirmed. A torn last record is such a doubt too, and becomes an absence
only when every member of the write set has answered, none is lost or damaged, and none has the
record (H22). Damage in the middle of a journal never becomes an absence: earlier records are
believed, because digests tell, and the damaged part is unknown (RB-11). If a member's journals are
unclear, the member counts as silent until the cause is removed, except for the records shown. So
does a member that can be read and not fenced: its writer may still write to it.

Rule 5. A member declared lost for ever by an operator has answered, but its answer proves no
absence, and the recovery stops waiting for it. The same holds if the member comes back: its records
count, but its missing data is not evidence. If all members have answered and only lost or damaged
members could decide, the group is *lost*: no answer will ever decide, and only the operator's
explicit consent may close the ledger before the group. So a lost member beside the torn end of a
killed writer needs consent, though the end was never acknowledged: a disk fault leaves the same
trace. A member has lost data of the ledger if files are missing that the member took before the
metadata named it. Such a member counts as declared lost for the ledger, now and for ever (R18,
RB-14). So does a member without a record that it had according to other records (R14, see
``evidence``).

Rule 6. The ledger is never closed below a last-add-confirmed seen anywhere (R14, H20).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, Piece


class Verdict(Enum):
    """The verdict on the group that begins at a given entry."""

    KEEP = "every row has a good copy"
    ABSENT = "it was never acknowledged and never can be"
    UNDECIDED = "more bookies must answer"
    LOST = "it may have been acknowledged, and only lost or damaged bookies could tell"


class Doubt(Enum):
    """Why records may have been on a member although the member does not show them."""

    TORN = "its journal ends in an incomplete record"
    DAMAGED = "its journal is damaged in the middle"
    LOST = "an operator declared it lost for ever"
    UNCLEAR = "a strange file lies among its journals, or a listed journal cannot be read"
    DATA_LOST = "it lacks data that it had stored"
    UNFENCED = "it can be read, but not fenced"


WAITED_FOR = (Doubt.UNCLEAR, Doubt.UNFENCED)
"""Doubts that may still be cleared up; such a member counts as silent."""

CAN_TELL = (None, Doubt.TORN)
"""With these, missing data of a member may be a proof."""


@dataclass(frozen=True, slots=True)
class MemberAnswer:
    """What a member of the ensemble showed after being fenced.

    Attributes:
        records: good records by first entry id, with their pieces that have a good copy here.
        doubt: None if records outside ``records`` are surely not there.
    """

    records: Mapping[int, tuple[AddRecord, frozenset[Piece]]] = field(hash=False)
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """The verdict on the group that begins at ``first_entry_id``, with its reasons.

    Attributes:
        record: the group's record if any member has it.
        waiting_for: ensemble indexes whose answers could still decide; for a lost group, the lost
            or damaged members.
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
        answers: by ensemble index; without members that did not answer, unless declared lost.
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
    """Return the highest LAC in any record, at least ``floor``."""
    seen = (
        record.last_add_confirmed
        for answer in answers.values()
        for record, _ in answer.records.values()
    )
    return max(seen, default=floor) if floor < 0 else max([floor, *seen])


def _needed_write_sets(
    first_entry_id: int, record: AddRecord | None, quorum: Quorum
) -> tuple[tuple[int, ...], ...]:
    """Return the write sets needed; without a record only the first entry's is sure to be."""
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
