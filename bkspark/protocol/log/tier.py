"""A log's tier: the table that holds a prefix of the log's offsets.

``offloading`` has the changes from one version of the record to the next.

Rule 1. Below ``copied`` the rows are in the table and were verified there. Below ``freed`` readers
take them from the table, and the log's list of ledgers begins at ``freed`` or later. Below
``released`` no bookie has them any more. ``begin <= released <= freed <= copied``.

Rule 2. The ledgers of ``[released, freed)`` wait: they are dropped, they never join again, and no
collection deletes them, until a second look has found their rows in the table.

Rule 3. A segment is a range of offsets that one commit put into the table. Segments end at borders
of ledgers, and so does the intent. Segments follow each other without gaps, except for offsets that
a truncation hid meanwhile.

Rule 4. The record holds the newest segments, and all that are not released. Older segments are on
pages, each of which names the page before it. A page never changes. It has a random name, and is
durable before the compare-and-set that names it ("record", paging, rule 2).

Rule 5. A truncation moves no border of the tier: rows below the log's first offset are hidden, and
their segments are forgotten.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from bkspark.errors import InvalidRequestError
from bkspark.protocol.log import ledger_list
from bkspark.protocol.log.ledger_list import LogPage, Stretch, require_dense

SEGMENTS_KEPT = 64
"""Released segments in a record; paging leaves at least half of them there."""

SEGMENTS_OF_PAGE = 32
SEGMENTS_MAX = 4_096
"""Segments in a record: an offload stops before its collection is so far behind."""

GAPS_MAX = 1_024
COLUMNS_MAX = 16_384


@dataclass(frozen=True, slots=True)
class TierColumn:
    """A column of the log in the table.

    Attributes:
        physical_name: of the column in the table's files, which a rename does not change.
        type_text: the column's type in the table, as Delta's JSON writes it.
    """

    name: str
    physical_name: str
    type_text: str


@dataclass(frozen=True, slots=True)
class TierSegment:
    """The offsets ``[begin, end)``, copied by one commit and verified.

    Attributes:
        length_bytes: payload of the offsets in their ledgers.
        copied_ms: when the record named the segment.
        digests: the page with the digests of the rows.
        closed_ms: when the youngest of the ledgers was closed; 0 if unknown.
        first_ms, last_ms: when the first and the last row were committed; 0 if unknown.
    """

    begin: int
    end: int
    length_bytes: int
    copied_ms: int
    digests: str
    closed_ms: int = 0
    first_ms: int = 0
    last_ms: int = 0


@dataclass(frozen=True, slots=True)
class Intent:
    """The offsets that an offload is copying.

    Attributes:
        attempt: a random id, noted in the table's commit.
        since_version: the table's version before the copy; -1 if there was no table yet.
    """

    begin: int
    end: int
    attempt: str
    since_version: int


@dataclass(frozen=True, slots=True)
class SegmentsPage:
    """The content of a page of older segments (rule 4).

    Attributes:
        older: the page before it; empty without any.

    Raises:
        InvalidRequestError: there are no segments or too many, or they overlap.
    """

    segments: tuple[TierSegment, ...]
    older: str = ""

    def __post_init__(self) -> None:
        if not 1 <= len(self.segments) <= SEGMENTS_OF_PAGE:
            raise InvalidRequestError(f"a page has 1 to {SEGMENTS_OF_PAGE} segments")
        require_ordered("segments", ((one.begin, one.end) for one in self.segments))


@dataclass(frozen=True, slots=True)
class FreedLedgers:
    """Ledgers that left the list because the table has their rows (rule 2).

    Attributes:
        released: below it no ledger waits.
        ms: when ledgers were last freed; 0 if never.
        waiting: the ledgers of ``[released, freed)``, without gaps.
        last_ms: the last commit time of the rows below ``freed``.
    """

    released: int = 0
    ms: int = 0
    waiting: tuple[Stretch, ...] = ()
    last_ms: int = 0


class TableVersion(NamedTuple):
    """A version of a table, as a look found it.

    Attributes:
        commit: the digest of the commit that made it; "" if not known. A number alone names no
            version: two drivers on a disk, or a backup that is written to, can make it twice.
    """

    number: int
    commit: str = ""


@dataclass(frozen=True, slots=True)
class TierTable:
    """The table of a tier.

    Attributes:
        url: where the table is, without credentials.
        id: the table's own id.
        verified: the table at the last verification.
        columns: the log's columns in the table.
    """

    url: str
    id: str
    verified: TableVersion
    columns: tuple[TierColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Tier:
    """The table that holds a prefix of a log's offsets, and how far it does.

    Attributes:
        epoch: random id of the attachment; a new one makes all older offloads void.
        begin: first offset that was copied.
        freed, copied: see rule 1.
        length_bytes: payload of ``[begin, freed)`` in its ledgers.
        segments: the newest, oldest first, and all that are not released.
        older: the page of segments before ``segments``; empty without any.
        intent: what an offload is copying.
        missing: ranges of offsets that an operator accepted as missing, in order.
        of_freed: the ledgers that were freed.
    """

    table: TierTable
    epoch: str
    begin: int
    freed: int
    copied: int
    length_bytes: int = 0
    segments: tuple[TierSegment, ...] = ()
    older: str = ""
    intent: Intent | None = None
    missing: tuple[tuple[int, int], ...] = ()
    of_freed: FreedLedgers = FreedLedgers()

    def __post_init__(self) -> None:
        borders = (0, self.begin, self.released, self.freed, self.copied)
        if any(before > after for before, after in pairwise(borders)):
            raise InvalidRequestError(f"the borders {borders} of a tier are not in order")
        if not self.table_url or not self.table_id or not self.epoch:
            raise InvalidRequestError("a tier names its table and its epoch")
        if self.verified_version < -1 or min(self.length_bytes, self.of_freed.ms) < 0:
            raise InvalidRequestError("a number of a tier is negative")
        sizes = (len(self.columns), len(self.segments), len(self.missing))
        if any(
            n > most for n, most in zip(sizes, (COLUMNS_MAX, SEGMENTS_MAX, GAPS_MAX), strict=True)
        ):
            raise InvalidRequestError("a tier has too many columns, segments or gaps")
        if len({one.name for one in self.columns}) != len(self.columns):
            raise InvalidRequestError("a column of a tier is there twice")
        require_ordered("segments", ((one.begin, one.end) for one in self.segments))
        require_ordered("gaps", self.missing)
        if self.segments and not self.begin <= self.segments[0].begin <= self.segments[-1].end <= (
            self.copied
        ):
            raise InvalidRequestError("a segment of a tier is not below what is copied")
        if self.missing and not self.begin <= self.missing[0][0] <= self.missing[-1][1] <= (
            self.copied
        ):
            raise InvalidRequestError("a gap of a tier is not below what is copied")
        self._require_waiting()
        intent = self.intent
        if intent is not None and not self.copied <= intent.begin < intent.end:
            raise InvalidRequestError("an intent of a tier is not after what is copied")
        if intent is not None and (not intent.attempt or intent.since_version < -1):
            raise InvalidRequestError("an intent of a tier names its attempt and a version")

    def _require_waiting(self) -> None:
        waiting = self.of_freed.waiting
        require_dense(waiting)
        ends = (waiting[0].first_offset, waiting[-1].end_offset) if waiting else (self.freed,) * 2
        if ends != (self.released, self.freed):
            raise InvalidRequestError("the ledgers that wait are not those that were freed")

    @property
    def table_url(self) -> str:
        return self.table.url

    @property
    def table_id(self) -> str:
        return self.table.id

    @property
    def verified_version(self) -> int:
        """The version of the table at the last verification."""
        return self.table.verified.number

    @property
    def columns(self) -> tuple[TierColumn, ...]:
        """The log's columns in the table."""
        return self.table.columns

    @property
    def released(self) -> int:
        """Below it no bookie has the rows any more."""
        return self.of_freed.released

    @property
    def copied_bytes(self) -> int:
        """Payload of ``[begin, copied)`` in its ledgers, without what was truncated meanwhile."""
        in_both = (one.length_bytes for one in self.segments if one.begin >= self.freed)
        return self.length_bytes + sum(in_both)

    @property
    def waiting_ids(self) -> tuple[int, ...]:
        """The waiting ledgers that are on no page."""
        return ledger_list.ids_of(self.of_freed.waiting)

    @property
    def waiting_pages(self) -> tuple[LogPage, ...]:
        return ledger_list.pages_of(self.of_freed.waiting)

    @property
    def borders(self) -> frozenset[int]:
        """The offsets at which ledgers have to keep a border (rule 3)."""
        ends = {one.end for one in self.segments}
        return frozenset(
            ends if self.intent is None else {*ends, self.intent.begin, self.intent.end}
        )

    def bytes_in(self, begin: int, end: int) -> int:
        """The payload of those of the offsets ``[begin, end)`` that are freed, by the average."""
        count = min(end, self.freed) - max(begin, self.begin)
        return self.length_bytes * count // (self.freed - self.begin) if count > 0 else 0

    def crosses(self, begin: int, end: int) -> bool:
        """Whether a border lies inside of ``[begin, end)``."""
        return any(begin < border < end for border in self.borders)

    def hidden_below(self, first_offset: int) -> "Tier":
        """Return the tier without what lies below ``first_offset``, the log's (rule 5).

        The caller deletes the ledgers that wait, if ``first_offset`` is at ``freed`` or later.
        """
        kept = tuple(one for one in self.segments if one.end > first_offset)
        is_older_hidden = len(kept) < len(self.segments) or first_offset >= self.freed
        of_freed = self.of_freed
        if first_offset >= self.freed:
            of_freed = replace(of_freed, released=self.freed, waiting=())
        older = "" if is_older_hidden else self.older
        return replace(self, segments=kept, older=older, of_freed=of_freed)


def require_ordered(what: str, ranges: Iterable[tuple[int, int]]) -> None:
    """Check that no range is empty, and that each begins at its predecessor's end or later.

    Raises:
        InvalidRequestError: the ranges are not in order.
    """
    last = 0
    for begin, end in ranges:
        if not last <= begin < end:
            raise InvalidRequestError(f"{what} of a tier are not in order")
        last = end
