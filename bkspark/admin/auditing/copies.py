"""How many good copies there are of what, per fragment, range and bookie.

Rule 1. What a bookie holds is known only if it answers. One that does not answer is *unknown*, and
what is unknown is never counted as missing: a range whose silent members could make it whole is
``UNKNOWN`` and no worse.

Rule 2. A bookie that was initialised anew, that is registered no more, or that is silent and was
declared lost, surely has nothing.

Rule 3. A record is needed by everybody whose write set has rows of it. A record that names entry
logs is needed by all: its rows may lie on any window.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bkspark.admin.auditing.holding import Holding, MissingFile, known_fragments
from bkspark.admin.auditing.ranges import Range, cut, has_entry_of, is_within
from bkspark.format import layout
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, Member
from bkspark.protocol.ledger.quorum import Quorum

EVERYTHING = "everything"
"""What a bookie lacks that has nothing of a fragment, or may have nothing."""


class Copies(Enum):
    """How many copies are left of an entry at best, the worst first."""

    NONE = "none"
    BELOW_ACK_QUORUM = "below ack quorum"
    BELOW_WRITE_QUORUM = "below write quorum"
    UNKNOWN = "unknown"


_ORDER = list(Copies)


def worst(found: Sequence[Copies]) -> Copies | None:
    """The worst of ``found``; None if there is none."""
    return min(found, key=_ORDER.index, default=None)


def classify(quorum: Quorum, *, held: int, unknown: int) -> Copies:
    """What it means that of a write set ``held`` members have an entry and others do not.

    Args:
        unknown: of the others, those of which it is not known.
    """
    possible = held + unknown
    if possible >= quorum.write_quorum_size:
        return Copies.UNKNOWN
    if possible >= quorum.ack_quorum_size:
        return Copies.BELOW_WRITE_QUORUM
    return Copies.BELOW_ACK_QUORUM if possible else Copies.NONE


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that a member should hold and that is not known to be there.

    Attributes:
        entries: first and last; rows of other stripes may lie between them.
        what: ``EVERYTHING``, the folder of its journals, or the name of an entry log.
        copies: how many there are of the worst of these entries.
        is_unknown: whether the bookie may hold it.
        reason: in one line.
    """

    ledger_id: int
    fragment_first_entry_id: int
    entries: Range
    member: Member
    what: str
    copies: Copies
    is_unknown: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Absent:
    """A member that cannot be looked at.

    Attributes:
        is_gone: whether it surely has nothing any more (rule 2).
    """

    reason: str
    is_gone: bool


Answer = Holding | Absent | None
"""What is known of a member and a ledger; None if it has all that it should have."""


def gaps(
    ledger: LedgerMetadata, answers: Mapping[Member, Answer], *, is_inline: bool | None
) -> Iterator[Gap]:
    """All that is missing, or may be, of the fragments of ``ledger`` whose entries are known.

    Args:
        is_inline: whether the ledger's records hold their rows; None if nobody shows one.
    """
    for fragment, entries in known_fragments(ledger):
        seen = [answers[member] for member in fragment.ensemble]
        if any(answer is not None for answer in seen):
            yield from _gaps_of_records(ledger, fragment, entries, seen, bool(is_inline))
            yield from _gaps_of_files(ledger, fragment, seen)


def _gaps_of_records(
    ledger: LedgerMetadata,
    fragment: Fragment,
    entries: Range,
    answers: Sequence[Answer],
    is_inline: bool,
) -> Iterator[Gap]:
    lacks = [_lacking(answer, fragment, entries) for answer in answers]
    found: dict[int, list[tuple[Range, Copies]]] = {}
    for piece in cut([entries, *(lack for ranges in lacks for lack in ranges)]):
        for index, copies in _of_piece(ledger.quorum, piece, lacks, answers, is_inline).items():
            ranges = found.setdefault(index, [])
            if ranges and ranges[-1][1] is copies and ranges[-1][0][1] + 1 == piece[0]:
                ranges[-1] = ((ranges[-1][0][0], piece[1]), copies)
            else:
                ranges.append((piece, copies))
    for index, ranges in sorted(found.items()):
        for span, copies in ranges:
            yield _gap(ledger, fragment, index, answers[index], span, copies)


def _of_piece(
    quorum: Quorum,
    piece: Range,
    lacks: Sequence[Sequence[Range]],
    answers: Sequence[Answer],
    is_inline: bool,
) -> dict[int, Copies]:
    """For each member that lacks a record of ``piece``: what there is of the worst of its rows."""
    lacking = [index for index, ranges in enumerate(lacks) if is_within(piece, ranges)]
    found: dict[int, Copies] = {}
    for stripe, write_set in enumerate(quorum.write_sets()):
        without = [index for index in write_set if index in lacking]
        if not without or (is_inline and not has_entry_of(piece, stripe, quorum)):
            continue
        unknown = sum(_is_unknown(answers[index]) for index in without)
        copies = classify(quorum, held=len(write_set) - len(without), unknown=unknown)
        for index in without:
            found[index] = worst([copies, found.get(index, copies)]) or copies
    return found


def _lacking(answer: Answer, fragment: Fragment, entries: Range) -> list[Range]:
    if answer is None:
        return []
    if isinstance(answer, Absent) or answer.unknown:
        return [entries]
    return answer.lacking_in(fragment)


def _is_unknown(answer: Answer) -> bool:
    if isinstance(answer, Absent):
        return not answer.is_gone
    return answer is not None and bool(answer.unknown)


def _gap(
    ledger: LedgerMetadata,
    fragment: Fragment,
    index: int,
    answer: Answer,
    entries: Range,
    copies: Copies,
) -> Gap:
    what, reason = EVERYTHING, ""
    if isinstance(answer, Absent):
        reason = answer.reason
    elif answer is not None and answer.unknown:
        reason = answer.unknown
    elif answer is not None:
        what = layout.journal_folder(ledger.ledger_id)
        reason = answer.problem or "its journals do not show the records"
    return Gap(
        ledger.ledger_id,
        fragment.first_entry_id,
        entries,
        fragment.ensemble[index],
        what,
        copies,
        _is_unknown(answer),
        reason,
    )


def _gaps_of_files(
    ledger: LedgerMetadata, fragment: Fragment, answers: Sequence[Answer]
) -> Iterator[Gap]:
    """Entry logs that are missing; those of members that cannot be looked at are not named."""
    missing: dict[str, dict[int, MissingFile]] = {}
    for index, answer in enumerate(answers):
        for file in answer.files if isinstance(answer, Holding) else ():
            if file.fragment_first_entry_id == fragment.first_entry_id:
                missing.setdefault(file.name, {})[index] = file
    for name, by_index in sorted(missing.items()):
        stripe = next(iter(by_index.values())).stripe
        window = ledger.quorum.write_set(stripe)
        silent = [i for i in window if _is_unknown(answers[i])]
        gone = [i for i in window if isinstance(answers[i], Absent) and i not in silent]
        held = len(window) - len(silent) - len({*gone, *by_index})
        copies = classify(ledger.quorum, held=held, unknown=len(silent))
        for index, file in sorted(by_index.items()):
            yield Gap(
                ledger.ledger_id,
                fragment.first_entry_id,
                file.entries,
                fragment.ensemble[index],
                name,
                copies,
                False,
                file.reason,
            )


def with_files(answer: Holding, files: tuple[MissingFile, ...]) -> Holding:
    """``answer``, with entry logs that it lacks and has no record of."""
    return replace(answer, files=tuple(dict.fromkeys((*answer.files, *files))))
