"""Count good copies per fragment, entry range and bookie.

Rule 1. A bookie's content is known only if the bookie answers. Content of a silent bookie is
*unknown*, and unknown copies never count as missing: a range whose silent members could complete it
is ``UNKNOWN`` and no worse.

Rule 2. A bookie surely has no copies if it was initialised anew, is no longer registered, or is
silent and was declared lost.

Rule 3. Every member whose write set has rows of a record needs the record. All members need a
record naming entry logs: its rows may lie on any window.
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
"""Stands for all content of a fragment, if a bookie has, or may have, no part of the fragment."""


class Copies(Enum):
    """The highest possible number of copies of an entry, worst first."""

    NONE = "none"
    BELOW_ACK_QUORUM = "below ack quorum"
    BELOW_WRITE_QUORUM = "below write quorum"
    UNKNOWN = "unknown"


_ORDER = list(Copies)


def worst(found: Sequence[Copies]) -> Copies | None:
    """Return the worst of ``found``; None if empty."""
    return min(found, key=_ORDER.index, default=None)


def classify(quorum: Quorum, *, held: int, unknown: int) -> Copies:
    """Classify a write set by the number of members holding an entry.

    Args:
        held: members holding the entry.
        unknown: members with unknown content.
    """
    possible = held + unknown
    if possible >= quorum.write_quorum_size:
        return Copies.UNKNOWN
    if possible >= quorum.ack_quorum_size:
        return Copies.BELOW_WRITE_QUORUM
    return Copies.BELOW_ACK_QUORUM if possible else Copies.NONE


@dataclass(frozen=True, slots=True)
class Gap:
    """Content a member should hold, missing or not known to exist.

    Attributes:
        entries: first and last; rows of other stripes may lie between.
        what: ``EVERYTHING``, the folder of the journals, or the name of an entry log.
        copies: copies of the worst of the entries.
        is_unknown: whether the bookie may hold the content.
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
    """A member that cannot be examined.

    Attributes:
        is_gone: whether the member surely has no data any more (rule 2).
    """

    reason: str
    is_gone: bool


Answer = Holding | Absent | None
"""A member's content of a ledger; None if complete."""


def gaps(
    ledger: LedgerMetadata, answers: Mapping[Member, Answer], *, is_inline: bool | None
) -> Iterator[Gap]:
    """Yield all missing or possibly missing content of fragments with known entries.

    Args:
        is_inline: whether the ledger's records hold their rows; None if no member shows a record.
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
    """For each member lacking a record of ``piece``, return the copies of its worst row."""
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
        reason = answer.problem or "its journals do not have the records"
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
    """Yield missing entry logs, except for members that cannot be examined."""
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
    """Return ``answer`` with further missing entry logs, named by other members' records."""
    return replace(answer, files=tuple(dict.fromkeys((*answer.files, *files))))
