"""A log's list of ledgers, of any length: places, and pages of places.

A log's record holds the places of its newest ledgers. ``paging`` moves older places to *pages*:
separate records that never change. A page has places, or, if there are many pages, other pages; or,
for dropped ledgers, mere ids. The record names only the topmost pages.

Rule 1. A page never changes, and clients find a page only through a reference. So the time of the
read, and the reader, make no difference: a ``PageSource`` fetches a page when needed, and decisions
about a record depend on the record alone.

Rule 2. A reference to a page also states the page's content: offsets, number of ledgers, bytes,
least and greatest id. So finding a place takes one look per level, and most questions take none. A
page with other content is treated as damaged.

Rule 3. To find whether a ledger is on a page, every page is read whose range of ids includes the
ledger. Ids are given out in order: the ledger of a recent write is above all ranges, and the ledger
of a long write lies within the few pages made meanwhile. An unread page never counts as "not
there".
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol, TypeAlias

from bkspark.errors import InvalidRequestError

LOST_ENTRIES = 2**48
"""Entries of the place of a ledger whose end is unknown for good. No ledger has so many. So no
offset that was acknowledged in the ledger is given to another entry.
"""


@dataclass(frozen=True, slots=True)
class LoggedLedger:
    """A closed ledger's place in a log: offsets ``[first_offset, first_offset + entry_count)``.

    Attributes:
        closed_ms: when the ledger was first seen closed, used only by retention by age; 0 if
            unknown.
        merged_count: how many further ledgers had joined the log here before a compaction.
        first_ms, last_ms: when its first and its last entry were committed (``commit_times``);
            informational, and never before the times of the ledgers before it.
    """

    ledger_id: int
    first_offset: int
    entry_count: int
    length_bytes: int
    closed_ms: int = 0
    merged_count: int = 0
    first_ms: int = 0
    last_ms: int = 0

    @property
    def end_offset(self) -> int:
        return self.first_offset + self.entry_count


@dataclass(frozen=True, slots=True)
class LogPage:
    """A reference to a page, with a summary of the page (rule 2).

    Attributes:
        name: unique for ever; below the log's name.
        height: 0 for ids, 1 for places, else the greatest height on the page plus 1 (pages of ids:
            1).
        first_offset, entry_count, length_bytes: of all ledgers on the page; 0 for a page of ids.
        least_id, greatest_id: of the ledgers on the page.
        merged_count: of all ledgers on the page.
        first_ms, last_ms: of the first and of the last ledger on the page; 0 for a page of ids.
    """

    name: str
    height: int
    first_offset: int
    entry_count: int
    length_bytes: int
    ledger_count: int
    least_id: int
    greatest_id: int
    merged_count: int = 0
    first_ms: int = 0
    last_ms: int = 0

    @property
    def end_offset(self) -> int:
        return self.first_offset + self.entry_count

    @property
    def may_have_pages(self) -> bool:
        """Whether the page may have pages; False for ids, and for places with entries."""
        return self.height > 1 or (self.height == 1 and not self.entry_count)

    def may_have(self, ledger_id: int) -> bool:
        return self.least_id <= ledger_id <= self.greatest_id


Stretch: TypeAlias = LoggedLedger | LogPage
"""A dense range of a log's offsets."""


