"""How a log's record stays short: what is old goes to pages ("ledger_list").

Rule 1. Of each kind a record holds up to ``kept_max``: places of the newest ledgers, pages of each
height, ids of dropped ledgers. What is more goes to pages of ``length``, oldest first. So the
number of levels grows with the logarithm of the ledgers, and a change of the record makes a page
only every ``length`` ledgers. A truncation within a page puts what is left of it, and of the pages
that it is on, in front of the others: less than ``length`` of each height. Pages of one log may
have different lengths: each says what is on it.

Rule 2. A page gets a name by chance, is made under it once, and is durable before the
compare-and-set that names it. Whoever loses that leaves a page that nobody names: it will be made
again with other contents, under another name. What names a page is therefore never about another.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from bkspark.protocol.log.ledger_list import Page, PageContents, Stretch, pages_of
from bkspark.protocol.log.record import LogRecord

PAGE_LENGTH = 64
"""A page of places is some 3 kB, a record that is full some 15 kB for each level."""


@dataclass
class Paged:
    """A record that is short enough, and what it rests on.

    Attributes:
        length: of the pages that are made, in what lies on them; >= 1.
        pages: those that must be stored before the record is, in this order.
    """

    record: LogRecord
    new_name: Callable[[], str]
    length: int
    pages: list[tuple[Page, PageContents]] = field(default_factory=list)

    @property
    def kept_max(self) -> int:
        """Of each kind in a record: after a page was made, there is room for as much again."""
        return 2 * self.length

    def page(self, contents: PageContents) -> Page:
        made = contents.named(self.new_name())
        self.pages.append((made, contents))
        return made


def paged(record: LogRecord, new_name: Callable[[], str], length: int = PAGE_LENGTH) -> Paged:
    """``record`` with what is too much moved to pages; the same if nothing is.

    Args:
        new_name: makes a name that no page has.
        length: of the pages that are made.
    """
    result = Paged(record, new_name, length)
    _page_ledgers(result)
    _page_dropped(result)
    return result


def _page_ledgers(result: Paged) -> None:
    record = result.record
    if len(record.ledgers) > result.kept_max:
        # A place on a page keeps its time for ever. Those without were closed before the last
        # change, by a version that noted none.
        record = record.stamped(record.times.changed_ms)
        older, ledgers = record.older, record.ledgers
        while len(ledgers) > result.kept_max:
            older = (*older, result.page(PageContents(ledgers=ledgers[: result.length])))
            ledgers = ledgers[result.length :]
        record = replace(record, listed=replace(record.listed, older=older, ledgers=ledgers))
    older = _with_taller(result, record.older)
    result.record = replace(record, listed=replace(record.listed, older=older))


def _with_taller(result: Paged, stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """``stretches`` with no more than ``kept_max`` pages of one height in a row."""
    length, height, done = result.length, 0, tuple(stretches)
    while height <= max(map(_height, done), default=-1):
        begin, end = _row(done, height)
        while end - begin > result.kept_max:
            page = result.page(PageContents(pages=pages_of(done[begin : begin + length])))
            done = (*done[:begin], page, *done[begin + length :])
            begin, end = begin + 1, end - length + 1
        height += 1
    return done


def _row(stretches: Sequence[Stretch], height: int) -> tuple[int, int]:
    """Where the last pages of ``height`` stand, those that are behind all higher ones."""
    end = len(stretches)
    while end and _height(stretches[end - 1]) < height:
        end -= 1
    begin = end
    while begin and _height(stretches[begin - 1]) == height:
        begin -= 1
    return begin, end


def _height(stretch: Stretch) -> int:
    return stretch.height if isinstance(stretch, Page) else -1


def _page_dropped(result: Paged) -> None:
    dropped = result.record.dropped
    noted = set(dropped.to_delete)
    kept = tuple(one for one in dropped.ids if one not in noted)
    kept, kept_pages = _with_pages_of_ids(result, kept)
    left, left_pages = _with_pages_of_ids(result, dropped.to_delete)
    shortened = replace(
        dropped,
        ids=(*kept, *left) if kept_pages or left_pages else dropped.ids,
        to_delete=left,
        pages=_sorted(result, (*dropped.pages, *kept_pages)),
        pages_to_delete=_sorted(result, (*dropped.pages_to_delete, *left_pages)),
    )
    result.record = replace(result.record, dropped=shortened)


def _with_pages_of_ids(
    result: Paged, ids: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[Page, ...]]:
    pages: list[Page] = []
    while len(ids) > result.kept_max:
        pages.append(result.page(PageContents(ids=ids[: result.length])))
        ids = ids[result.length :]
    return ids, tuple(pages)


def _sorted(result: Paged, pages: tuple[Page, ...]) -> tuple[Page, ...]:
    """The highest first: what was dropped has no order of its own."""
    by_height = sorted(pages, key=lambda page: -page.height)
    return pages_of(_with_taller(result, by_height))
