"""Paging: keeps a log's record short by moving old parts to pages ("ledger_list").

Rule 1. Of each kind a record holds up to ``kept_max``: places of the newest ledgers, pages of each
height, ids of dropped ledgers. Any excess goes to pages of ``length``, oldest first. So the number
of levels grows with the logarithm of the ledgers, and a change of the record makes a page only
every ``length`` ledgers. A truncation within a page puts the rest of the page, and of the pages
above, before the others: less than ``length`` of each height. Pages of one log may have different
lengths: each reference states its page's content.

Rule 2. A page gets a random name, is made once under the name, and is durable before the
compare-and-set that names the page. A client that loses the compare-and-set leaves an unnamed page;
the next attempt makes a page with other contents under another name. So a reference never denotes
another page.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from bkspark.protocol.log.ledger_list import LogPage, PageContents, Stretch, pages_of
from bkspark.protocol.log.record import LogRecord

PAGE_LENGTH = 64
"""A page of places is some 6 kB, a full record some 20 kB for each level."""


@dataclass
class Paged:
    """A short record, and the pages it needs.

    Attributes:
        length: items on each new page, >= 1.
        pages: pages to store before the record, in this order.
    """

    record: LogRecord
    new_name: Callable[[], str]
    length: int
    pages: list[tuple[LogPage, PageContents]] = field(default_factory=list)

    @property
    def kept_max(self) -> int:
        """Most items of each kind in a record: paging then leaves room for ``length`` more."""
        return 2 * self.length

    def page(self, contents: PageContents) -> LogPage:
        made = contents.named(self.new_name())
        self.pages.append((made, contents))
        return made


def paged(record: LogRecord, new_name: Callable[[], str], length: int = PAGE_LENGTH) -> Paged:
    """Return ``record`` with any excess moved to pages; the same record without excess.

    Args:
        new_name: makes a unique page name.
        length: items on each new page.
    """
    result = Paged(record, new_name, length)
    _page_ledgers(result)
    _page_dropped(result)
    return result


def _page_ledgers(result: Paged) -> None:
    record = result.record
    if len(record.ledgers) > result.kept_max:
        # A place on a page keeps its time for ever. Places without one were closed before the last
        # change, by a version that noted no time.
        record = record.stamped(record.times.changed_ms)
        older, ledgers = record.older, record.ledgers
        while len(ledgers) > result.kept_max:
            older = (*older, result.page(PageContents(ledgers=ledgers[: result.length])))
            ledgers = ledgers[result.length :]
        record = replace(record, listed=replace(record.listed, older=older, ledgers=ledgers))
    older = _with_taller(result, record.older)
    result.record = replace(record, listed=replace(record.listed, older=older))


def _with_taller(result: Paged, stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """Return ``stretches`` with at most ``kept_max`` pages of each height in sequence."""
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
    """Return the range of the last pages of ``height``, after all higher pages."""
    end = len(stretches)
    while end and _height(stretches[end - 1]) < height:
        end -= 1
    begin = end
    while begin and _height(stretches[begin - 1]) == height:
        begin -= 1
    return begin, end


def _height(stretch: Stretch) -> int:
    return stretch.height if isinstance(stretch, LogPage) else -1


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
) -> tuple[tuple[int, ...], tuple[LogPage, ...]]:
    pages: list[LogPage] = []
    while len(ids) > result.kept_max:
        pages.append(result.page(PageContents(ids=ids[: result.length])))
        ids = ids[result.length :]
    return ids, tuple(pages)


def _sorted(result: Paged, pages: tuple[LogPage, ...]) -> tuple[LogPage, ...]:
    """Return ``pages`` with the highest first: dropped ledgers have no order of their own."""
    by_height = sorted(pages, key=lambda page: -page.height)
    return pages_of(_with_taller(result, by_height))