@dataclass(frozen=True, slots=True)
class PageContents:
    """The content of a page: ledgers, pages or ids.

    Raises:
        InvalidRequestError: the content is empty or mixed, or its offsets are not dense.
    """

    ledgers: tuple[LoggedLedger, ...] = ()
    pages: tuple[LogPage, ...] = ()
    ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if [bool(self.ledgers), bool(self.pages), bool(self.ids)].count(True) != 1:
            raise InvalidRequestError("a page has ledgers, pages, or ids")
        require_dense(self.ledgers)

    @property
    def stretches(self) -> Sequence[Stretch]:
        return self.ledgers or self.pages

    def named(self, name: str) -> LogPage:
        """Return the reference to this page under ``name``."""
        if self.ids:
            return LogPage(name, 0, 0, 0, 0, len(self.ids), min(self.ids), max(self.ids))
        parts = self.stretches
        ids = [one.ledger_id for one in self.ledgers]
        return LogPage(
            name=name,
            height=1 + max((page.height for page in self.pages), default=0),
            first_offset=parts[0].first_offset,
            entry_count=sum(part.entry_count for part in parts),
            length_bytes=sum(part.length_bytes for part in parts),
            ledger_count=count_of(parts),
            least_id=min(ids or (page.least_id for page in self.pages)),
            greatest_id=max(ids or (page.greatest_id for page in self.pages)),
            merged_count=sum(part.merged_count for part in parts),
            first_ms=parts[0].first_ms,
            last_ms=parts[-1].last_ms,
        )


class PageSource(Protocol):
    """Fetches the pages of one log."""

    def contents(self, page: LogPage) -> PageContents:
        """Return the content of ``page``.

        Raises:
            CorruptDataError: the page is missing, damaged, or differs from its reference.
            OutcomeUnknownError: the metadata store gave no sure answer.
        """
        ...


class NoPages:
    """The source of a record without pages, made in memory."""

    def contents(self, page: LogPage) -> PageContents:
        raise InvalidRequestError(f"page {page.name} is not at hand")


NO_PAGES = NoPages()


def require_dense(stretches: Iterable[Stretch]) -> None:
    """Check that each stretch has entries and begins at its predecessor's end.

    Raises:
        InvalidRequestError: offsets are not dense.
    """
    expected: int | None = None
    for stretch in stretches:
        if expected not in (None, stretch.first_offset) or stretch.entry_count < 1:
            raise InvalidRequestError("offsets are not dense")
        expected = stretch.end_offset


def split(
    stretches: Sequence[Stretch],
) -> tuple[tuple[Stretch, ...], tuple[LoggedLedger, ...]]:
    """Return the stretches up to the last page, and the later ledgers."""
    newest: list[LoggedLedger] = []
    for one in reversed(stretches):
        if isinstance(one, LogPage):
            break
        newest.append(one)
    return tuple(stretches[: len(stretches) - len(newest)]), tuple(reversed(newest))


def count_of(stretches: Iterable[Stretch]) -> int:
    """Return the number of ledgers."""
    return sum(one.ledger_count if isinstance(one, LogPage) else 1 for one in stretches)


def versions_of(stretches: Iterable[Stretch]) -> int:
    """Return how many ledgers have joined here; a compacted place counts all its former ledgers."""
    return sum(
        one.merged_count + (one.ledger_count if isinstance(one, LogPage) else 1)
        for one in stretches
    )


def place_of_version(
    stretches: Iterable[Stretch], first_version: int, version: int, source: PageSource
) -> tuple[LoggedLedger, int] | None:
    """Return the place that ``version`` joined, and the version of its ledger; None without any.

    The two versions differ if a compaction put the ledger of ``version`` into a later one. Reads
    one page per level.

    Args:
        first_version: of the first of ``stretches``.
    """
    past = first_version
    for one in stretches:
        first, past = past, past + versions_of([one])
        if not first <= version < past:
            continue
        if isinstance(one, LogPage):
            return place_of_version(source.contents(one).stretches, first, version, source)
        return one, past - 1
    return None


def pages_of(stretches: Iterable[Stretch]) -> tuple[LogPage, ...]:
    return tuple(one for one in stretches if isinstance(one, LogPage))


def ids_of(stretches: Iterable[Stretch]) -> tuple[int, ...]:
    """Return the ids of the ledgers that are on no page."""
    return tuple(one.ledger_id for one in stretches if not isinstance(one, LogPage))


