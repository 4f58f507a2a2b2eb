"""Entries that are lost, or may be, because bookies are gone or journals are damaged.

Rule 1. An entry is acknowledged on Qa members of its write set. If fewer members are gone or
damaged, some other member has the entry.

Rule 2. If Qa or more are, the entry may have been on those only; if all Qw are, the entry was. The
recovery reports both, so that no reader discovers the loss later by a failed read.

Rule 3. Only a fragment's records tell which entries lie on which write set (a DataFrame's rows are
cut into stripes at the task's own offset), and the records may be gone too. So a loss names a range
of entries and the members, not each entry.

Rule 4. Entries are acknowledged in order, and a ledger has no gaps. So if an entry is given up, all
later unconfirmed entries are too, even with complete copies.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.recovery.verdicts import MemberAnswer, Verdict, decide_group

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
