"""A log's list of ledgers, however long: places, and pages of places.

A log's record holds the places of its newest ledgers. Older ones are moved to *pages* (``paging``):
records of their own, that never change. A page has places, or, when there are many pages, other
pages; or mere ids, of ledgers that were dropped. The record names only the topmost of them.

Rule 1. A page never changes, and nobody finds it but by what names it. So it makes no difference
when it is read, nor by whom: it is fetched at the moment when it is needed, from a ``PageSource``,
and what is decided about a record stays a function of the record alone.

Rule 2. Whoever names a page also says what is on it: offsets, how many ledgers, bytes and which
ids at least and at most. So a place is found by one look per level, most questions need no look at
all, and a page that holds anything else is taken for damaged.

Rule 3. Whether a ledger is on a page is answered exactly, by looking at each page whose ids begin
below the ledger's and end above it. Ids are given out in order, so the ledger of a write that has
just been made is above them all, and one whose write took long lies within the few pages that were
made meanwhile. "Not there" is never assumed of a page that was not looked at.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from bkspark.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class LoggedLedger:
    """A closed ledger's place in a log: offsets ``[first_offset, first_offset + entry_count)``.

    Attributes:
        closed_ms: when it was first seen among the closed ones, which only retention by age looks
            at; 0 if that was not noted.
        merged_count: how many more ledgers have joined the log here, before a compaction.
    """

    ledger_id: int
    first_offset: int
    entry_count: int
    length_bytes: int
    closed_ms: int = 0
    merged_count: int = 0

    @property
    def end_offset(self) -> int:
        return self.first_offset + self.entry_count


@dataclass(frozen=True, slots=True)
class Page:
    """What is said of a page by whoever names it (rule 2).

    Attributes:
        name: unique for ever; below the log's name.
        height: 0 if it has ids, 1 if places, else one more than the highest page on it (of ids: 1).
        first_offset, entry_count, length_bytes: of all its ledgers; 0 if it has ids.
        least_id, greatest_id: of its ledgers.
        merged_count: of all its ledgers.
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

    @property
    def end_offset(self) -> int:
        return self.first_offset + self.entry_count

    @property
    def may_have_pages(self) -> bool:
        """Whether there may be pages on it: not if it has ids, nor places with entries."""
        return self.height > 1 or (self.height == 1 and not self.entry_count)

    def may_have(self, ledger_id: int) -> bool:
        return self.least_id <= ledger_id <= self.greatest_id


Stretch: TypeAlias = LoggedLedger | Page
"""Some of a log's offsets without a gap."""


@dataclass(frozen=True, slots=True)
class PageContents:
    """What is on a page: one of the three.

    Raises:
        InvalidRequestError: it is nothing, or more than one kind, or its offsets are not dense.
    """

    ledgers: tuple[LoggedLedger, ...] = ()
    pages: tuple[Page, ...] = ()
    ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if [bool(self.ledgers), bool(self.pages), bool(self.ids)].count(True) != 1:
            raise InvalidRequestError("a page has ledgers, pages, or ids")
        require_dense(self.ledgers)

    @property
    def stretches(self) -> Sequence[Stretch]:
        return self.ledgers or self.pages

    def named(self, name: str) -> Page:
        """How whoever calls this page ``name`` describes it."""
        if self.ids:
            return Page(name, 0, 0, 0, 0, len(self.ids), min(self.ids), max(self.ids))
        parts = self.stretches
        ids = [one.ledger_id for one in self.ledgers]
        return Page(
            name=name,
            height=1 + max((page.height for page in self.pages), default=0),
            first_offset=parts[0].first_offset,
            entry_count=sum(part.entry_count for part in parts),
            length_bytes=sum(part.length_bytes for part in parts),
            ledger_count=count_of(parts),
            least_id=min(ids or (page.least_id for page in self.pages)),
            greatest_id=max(ids or (page.greatest_id for page in self.pages)),
            merged_count=sum(part.merged_count for part in parts),
        )


class PageSource(Protocol):
    """Where the pages of one log are."""

    def contents(self, page: Page) -> PageContents:
        """What is on ``page``.

        Raises:
            CorruptDataError: it is missing, damaged, or holds something else than is said of it.
            OutcomeUnknownError: the metadata store gave no sure answer.
        """
        ...


class NoPages:
    """Of a record that came from nowhere, and has no pages."""

    def contents(self, page: Page) -> PageContents:
        raise InvalidRequestError(f"page {page.name} is not at hand")


NO_PAGES = NoPages()


