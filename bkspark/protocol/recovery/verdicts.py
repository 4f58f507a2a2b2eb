"""What a recovery may conclude from the bookies' answers, and which entries may be lost."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from bkspark.protocol.ledger import evidence
from bkspark.protocol.ledger.evidence import Stored
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, Fragment, LedgerMetadata, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, Piece

# --- verdicts ------------------------------------------------------------------------------------
# What a recovery may conclude from the bookies' answers.
#
# Rule 1. The recovery reads from the last fragment's ensemble as named when the recovery began, and
# reads no entry before that fragment: earlier fragments are complete (RB-02, RB-05).
#
# Rule 2. A group of entries is *kept* if every one of its rows has a good copy among the answers. A
# single copy is enough, since digests tell good from bad ("positive generous"). Copies are judged
# file by file: a bad copy says nothing about the bookie's other copies.
#
# Rule 3. A group is *absent* if some write set of the group has (Qw - Qa) + 1 proofs of absence,
# each from a bookie fenced before the look ("negative strict"). Such a group never was, and never
# can be, acknowledged.
#
# Rule 4. Any other group is undecided while a member is silent (RB-31): recovery stops and names
# the members to wait for. Any member of the ensemble counts, because a member without a copy may
# still know that the entry is confirmed. A torn last record is such a doubt too, and becomes an
# absence only when every member of the write set has answered, none is lost or damaged, and none
# has the record (H22). Damage in the middle of a journal never becomes an absence: earlier records
# are believed, because digests tell, and the damaged part is unknown (RB-11). If a member's
# journals are unclear, the member counts as silent until the cause is removed, except for the
# records shown. So does a member that can be read and not fenced: its writer may still write to it.
#
# Rule 5. A member declared lost for ever by an operator has answered, but its answer proves no
# absence, and the recovery stops waiting for it. The same holds if the member comes back: its
# records count, but its missing data is not evidence. If all members have answered and only lost or
# damaged members could decide, the group is *lost*: no answer will ever decide, and only the
# operator's explicit consent may close the ledger before the group. So a lost member beside the
# torn end of a killed writer needs consent, though the end was never acknowledged: a disk fault
# leaves the same trace. A member has lost data of the ledger if files are missing that the member
# took before the metadata named it. Such a member counts as declared lost for the ledger, now and
# for ever (R18, RB-14). So does a member without a record that it had according to other records
# (R14, see ``evidence``).
#
# Rule 6. The ledger is never closed below a last-add-confirmed seen anywhere (R14, H20).


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


# --- losses --------------------------------------------------------------------------------------
# Entries that are lost, or may be, because bookies are gone or journals are damaged.
#
# Rule 1. An entry is acknowledged on Qa members of its write set. If fewer members are gone or
# damaged, some other member has the entry.
#
# Rule 2. If Qa or more are, the entry may have been on those only; if all Qw are, the entry was.
# The recovery reports both, so that no reader discovers the loss later by a failed read.
#
# Rule 3. Only a fragment's records tell which entries lie on which write set (a DataFrame's rows
# are cut into stripes at the task's own offset), and the records may be gone too. So a loss names a
# range of entries and the members, not each entry.
#
# Rule 4. Entries are acknowledged in order, and a ledger has no gaps. So if an entry is given up,
# all later unconfirmed entries are too, even with complete copies.


Span = tuple[int, int | None]
"""First and last entry; None without a known end."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The entries of ``[first, last]`` on one write set of their fragment.

    Attributes:
        members: the write set, in write order.
        gone: its members that are gone, or whose journals are damaged there; at least Qa of them.
        damaged: members of ``gone`` whose journals are damaged.
    """

    first_entry_id: int
    last_entry_id: int
    members: tuple[Member, ...]
    gone: tuple[Member, ...]
    damaged: tuple[Member, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether no remaining member could have the entries."""
        return self.gone == self.members


