"""Which entries each bookie holds of a ledger, and how many good copies each entry has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bkspark.format import layout
from bkspark.protocol.ledger.locations import Location, Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.quorum import Quorum

# --- ranges --------------------------------------------------------------------------------------
# Sets of entries as ranges: required entries, present entries, and the difference.
#
# A range is (first, last), both inclusive. If the write set is smaller than the ensemble, a member
# holds only some entries of a range; the range then means the member's own entries.


Range = tuple[int, int]


def difference(wanted: Range, held: Iterable[Range]) -> list[Range]:
    """Return the parts of ``wanted`` in none of ``held``, ascending."""
    missing: list[Range] = []
    first, last = wanted
    for begin, end in sorted(held):
        if begin > last:
            break
        if begin > first:
            missing.append((first, begin - 1))
        first = max(first, end + 1)
    if first <= last:
        missing.append((first, last))
    return missing


def own_part(entries: Range, index: int, quorum: Quorum) -> Range | None:
    """Return ``entries`` cut to the first and last entry of ensemble index ``index``, if any."""
    first, last = entries
    size = quorum.ensemble_size
    front = next(
        (e for e in range(first, min(last, first + size) + 1) if _is_on(e, index, quorum)), None
    )
    if front is None:
        return None
    back = next(e for e in range(last, front - 1, -1) if _is_on(e, index, quorum))
    return front, back


def has_entry_of(entries: Range, stripe: int, quorum: Quorum) -> bool:
    """Return whether any of ``entries`` belongs to the stripe."""
    first, last = entries
    return (stripe - first) % quorum.stripe_count <= last - first


def cut(ranges: Iterable[Range]) -> Iterator[Range]:
    """Yield the ranges cut at every begin and end, each piece once, ascending."""
    known = set(ranges)
    begins = sorted({b for begin, end in known for b in (begin, end + 1)})
    for begin, following in zip(begins, begins[1:]):
        if any(first <= begin <= last for first, last in known):
            yield begin, following - 1


def is_within(piece: Range, ranges: Iterable[Range]) -> bool:
    """Return whether a single range of ``ranges`` holds all of ``piece``."""
    return any(first <= piece[0] and piece[1] <= last for first, last in ranges)


def _is_on(entry_id: int, index: int, quorum: Quorum) -> bool:
    return (index - entry_id) % quorum.ensemble_size < quorum.write_quorum_size


# --- holding -------------------------------------------------------------------------------------
# One bookie's content of one ledger, in a compact form: only faults are sent across processes.


@dataclass(frozen=True, slots=True)
class Role:
    """A member's place in a location with known entries.

    Attributes:
        index: the member's position in the ensemble.
    """

    location: Location
    index: int

    @property
    def entries(self) -> Range:
        """All entries of the location."""
        return self.location.entries


@dataclass(frozen=True, slots=True)
class MissingFile:
    """An entry log a member should hold but does not show intact.

    Attributes:
        entries: from its first to its last row; rows of other stripes lie between.
    """

    name: str
    stripe: int
    fragment_first_entry_id: int
    entries: Range
    reason: str


@dataclass(frozen=True, slots=True)
class Holding:
    """A member's missing content of a ledger.

    Attributes:
        is_inline: whether the shown records hold their rows; None without records.
        lacks: entries without shown records, by the fragment's first entry id.
        files: missing entry logs, named by shown records.
        strays: number of entry logs no shown record names.
        problem: why the member may hold more than shown; missing content is damaged then.
        unknown: why the member gave no definite answer about the ledger; all else is empty then.
        is_unmarked: whether the member lacks the marker or journal it took from the ledger's
            writer.
    """

    ledger_id: int
    is_inline: bool | None = None
    lacks: tuple[tuple[int, Range], ...] = ()
    files: tuple[MissingFile, ...] = ()
    strays: int = 0
    problem: str = ""
    unknown: str = ""
    is_unmarked: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether no fault was found."""
        told = self.lacks or self.files or self.strays or self.problem or self.unknown
        return not (told or self.is_unmarked)

    def lacking_in(self, location: Location) -> list[Range]:
        """Return entries of ``location`` without shown records."""
        return [entries for first, entries in self.lacks if first == location.first_entry_id]


