"""Which entries are gone, or may be, because bookies are, or because their journals are damaged.

Rule 1. An entry is acknowledged on Qa members of its write set. Where fewer of them are gone or
damaged, some other member has it.

Rule 2. Where Qa or more are, it may have been on those only; where all Qw are, it was. Nobody may
find that out from a read that fails one day.

Rule 3. Which entries of a fragment lie on which write set only their records tell (a DataFrame's
rows are cut into stripes at the task's own offset), and the records may be gone as well. So a loss
names a range of entries and the members, not each entry.

Rule 4. Entries are acknowledged in order, and a ledger has no gaps. So an entry that is whole is
given up with one in front of it that is, unless both are confirmed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.recovery.verdicts import MemberAnswer, Verdict, decide_group

Span = tuple[int, int | None]
"""First and last entry; None where no end is known."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Those entries of ``[first, last]`` that lie on one write set of their fragment.

    Attributes:
        members: the write set, in write order.
        gone: its members that are gone, or whose journals are damaged there; at least Qa of them.
        damaged: those of them that are not gone.
    """

    first_entry_id: int
    last_entry_id: int
    members: tuple[Member, ...]
    gone: tuple[Member, ...]
    damaged: tuple[Member, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether no member is left that could have them."""
        return self.gone == self.members


def losses(
    ledger: LedgerMetadata,
    gone: Collection[Member],
    last_entry_id: int,
    damaged: Mapping[Member, Sequence[Span]] = MappingProxyType({}),
) -> list[Loss]:
    """What is, or may be, lost of the entries up to ``last_entry_id``.

    Args:
        gone: members that have nothing any more.
        last_entry_id: the last confirmed entry, -1 if there is none.
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
    """What is left of ``hidden`` without the entries ``shown`` elsewhere."""
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
    """Entries that a ledger loses if it is closed in front of them.

    Attributes:
        is_whole: whether they could be kept, if nothing were missing in front of them.
    """

    first_entry_id: int
    last_entry_id: int
    is_whole: bool


def given_up(
    first_entry_id: int, answers: Mapping[int, MemberAnswer], quorum: Quorum
) -> list[GivenUp]:
    """What is known of the entries from ``first_entry_id`` on, up to the last one that shows."""
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
    """Put ``more`` behind ``found``, into one with its neighbour if they are alike."""
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
