"""Pages of a log's record: whatever is done to it, it says what a record without pages says."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.format import log_page, log_record
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.compaction import compacted
from bkspark.protocol.log.ledger_list import LoggedLedger, LogPage, PageContents, ids_of
from bkspark.protocol.log.record import LogRecord, paged
from bkspark.protocol.log.retention import retained_from
from tests.log_with import log_with
from tests.thorough import always
from tests.unpaged import unpaged

from .test_log import EMPTY, ledger, splice

LENGTH = 3
KEPT = 2 * LENGTH


class Shelf:
    """Pages in memory, as they would be stored."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.looks = 0
        self.length = LENGTH
        self._numbers = count()

    def contents(self, page: LogPage) -> PageContents:
        self.looks += 1
        found = log_page.decode(EMPTY.name, page.name, self.stored[page.name])
        assert found.named(page.name) == page
        return found

    def new_name(self) -> str:
        return f"{0:08x}-{next(self._numbers):032x}"

    def make(self, contents: PageContents) -> LogPage:
        name = self.new_name()
        self.stored[name] = log_page.encode(EMPTY.name, name, contents)
        return contents.named(name)

    def short(self, record: LogRecord) -> LogRecord:
        """As it is read back after it was stored."""
        result = paged(log_with(record, source=self), self.new_name, self.length)
        for page, contents in result.pages:
            assert page.name not in self.stored
            self.stored[page.name] = log_page.encode(EMPTY.name, page.name, contents)
        data = log_record.encode(result.record, "n")
        stored = log_record.decode(EMPTY.name, data)
        assert stored == result.record
        return log_with(stored, source=self)


def log_of(ledger_count: int, shelf: Shelf) -> LogRecord:
    """A log of ledgers of 4 entries each, which joined one by one."""
    log = log_with(EMPTY, source=shelf)
    for number in range(ledger_count):
        log = shelf.short(splice(log, ledger(number)).stamped(number + 1))
    return log


Step = tuple[str, int]
Change = Callable[[LogRecord], LogRecord]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 30)),
        st.tuples(st.just("truncate"), st.integers(0, 100)),
        st.tuples(st.just("overwrite"), st.just(0)),
        st.tuples(st.just("delete"), st.just(0)),
        st.tuples(st.just("abort"), st.integers(1, 12)),
        st.tuples(st.just("work off"), st.integers(1, 20)),
        st.tuples(st.just("compact"), st.integers(0, 900)),
    ),
    max_size=12,
)