@dataclass(frozen=True, slots=True)
class LedgerList:
    """The ledgers of a log, in order.

    Attributes:
        older: what lies before ``ledgers``: pages, and in front of them ledgers that were on a page
            which a truncation has opened; empty if there are no pages.
        ledgers: the newest that are closed, in offset order, without gaps.
        tail: ids of those behind them, whose ends are not known.
        first_version: of the first of them all, or of the next one to join ("contents", rule 4).
        source: fetches pages.
    """

    older: tuple[Stretch, ...] = ()
    ledgers: tuple[LoggedLedger, ...] = ()
    tail: tuple[int, ...] = ()
    first_version: int = 0
    source: PageSource = field(default=NO_PAGES, compare=False, repr=False)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All closed ledgers in order, the older ones on pages."""
        return (*self.older, *self.ledgers)

    def with_stretches(self, stretches: Sequence[Stretch]) -> "LedgerList":
        """With others in the places of all that are closed."""
        older, ledgers = split(stretches)
        return replace(self, older=older, ledgers=ledgers)


def require_dense(stretches: Iterable[Stretch]) -> None:
    """Each begins where the one before ended, and has something.

    Raises:
        InvalidRequestError: not so.
    """
    expected: int | None = None
    for stretch in stretches:
        if expected not in (None, stretch.first_offset) or stretch.entry_count < 1:
            raise InvalidRequestError("offsets are not dense")
        expected = stretch.end_offset


def split(
    stretches: Sequence[Stretch],
) -> tuple[tuple[Stretch, ...], tuple[LoggedLedger, ...]]:
    """What is up to the last page, and the ledgers behind it."""
    newest: list[LoggedLedger] = []
    for one in reversed(stretches):
        if isinstance(one, Page):
            break
        newest.append(one)
    return tuple(stretches[: len(stretches) - len(newest)]), tuple(reversed(newest))


def count_of(stretches: Iterable[Stretch]) -> int:
    """How many ledgers they are."""
    return sum(one.ledger_count if isinstance(one, Page) else 1 for one in stretches)


def versions_of(stretches: Iterable[Stretch]) -> int:
    """How many ledgers have joined in these places, those that were compacted since one by one."""
    return sum(
        one.merged_count + (one.ledger_count if isinstance(one, Page) else 1) for one in stretches
    )


def pages_of(stretches: Iterable[Stretch]) -> tuple[Page, ...]:
    return tuple(one for one in stretches if isinstance(one, Page))


def ids_of(stretches: Iterable[Stretch]) -> tuple[int, ...]:
    """Of the ledgers among them, those on pages left out."""
    return tuple(one.ledger_id for one in stretches if not isinstance(one, Page))


def ledgers_in(
    stretches: Iterable[Stretch], begin: int, end: int, source: PageSource
) -> Iterator[LoggedLedger]:
    """The ledgers that have some of the offsets ``[begin, end)``, in order; pages as they come."""
    for one in stretches:
        if min(end, one.end_offset) <= max(begin, one.first_offset):
            continue
        if isinstance(one, Page):
            yield from ledgers_in(source.contents(one).stretches, begin, end, source)
        else:
            yield one


def bytes_in(stretches: Iterable[Stretch], begin: int, end: int, source: PageSource) -> int:
    """Payload of the offsets ``[begin, end)``, by the average of each ledger.

    Only pages that lie partly within are looked at: one per level and end.
    """
    total = 0
    for one in stretches:
        first, past = max(begin, one.first_offset), min(end, one.end_offset)
        if past <= first:
            continue
        if isinstance(one, Page) and past - first < one.entry_count:
            total += bytes_in(source.contents(one).stretches, begin, end, source)
        else:
            total += one.length_bytes * (past - first) // one.entry_count
    return total


def opened_at(stretches: Iterable[Stretch], offset: int, source: PageSource) -> tuple[Stretch, ...]:
    """The same offsets with a border at ``offset``, if ledgers have one there.

    A page that has it within is replaced by what is on it: at most so much more per level.
    """
    found: list[Stretch] = []
    for one in stretches:
        if isinstance(one, Page) and one.first_offset < offset < one.end_offset:
            found += opened_at(source.contents(one).stretches, offset, source)
        else:
            found.append(one)
    return tuple(found)


def have(pages: Iterable[Page], ledger_id: int, source: PageSource) -> bool:
    """Whether a ledger is on one of ``pages``, or on what they name (rule 3)."""
    for page in pages:
        if page.may_have(ledger_id):
            found = source.contents(page)
            if ledger_id in found.ids or ledger_id in ids_of(found.ledgers):
                return True
            if have(found.pages, ledger_id, source):
                return True
    return False


def not_all_in(pages: Iterable[Page], ids: Collection[int], source: PageSource) -> tuple[Page, ...]:
    """``pages`` but for those of which every ledger is among ``ids``."""
    return tuple(
        page
        for page in pages
        if page.ledger_count > len(ids) or not set(ids).issuperset(every_id([page], source))
    )


def every_page(pages: Iterable[Page], source: PageSource) -> Iterator[Page]:
    """``pages``, and all that are on them: costs as much as there are of those with pages."""
    for page in pages:
        yield page
        if page.may_have_pages:
            yield from every_page(source.contents(page).pages, source)


def every_id(pages: Iterable[Page], source: PageSource) -> Iterator[int]:
    """The ids of all ledgers on ``pages``: costs as much as there are."""
    for page in pages:
        found = source.contents(page)
        yield from found.ids or ids_of(found.ledgers)
        yield from every_id(found.pages, source)