def losses(
    ledger: LedgerMetadata,
    gone: Collection[Member],
    last_entry_id: int,
    damaged: Mapping[Member, Sequence[Span]] = MappingProxyType({}),
) -> list[Loss]:
    """Return the losses, certain or possible, of the entries up to ``last_entry_id``.

    Args:
        gone: members that have lost everything.
        last_entry_id: the last confirmed entry, -1 without any.
        damaged: the entries that damage may hide on other members.
    """
    hidden = {**damaged, **dict.fromkeys(gone, ((0, None),))}
    ends = [fragment.first_entry_id - 1 for fragment in ledger.fragments[1:]]
    found: list[Loss] = []
    for fragment, end in zip(ledger.fragments, [*ends, last_entry_id], strict=True):
        for loss in _of_fragment(ledger.quorum, fragment, hidden, end):
            there = tuple(member for member in loss.gone if member not in gone)
            found.append(replace(loss, damaged=there))
    return found


def not_shown(hidden: Iterable[Span], shown: Iterable[tuple[int, int]]) -> Iterator[Span]:
    """Yield the rest of ``hidden`` without the entries ``shown`` elsewhere."""
    covered = sorted(shown)
    for first, last in hidden:
        at = first
        for begin, end in covered:
            if last is not None and begin > last:
                break
            if begin > at:
                yield at, begin - 1
            at = max(at, end + 1)
        if last is None or at <= last:
            yield at, last


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Entries lost by closing the ledger before their first.

    Attributes:
        is_whole: whether the entries have complete copies, and are lost only for lack of earlier
            ones.
    """

    first_entry_id: int
    last_entry_id: int
    is_whole: bool


def given_up(
    first_entry_id: int, answers: Mapping[int, MemberAnswer], quorum: Quorum
) -> list[GivenUp]:
    """Return what is known of the entries from ``first_entry_id`` to the last entry shown."""
    ends = {
        first: record.last_entry_id
        for answer in answers.values()
        for first, (record, _) in answer.records.items()
    }
    found: list[GivenUp] = []
    at = first_entry_id
    for first, last in sorted(ends.items()):
        if first < at:
            continue
        if first > at:
            _add(found, GivenUp(at, first - 1, is_whole=False))
        is_whole = decide_group(first, answers, quorum).verdict is Verdict.KEEP
        _add(found, GivenUp(first, last, is_whole))
        at = last + 1
    return found


def _add(found: list[GivenUp], more: GivenUp) -> None:
    """Append ``more`` to ``found``, merged with the last range if alike."""
    if found and found[-1].is_whole == more.is_whole:
        found[-1] = replace(found[-1], last_entry_id=more.last_entry_id)
    else:
        found.append(more)


def _of_fragment(
    quorum: Quorum, fragment: Fragment, hidden: Mapping[Member, Sequence[Span]], last_entry_id: int
) -> Iterator[Loss]:
    first = fragment.first_entry_id
    for write_set in quorum.write_sets() if first <= last_entry_id else ():
        members = tuple(fragment.ensemble[index] for index in write_set)
        spans = [span for member in members for span in hidden.get(member, ())]
        begins = {first, *(b for b, _ in spans), *(e + 1 for _, e in spans if e is not None)}
        inside = sorted(begin for begin in begins if first <= begin <= last_entry_id)
        pieces: list[Loss] = []
        for begin, following in zip(inside, [*inside[1:], last_entry_id + 1], strict=True):
            missing = tuple(m for m in members if _hides(hidden.get(m, ()), begin))
            if len(missing) < quorum.ack_quorum_size:
                continue
            piece = Loss(begin, following - 1, members, missing)
            if pieces and (pieces[-1].gone, pieces[-1].last_entry_id) == (missing, begin - 1):
                piece = replace(pieces.pop(), last_entry_id=piece.last_entry_id)
            pieces.append(piece)
        yield from pieces


def _hides(spans: Iterable[Span], entry_id: int) -> bool:
    return any(first <= entry_id and (last is None or entry_id <= last) for first, last in spans)


# --- member tail ---------------------------------------------------------------------------------
# A bookie's answer to a recovery about a ledger's end, checked against other answers.


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