def ledgers_in(
    stretches: Iterable[Stretch], begin: int, end: int, source: PageSource
) -> Iterator[LoggedLedger]:
    """Yield the ledgers with some of the offsets ``[begin, end)``, in order; fetch pages lazily."""
    for one in stretches:
        if min(end, one.end_offset) <= max(begin, one.first_offset):
            continue
        if isinstance(one, LogPage):
            yield from ledgers_in(source.contents(one).stretches, begin, end, source)
        else:
            yield one


def first_since(stretches: Sequence[Stretch], ms: int, source: PageSource) -> LoggedLedger | None:
    """Return the first ledger with an entry committed at ``ms`` or later; None without any.

    Reads one page per level.
    """
    number = bisect_left(stretches, ms, key=attrgetter("last_ms"))
    if number == len(stretches):
        return None
    found = stretches[number]
    if isinstance(found, LogPage):
        return first_since(source.contents(found).stretches, ms, source)
    return found


def lost_in(
    stretches: Iterable[Stretch], begin: int, end: int, source: PageSource
) -> Iterator[LoggedLedger]:
    """Yield the lost places with some of the offsets ``[begin, end)``; read only their pages."""
    for one in stretches:
        if one.entry_count >= LOST_ENTRIES and begin < one.end_offset and one.first_offset < end:
            if isinstance(one, LogPage):
                yield from lost_in(source.contents(one).stretches, begin, end, source)
            else:
                yield one


def bytes_in(stretches: Iterable[Stretch], begin: int, end: int, source: PageSource) -> int:
    """Return the payload bytes of the offsets ``[begin, end)``, by the average of each ledger.

    Reads only pages that lie partly within: at each end one per level.
    """
    total = 0
    for one in stretches:
        first, past = max(begin, one.first_offset), min(end, one.end_offset)
        if past <= first:
            continue
        if isinstance(one, LogPage) and past - first < one.entry_count:
            total += bytes_in(source.contents(one).stretches, begin, end, source)
        else:
            total += one.length_bytes * (past - first) // one.entry_count
    return total


def opened_at(stretches: Iterable[Stretch], offset: int, source: PageSource) -> tuple[Stretch, ...]:
    """Return the same offsets with a border at ``offset``, if ledgers have a border there.

    A page that contains the offset is replaced by its content: at most one page's content per
    level.
    """
    found: list[Stretch] = []
    for one in stretches:
        if isinstance(one, LogPage) and one.first_offset < offset < one.end_offset:
            found += opened_at(source.contents(one).stretches, offset, source)
        else:
            found.append(one)
    return tuple(found)


def have(pages: Iterable[LogPage], ledger_id: int, source: PageSource) -> bool:
    """Whether a ledger is on one of ``pages``, or on a page below them (rule 3)."""
    for page in pages:
        if page.may_have(ledger_id):
            found = source.contents(page)
            if ledger_id in found.ids or ledger_id in ids_of(found.ledgers):
                return True
            if have(found.pages, ledger_id, source):
                return True
    return False


def not_all_in(
    pages: Iterable[LogPage], ids: Collection[int], source: PageSource
) -> tuple[LogPage, ...]:
    """Return ``pages`` without pages whose ledgers are all among ``ids``."""
    return tuple(
        page
        for page in pages
        if page.ledger_count > len(ids) or not set(ids).issuperset(every_id([page], source))
    )


def every_page(pages: Iterable[LogPage], source: PageSource) -> Iterator[LogPage]:
    """Yield ``pages`` and all pages below; reads every page that may have pages."""
    for page in pages:
        yield page
        if page.may_have_pages:
            yield from every_page(source.contents(page).pages, source)


def every_id(pages: Iterable[LogPage], source: PageSource) -> Iterator[int]:
    """Yield the ids of all ledgers on ``pages``; reads every page."""
    for page in pages:
        found = source.contents(page)
        yield from found.ids or ids_of(found.ledgers)
        yield from every_id(found.pages, source)