def roles_of(ledger: LedgerMetadata, member: Member) -> Iterator[Role]:
    """Yield the places of ``member`` with known entries; an open last location is left out."""
    for location in Locations(ledger).known:
        if member in location.members:
            yield Role(location, location.members.index(member))


# --- copies --------------------------------------------------------------------------------------
# Count good copies per fragment, entry range and bookie.
#
# Rule 1. A bookie's content is known only if the bookie answers. Content of a silent bookie is
# *unknown*, and unknown copies never count as missing: a range whose silent members could complete
# it is ``UNKNOWN`` and no worse.
#
# Rule 2. A bookie surely has no copies if it was initialised anew, is no longer registered, or is
# silent and was declared lost.
#
# Rule 3. Every member whose write set has rows of a record needs the record. All members need a
# record naming entry logs: its rows may lie on any window.


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
    """Yield all missing or possibly missing content of locations with known entries.

    Args:
        is_inline: whether the ledger's records hold their rows; None if no member shows a record.
    """
    for location in Locations(ledger).known:
        seen = [answers[member] for member in location.members]
        if any(answer is not None for answer in seen):
            yield from _gaps_of_records(ledger, location, seen, bool(is_inline))
            yield from _gaps_of_files(ledger, location, seen)


def _gaps_of_records(
    ledger: LedgerMetadata,
    location: Location,
    answers: Sequence[Answer],
    is_inline: bool,
) -> Iterator[Gap]:
    lacks = [_lacking(answer, location) for answer in answers]
    found: dict[int, list[tuple[Range, Copies]]] = {}
    for piece in cut([location.entries, *(lack for ranges in lacks for lack in ranges)]):
        for index, copies in _of_piece(ledger.quorum, piece, lacks, answers, is_inline).items():
            ranges = found.setdefault(index, [])
            if ranges and ranges[-1][1] is copies and ranges[-1][0][1] + 1 == piece[0]:
                ranges[-1] = ((ranges[-1][0][0], piece[1]), copies)
            else:
                ranges.append((piece, copies))
    for index, ranges in sorted(found.items()):
        for span, copies in ranges:
            yield _gap(ledger, location, index, answers[index], span, copies)


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


def _lacking(answer: Answer, location: Location) -> list[Range]:
    if answer is None:
        return []
    if isinstance(answer, Absent) or answer.unknown:
        return [location.entries]
    return answer.lacking_in(location)


def _is_unknown(answer: Answer) -> bool:
    if isinstance(answer, Absent):
        return not answer.is_gone
    return answer is not None and bool(answer.unknown)


def _gap(
    ledger: LedgerMetadata,
    location: Location,
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
        location.first_entry_id,
        entries,
        location.members[index],
        what,
        copies,
        _is_unknown(answer),
        reason,
    )


def _gaps_of_files(
    ledger: LedgerMetadata, location: Location, answers: Sequence[Answer]
) -> Iterator[Gap]:
    """Yield missing entry logs, except for members that cannot be examined."""
    missing: dict[str, dict[int, MissingFile]] = {}
    for index, answer in enumerate(answers):
        for file in answer.files if isinstance(answer, Holding) else ():
            if file.fragment_first_entry_id == location.first_entry_id:
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
                location.first_entry_id,
                file.entries,
                location.members[index],
                name,
                copies,
                False,
                file.reason,
            )


def with_files(answer: Holding, files: tuple[MissingFile, ...]) -> Holding:
    """Return ``answer`` with further missing entry logs, named by other members' records."""
    return replace(answer, files=tuple(dict.fromkeys((*answer.files, *files))))