class Pair:
    """One log with pages and one without, to which the same is done."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.paged = log_with(EMPTY, source=self.shelf)
        self.plain = EMPTY
        self.ids = count(100)

    def do(self, what: str, how_much: int) -> None:
        for change in self._changes(what, how_much):
            self.paged = self.shelf.short(change(self.paged))
            self.plain = change(self.plain)
        self._require_equal()

    def _changes(self, what: str, how_much: int) -> Iterator[Change]:
        if what == "append":
            for _ in range(how_much):
                yield _joining(ledger(next(self.ids), 1 + how_much % 5), is_new=False)
        elif what == "overwrite":
            yield _joining(ledger(next(self.ids)), is_new=True)
        elif what == "truncate":
            before, span = self.plain.first_offset, self.plain.end_offset - self.plain.first_offset
            yield lambda log: log.truncated(before + span * how_much // 100).stamped(7)
        elif what == "delete":
            yield LogRecord.vacated
        elif what == "abort":
            for _ in range(how_much):
                yield partial(LogRecord.without, ledger_id=next(self.ids))
        elif what == "compact" and self.plain.ledgers:
            yield self._compacting(how_much // 30, 1 + how_much % 30)
        elif what == "compact":
            return
        else:
            yield partial(_work_off, gone=set(self.plain.dropped.to_delete[:how_much]))

    def _compacting(self, begin: int, count: int) -> Change:
        """Some ledgers in a row, from about the ``begin``-th on, become one."""
        run = self.plain.ledgers[begin % len(self.plain.ledgers) :][:count]
        made = ledger(next(self.ids), sum(place.entry_count for place in run))
        return lambda log: compacted(log, run, made, self.shelf.make).stamped(made.ledger_id)

    def _require_equal(self) -> None:
        whole = unpaged(self.paged)
        assert sorted(whole.dropped.ids) == sorted(self.plain.dropped.ids)
        assert sorted(whole.dropped.to_delete) == sorted(self.plain.dropped.to_delete)
        assert whole.listed == self.plain.listed
        for name in ("first_offset", "end_offset", "length_bytes"):
            assert getattr(whole, name) == getattr(self.plain, name)
        assert self.paged.ledger_count == len(self.plain.ledgers)
        assert self.paged.to_delete_count == len(self.plain.dropped.to_delete)


def _joining(made: LedgerMetadata, *, is_new: bool) -> Change:
    """Of two ledgers with as many entries one has more bytes."""
    made = replace(made, length_bytes=1000 * (1 + made.ledger_id % 3))
    return lambda log: splice(log, made, overwrite=is_new).stamped(made.ledger_id)


def _work_off(log: LogRecord, gone: set[int]) -> LogRecord:
    """Ledgers are forgotten that were deleted; on pages they are when these are opened."""
    while log.dropped.pages_to_delete:
        log = log.with_more_to_delete()
    return log.forgetting(gone)


@example([("append", 1)], 1, 0, 100)
@settings(deadline=None, max_examples=60)
@given(STEPS, st.integers(0, 200), st.integers(0, 60), st.integers(-1, 300))
def test_a_log_with_pages_is_a_plain_list(
    steps: list[Step], begin: int, length: int, ledger_id: int
) -> None:
    pair = Pair()
    for step in steps:
        pair.do(*step)
        paged, plain = pair.paged, pair.plain
        end = begin + length
        shares = {
            place: len(range(max(begin, place.first_offset), min(end, place.end_offset)))
            for place in plain.ledgers
        }
        assert list(paged.ledgers_in(begin, end)) == [one for one in shares if shares[one]]
        assert paged.bytes_in(begin, end) == sum(
            place.length_bytes * share // place.entry_count for place, share in shares.items()
        )
        assert paged.lists(ledger_id) == (ledger_id in ids_of(plain.ledgers))
        assert paged.has_dropped(ledger_id) == (ledger_id in plain.dropped.ids)
        limits = {"now_ms": 250, "positions": [begin], "ledger_count_max": length or None}
        kept = {"retention_bytes": 10 * length, "retention_ms": begin}
        assert retained_from(log_with(paged, **kept), **limits) == retained_from(  # type: ignore[arg-type]
            log_with(plain, **kept),  # type: ignore[arg-type]
            **limits,  # type: ignore[arg-type]
        )


@settings(deadline=None, max_examples=60)
@given(STEPS)
def test_a_record_stays_short(steps: list[Step]) -> None:
    pair = Pair()
    for step in steps:
        pair.do(*step)
        log = pair.paged
        heights = [one.height if isinstance(one, LogPage) else 0 for one in log.older]
        levels = 1 + max(heights, default=0)
        assert len(log.ledgers) <= KEPT
        assert len(log.older) <= levels * (KEPT + LENGTH)
        assert len(log.dropped.ids) <= 2 * KEPT + 3 * LENGTH
        for pages in (log.dropped.pages, log.dropped.pages_to_delete):
            assert len(pages) <= (1 + max((page.height for page in pages), default=0)) * KEPT


def test_a_log_grows_by_levels() -> None:
    log = log_of(200, Shelf())
    assert [one.height for one in log.older if isinstance(one, LogPage)][:1] == [3]
    assert len(log.stretches) < 4 * KEPT
    assert log.ledger_count == 200
    assert log.end_offset == 800


def test_a_record_without_many_ledgers_has_no_pages() -> None:
    assert not log_of(KEPT, Shelf()).has_pages
    assert log_of(KEPT + 1, Shelf()).has_pages


def test_a_place_is_found_by_one_look_a_level() -> None:
    shelf = Shelf()
    log = log_of(200, shelf)
    levels = max(one.height for one in log.older if isinstance(one, LogPage))
    for offset in range(0, 800, 7):
        shelf.looks = 0
        [found] = log.ledgers_in(offset, offset + 1)
        assert found.first_offset <= offset < found.end_offset
        assert shelf.looks <= levels


@pytest.mark.parametrize("offset", always(range(0, 201, 20), range(0, 201, 4)))
def test_at_its_border_a_page_is_not_looked_at(offset: int) -> None:
    """What begins or ends where a page does needs nothing of it."""
    shelf = Shelf()
    log = log_of(50, shelf)
    borders = {0, *(one.end_offset for one in log.stretches)}
    shelf.looks = 0
    log.bytes_in(0, offset)
    log.truncated(offset)
    assert (shelf.looks == 0) == (offset in borders)


def test_who_appends_looks_at_no_page() -> None:
    shelf = Shelf()
    log = log_of(200, shelf)
    shelf.looks = 0
    log = splice(log, ledger(200))
    log.without(201)
    assert shelf.looks == 0
    assert log.lists(200)


def test_a_ledger_that_is_on_a_page_joins_no_second_time() -> None:
    log = log_of(50, Shelf())
    for number in range(50):
        assert splice(log, ledger(number)) is log
        assert log.without(number) is log


def test_a_late_ledger_is_told_from_those_on_pages() -> None:
    """Its id was taken long before: it lies within the ids of a page, and is not on it."""
    shelf = Shelf()
    log = log_with(EMPTY, source=shelf)
    for number in range(0, 100, 2):
        log = shelf.short(splice(log, ledger(number)))
    assert not log.lists(31)
    after = shelf.short(splice(log, ledger(31)))
    assert after.end_offset == log.end_offset + 4
    for number in range(100, 160, 2):
        after = shelf.short(splice(after, ledger(number)))
    assert 31 not in after.ids_at_hand
    assert after.lists(31)
    assert not after.lists(33)


def test_what_was_dropped_and_is_on_a_page_never_joins() -> None:
    shelf = Shelf()
    log = log_of(50, shelf)
    overwritten = shelf.short(splice(log, ledger(50), overwrite=True))
    assert overwritten.dropped.pages
    emptied = shelf.short(log.truncated(160))
    assert emptied.dropped.pages_to_delete
    for number in range(40):
        for after in (overwritten, emptied):
            with pytest.raises(OutcomeUnknownError, match="was dropped"):
                splice(after, ledger(number))
    for number in range(60, 100):
        overwritten = shelf.short(overwritten.without(number))
    assert 61 not in overwritten.dropped.ids
    open_ledger = ledger(61, state=LedgerState.OPEN)
    with pytest.raises(OutcomeUnknownError, match="was dropped"):
        overwritten.with_tail(open_ledger)


def test_a_ledger_of_a_page_that_a_truncation_opens_keeps_its_version_and_time() -> None:
    shelf = Shelf()
    before = log_of(50, shelf)
    after = shelf.short(before.truncated(102).stamped(99))
    whole = unpaged(after)
    assert whole.listed.first_version == 25
    assert [one.ledger_id for one in whole.ledgers] == list(range(25, 50))
    assert [one.closed_ms for one in whole.ledgers] == list(range(26, 51))


def test_a_log_that_gave_up_all_pages_is_as_it_always_was() -> None:
    shelf = Shelf()
    log = shelf.short(log_of(50, shelf).truncated(196))
    while log.dropped.pages_to_delete:
        log = log.with_more_to_delete()
    log = shelf.short(log.forgetting(range(50)))
    assert not log.has_pages
    assert [one.ledger_id for one in log.ledgers] == [49]


def test_ledgers_without_a_time_get_that_of_the_last_change_when_they_are_paged() -> None:
    places = tuple(LoggedLedger(n, n, 1, 1) for n in range(50))
    log = Shelf().short(log_with(EMPTY, ledgers=places, changed_ms=77))
    assert {one.closed_ms for one in log.every_ledger()} == {77}


@pytest.mark.parametrize(
    "changes",
    [
        {"older": (LoggedLedger(7, 0, 10, 1),)},
        {"older": (LogPage("p", 1, 0, 9, 1, 1, 7, 7),)},
        {"older": (LogPage("p", 1, 0, 10, 1, 1, 7, 7),), "ledgers": ()},
    ],
)
def test_older_ledgers_are_pages_in_front_of_the_newest(changes: dict[str, Any]) -> None:
    good = {"ledgers": (LoggedLedger(8, 10, 5, 1),), "first_offset": 10}
    with pytest.raises(InvalidRequestError):
        log_with(EMPTY, **(good | changes))


def test_a_record_that_came_from_nowhere_has_no_pages() -> None:
    log = log_with(log_of(50, Shelf()), source=EMPTY.source)
    with pytest.raises(InvalidRequestError, match="not at hand"):
        list(log.every_ledger())


def test_what_no_page_can_hold_is_refused() -> None:
    first, second = LoggedLedger(1, 0, 5, 1), LoggedLedger(2, 5, 5, 1)
    for ledgers, ids in (((), ()), ((first,), (2,)), ((second, first), ())):
        with pytest.raises(InvalidRequestError):
            PageContents(ledgers=ledgers, ids=ids)


def test_a_log_that_dropped_nothing_has_nothing_to_work_off() -> None:
    assert not EMPTY.has_any_dropped
    assert EMPTY.with_more_to_delete() is EMPTY
    assert EMPTY.without(5).has_any_dropped


def test_a_page_goes_once_all_that_is_on_it_is_deleted() -> None:
    shelf = Shelf()
    log = shelf.short(log_with(log_of(3 * KEPT, shelf).vacated(), source=shelf))
    kept = {*log.dropped.ids, *log.every_id_to_delete()}
    assert log.dropped.pages_to_delete
    last = max(set(kept) - set(log.dropped.ids))
    most = log.forgetting(kept - {last})
    assert (most.dropped.ids, list(most.every_dropped_id())[-1]) == ((), last)
    assert len(most.dropped.pages_to_delete) == 1
    assert not log.forgetting(kept).has_any_dropped


def test_dropped_ledgers_on_pages_are_forgotten_page_by_page() -> None:
    shelf = Shelf()
    log = EMPTY
    for number in range(2 * KEPT):
        log = shelf.short(log.without(number))
    first = set(shelf.contents(log.dropped.pages[0]).ids)
    assert log.forgetting(first).dropped.pages == log.dropped.pages[1:]
    assert log.forgetting({min(first)}).dropped.pages == log.dropped.pages
    assert not log.forgetting(set(range(2 * KEPT))).has_any_dropped


@pytest.mark.parametrize("gone", [0, 40])
def test_a_record_names_every_page_that_was_made_and_is_still_of_use(gone: int) -> None:
    """Also those that only another page names, of places and of what was dropped."""
    shelf = Shelf()
    log = log_of(200, shelf)
    for number in range(gone):
        log = shelf.short(log.without(1000 + number))
    named = [page.name for page in log.every_page()]
    assert len(named) == len(set(named))
    assert set(named) <= set(shelf.stored)
    found = [entry for page in log.every_page() for entry in shelf.contents(page).ledgers]
    found += [one for one in log.stretches if not isinstance(one, LogPage)]
    assert len(found) == 200
    dropped = [one for page in log.every_page() for one in shelf.contents(page).ids]
    assert len(dropped) + len(log.dropped.ids) == gone
