"""A ledger at a log's end whose metadata record is gone gets a place that nothing else can have."""

from dataclasses import replace

import pytest

from bkspark.errors import InvalidRequestError, NoSuchEntryError, NoSuchLedgerError
from bkspark.protocol.log.compaction import runs_of
from bkspark.protocol.log.data_loss import lost
from bkspark.protocol.log.ledger_list import (
    LOST_ENTRIES,
    LoggedLedger,
    LogPage,
    PageContents,
    lost_in,
)
from bkspark.protocol.log.record import missing_end, with_lost
from bkspark.protocol.log.stream_run import batch_end
from tests.log_with import log_with

from .test_log import LOG

OPENED = log_with(LOG, tail=(4,))
ROLLING = log_with(LOG, tail=(4, 5))
UNBOUNDED = replace(OPENED, settings=replace(LOG.settings, is_unbounded=True))
PLACE = LoggedLedger(4, 15, LOST_ENTRIES, 0)


@pytest.mark.parametrize(("log", "tail"), [(OPENED, ()), (ROLLING, (5,))])
def test_the_log_goes_on_after_more_offsets_than_the_ledger_can_have(log, tail) -> None:
    after = with_lost(log, 4)
    assert after.ledgers == (*LOG.ledgers, PLACE)
    assert (after.tail, after.end_offset) == (tail, 15 + 2**48)
    assert after.generation == log.generation
    assert after.lists(4)
    assert with_lost(after, 4) == after


def test_an_earlier_ledger_is_closed_first() -> None:
    with pytest.raises(
        InvalidRequestError, match="ledger 4 comes before ledger 5 and is not closed"
    ):
        with_lost(ROLLING, 5)


def test_a_log_that_began_inside_of_the_ledger_still_begins_there() -> None:
    after = with_lost(log_with(UNBOUNDED, ledgers=()).truncated(17, confirmed=18), 4)
    assert (after.first_offset, after.end_offset) == (17, 2**48)


def test_lost_places_are_found_without_a_look_at_other_pages() -> None:
    contents = PageContents(ledgers=(LoggedLedger(1, 10, 5, 9), PLACE))
    behind = LogPage("other", 1, PLACE.end_offset, 5, 9, 1, 7, 7)
    asked = []

    class Source:
        def contents(self, page: LogPage) -> PageContents:
            asked.append(page.name)
            return contents

    stretches = (LoggedLedger(0, 0, 10, 9), contents.named("one"), behind)
    assert list(lost_in(stretches, 0, behind.end_offset, Source())) == [PLACE]
    assert list(lost_in(stretches, 15, 16, Source())) == [PLACE]
    assert list(lost_in(stretches, 0, 15, Source())) == []
    assert list(lost_in(stretches, PLACE.end_offset, behind.end_offset, Source())) == []
    assert set(asked) == {"one"}


def test_offsets_of_lost_places_are_counted() -> None:
    log = with_lost(OPENED, 4)
    assert list(log.lost_in(0, log.end_offset)) == [PLACE]
    assert log.lost_count(0, log.end_offset) == LOST_ENTRIES
    assert [log.lost_count(0, 20), log.lost_count(17, 20), log.lost_count(0, 15)] == [5, 3, 0]


def test_the_end_of_a_log_that_is_missing_says_the_way_out() -> None:
    error = missing_end("events", NoSuchLedgerError("there is no ledger 4"))
    assert "'events' ends in a ledger whose metadata record is missing" in str(error)
    assert "bkspark metadata damaged" in str(error)


@pytest.mark.parametrize(
    ("begin", "end", "found"), [(0, 100, 10), (10, 20, 50), (30, 31, 50), (50, 90, 90)]
)
def test_a_batch_has_no_lost_offsets_or_only_these(begin: int, end: int, found: int) -> None:
    lost_ranges = [(10, 50)] if begin < 50 else []
    assert batch_end(begin, end, lost_ranges) == found


def test_a_lost_place_is_not_compacted() -> None:
    log = with_lost(log_with(OPENED, ledgers=LOG.ledgers[:1]), 4)
    assert list(runs_of(log)) == []


def test_the_error_names_the_offsets_around_the_loss() -> None:
    error = lost("a", 20, 30, PLACE)
    assert isinstance(error, NoSuchEntryError)
    assert "ledger 4 of log 'a' was set aside, so offsets 20 to 29" in str(error)
    assert f"up to offset 15, or from offset {PLACE.end_offset} on" in str(error)
