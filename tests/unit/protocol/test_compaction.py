"""Compaction of a log's ledgers: which are chosen, and what the log's record says then."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkspark.errors import InvalidRequestError, MetadataVersionError, OutcomeUnknownError
from bkspark.format import log_page, log_record
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log import compaction
from bkspark.protocol.log.compaction import MergeRange, compacted, runs_of
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.ledger_list import LoggedLedger, PageContents, versions_of
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.retention import retained_from
from tests.log_with import log_with

from .test_log import EMPTY, ledger, splice
from .test_paging import LENGTH, Shelf, log_of

NEW = 999
SHELF = Shelf()


def log_of_sizes(*lengths: int, first_offset: int = 0) -> LogRecord:
    """Ledgers of so many bytes, 4 entries each, the n-th closed at n."""
    places = tuple(LoggedLedger(n, 4 * n, 4, length, n + 1) for n, length in enumerate(lengths))
    return log_with(EMPTY, ledgers=places, first_offset=first_offset)


def of(log: LogRecord, begin: int, end: int, ledger_id: int = NEW) -> LogRecord:
    """The ledgers from the ``begin``-th up to the ``end``-th become one."""
    run = log.ledgers[begin:end]
    made = ledger(ledger_id, sum(place.entry_count for place in run))
    return compacted(log, run, made, SHELF.make)


def shown(runs: Sequence[MergeRange]) -> list[tuple[int, int]]:
    return [(run.begin // 4, run.end // 4) for run in runs]


# --- which ledgers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengths", "chosen"),
    [
        ((), []),
        ((1,), []),
        ((1, 1), [(0, 2)]),
        ((50, 50), [(0, 2)]),
        ((51, 1, 1, 51), [(1, 3)]),
        ((51, 1, 51, 1), []),
        ((30, 30, 30, 30), [(0, 3)]),
        ((50, 40, 20, 20), [(0, 2), (2, 4)]),
        ((0, 0, 0), [(0, 3)]),
    ],
)
def test_neighbours_that_are_small_are_chosen_up_to_the_target(
    lengths: Sequence[int], chosen: list[tuple[int, int]]
) -> None:
    assert shown(list(runs_of(log_of_sizes(*lengths), 100))) == chosen


def test_a_run_has_no_more_ledgers_than_one_task_should_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compaction, "RUN_LENGTH_MAX", 3)
    assert shown(list(runs_of(log_of_sizes(*[1] * 8), 100))) == [(0, 3), (3, 6), (6, 8)]


def test_what_is_truncated_in_part_is_left_alone_and_what_is_behind_it_is_not() -> None:
    assert shown(list(runs_of(log_of_sizes(1, 1, 1, first_offset=1), 100))) == [(1, 3)]
    assert shown(list(runs_of(log_of_sizes(1, 1, 1, first_offset=0), 100))) == [(0, 3)]


def test_the_tail_is_in_no_run() -> None:
    log = log_with(log_of_sizes(1, 1), tail=(7, 8))
    assert list(runs_of(log, 100)) == [MergeRange(0, 8, 2, 2)]


@given(st.lists(st.integers(0, 120), max_size=40))
def test_a_log_that_was_compacted_has_nothing_left_to_do(lengths: list[int]) -> None:
    log = log_of_sizes(*lengths)
    for number, run in enumerate(list(runs_of(log, 100))):
        places = tuple(log.ledgers_in(run.begin, run.end))
        assert (len(places), sum(one.length_bytes for one in places)) == (
            run.ledger_count,
            run.length_bytes,
        )
        assert run.length_bytes <= 100
        log = compacted(log, places, ledger(1000 + number, run.end - run.begin), SHELF.make)
    assert list(runs_of(log, 100)) == []
    assert (log.end_offset, log.length_bytes) == (4 * len(lengths), sum(lengths))


def test_runs_are_found_on_pages() -> None:
    assert shown(list(runs_of(log_of(200, Shelf()), 10**6))) == [(0, 200)]


# --- the record -------------------------------------------------------------------------------


def test_one_ledger_takes_the_places_of_its_run_and_what_is_around_stays() -> None:
    log = log_with(log_of_sizes(10, 20, 30, 40), tail=(7,), transactions={"app": 1})
    after = of(log, 1, 3)
    assert after.ledgers == (
        log.ledgers[0],
        LoggedLedger(NEW, 4, 8, 50, 3, 1),
        log.ledgers[3],
    )
    assert after.dropped.ids == (1, 2)
    assert after.dropped.to_delete == ()
    assert (after.tail, after.transactions, after.end_offset) == ((7,), {"app": 1}, 16)


def test_once_it_has_joined_nothing_more_is_done() -> None:
    log = log_of_sizes(1, 1)
    after = of(log, 0, 2)
    assert compacted(after, log.ledgers, ledger(NEW, 8), SHELF.make) is after


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_ledgers_that_are_no_neighbours_any_more_stay(missing: int) -> None:
    log = log_of_sizes(1, 1, 1)
    run = tuple(place for place in log.ledgers if place.ledger_id != missing)
    if missing == 1:
        with pytest.raises(MetadataVersionError, match="from offset 0 to 11 meanwhile"):
            compacted(log, run, ledger(NEW, 8), SHELF.make)
    else:
        assert compacted(log, run, ledger(NEW, 8), SHELF.make).ledger_count == 2


def test_what_was_truncated_overwritten_or_compacted_meanwhile_stays_so() -> None:
    log = log_of_sizes(1, 1, 1)
    run = log.ledgers[:2]
    overwritten = splice(log, ledger(50, 12), overwrite=True)
    for changed in (log.truncated(4), overwritten, of(log, 0, 2, 50), of(log, 1, 3, 50)):
        with pytest.raises(MetadataVersionError, match="meanwhile"):
            compacted(changed, run, ledger(NEW, 8), SHELF.make)
    assert compacted(log.truncated(3), run, ledger(NEW, 8), SHELF.make).first_offset == 3


def test_a_ledger_that_has_not_just_these_entries_does_not_join() -> None:
    log = log_of_sizes(1, 1)
    for count in (0, 7, 9):
        with pytest.raises(InvalidRequestError, match=f"{NEW} has {count} entries"):
            compacted(log, log.ledgers, ledger(NEW, count), SHELF.make)


def test_a_ledger_that_is_open_dropped_or_of_another_kind_does_not_join() -> None:
    log, run = log_of_sizes(1, 1), log_of_sizes(1, 1).ledgers
    with pytest.raises(InvalidRequestError, match="only a CLOSED ledger"):
        compacted(log, run, ledger(NEW, 8, LedgerState.OPEN), SHELF.make)
    with pytest.raises(OutcomeUnknownError, match="was dropped"):
        compacted(log.without(NEW), run, ledger(NEW, 8), SHELF.make)
    with pytest.raises(InvalidRequestError, match="other settings"):
        compacted(
            replace(log, settings=LogSettings(Quorum(3, 2, 2))), run, ledger(NEW, 8), SHELF.make
        )


def test_what_was_replaced_never_joins_again() -> None:
    after = of(log_of_sizes(1, 1), 0, 2)
    with pytest.raises(OutcomeUnknownError, match="a compaction"):
        splice(after, ledger(0))


def test_a_sealed_log_is_compacted_and_stays_sealed() -> None:
    after = of(log_of_sizes(1, 1).sealed(), 0, 2)
    assert (after.is_sealed, after.ledger_count) == (True, 1)


def test_retention_by_age_waits_for_the_youngest_and_that_by_size_counts_as_before() -> None:
    log = log_with(of(log_of_sizes(10, 10, 10), 0, 2), retention_ms=10)
    assert retained_from(log, now_ms=12) == 0
    assert retained_from(log, now_ms=13) == 8
    unknown = log_with(
        log_of_sizes(1, 1), ledgers=(LoggedLedger(0, 0, 4, 1, 5), LoggedLedger(1, 4, 4, 1))
    )
    assert of(unknown, 0, 2).ledgers[0].closed_ms == 0
    assert of(log_of_sizes(10, 20), 0, 2).length_bytes == 30


def test_versions_stay_and_are_given_to_no_other_ledger() -> None:
    log = of(of(log_of_sizes(1, 1, 1, 1), 0, 2), 0, 2, 100)
    assert [place.merged_count for place in log.ledgers] == [2, 0]
    assert log.truncated(12).listed.first_version == 3
    assert splice(log, ledger(50), overwrite=True).listed.first_version == 4
    assert log.vacated().listed.first_version == 4


# --- as it is stored --------------------------------------------------------------------------


def test_a_record_and_a_page_with_merged_places_come_back() -> None:
    after = of(log_of_sizes(1, 1), 0, 2)
    assert log_record.decode(EMPTY.name, log_record.encode(after, "n")) == after
    page, name = PageContents(ledgers=after.ledgers), SHELF.new_name()
    assert log_page.decode(EMPTY.name, name, log_page.encode(EMPTY.name, name, page)) == page


def test_a_run_of_many_pages_leaves_one_and_costs_a_page_a_level() -> None:
    shelf = Shelf()
    log = log_of(200, shelf)
    run = tuple(log.ledgers_in(4, 4 * 150))
    known = len(shelf.stored)
    after = compacted(log, run, ledger(NEW, 4 * 149), shelf.make)
    levels = 1 + max(one.height for one in log.older if hasattr(one, "height"))
    assert len(shelf.stored) - known <= 2 * levels
    assert after.ledger_count == 200 - 148
    assert len(after.stretches) <= len(log.stretches)
    assert set(after.every_dropped_id()) == set(range(1, 150))
    assert LENGTH == 3


def test_on_pages_every_run_is_replaced_as_on_a_plain_list() -> None:
    shelf = Shelf()
    log = log_of(20, shelf)
    places = tuple(log.every_ledger())
    plain = log_with(EMPTY, ledgers=places)
    for begin in range(20):
        for end in range(begin + 1, 21):
            made = ledger(NEW, 4 * (end - begin))
            after = compacted(log, places[begin:end], made, shelf.make)
            expected = compacted(plain, places[begin:end], made, shelf.make)
            assert tuple(after.every_ledger()) == expected.ledgers
            assert sorted(after.every_dropped_id()) == sorted(expected.dropped.ids)
            assert versions_of(after.stretches) == 20
            assert shelf.short(after).ledger_count == 21 - (end - begin)
