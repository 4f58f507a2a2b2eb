"""How much of an unbounded log is kept: fragment by fragment of its one ledger."""

from dataclasses import replace

import pytest

from bkspark.protocol.ledger.metadata import Beginning, LedgerMetadata
from bkspark.protocol.log.ledger_list import LoggedLedger
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.retention import beginning_at, known_bytes, retained_from, retained_inside
from tests.log_with import log_with

from .test_ledger import ensemble, ledger
from .test_log import EMPTY

NOW = 1_000_000
LOG = log_with(EMPTY, tail=(7,), settings=replace(EMPTY.settings, is_unbounded=True))


def fragments(*beginnings: Beginning | None) -> LedgerMetadata:
    """Of ten entries each, behind a first one that says nothing."""
    first = replace(ledger().last_fragment, owner=1, ensemble=ensemble("abc"))
    every = enumerate((None, *beginnings))
    return replace(
        ledger(),
        fragments=tuple(replace(first, first_entry_id=10 * n, beginning=b) for n, b in every),
    )


TEN = fragments(*(Beginning(NOW - 1000 * (10 - n), 100 * n) for n in range(1, 10)))


def kept_from(log: LogRecord, *positions: int, ledger: LedgerMetadata = TEN) -> int:
    return retained_inside(log, ledger, now_ms=NOW, positions=positions)


def test_a_fragment_says_when_it_began_at_its_first_entry_alone() -> None:
    assert beginning_at(TEN, 20) == Beginning(NOW - 8000, 200)
    assert [beginning_at(TEN, entry_id) for entry_id in (0, 19, 21, 100)] == [None] * 4


def test_without_settings_everything_stays() -> None:
    assert kept_from(LOG) == 0


@pytest.mark.parametrize(
    ("size", "first"), [(0, 90), (1, 80), (100, 80), (101, 70), (800, 10), (801, 0)]
)
def test_size_is_counted_without_the_last_one(size: int, first: int) -> None:
    """Nobody knows yet how much that holds."""
    assert kept_from(log_with(LOG, retention_bytes=size)) == first


@pytest.mark.parametrize(
    ("age", "first"), [(0, 90), (999, 90), (1000, 80), (4999, 50), (5000, 40), (9000, 0)]
)
def test_a_fragment_is_over_when_the_next_one_was_begun(age: int, first: int) -> None:
    assert kept_from(log_with(LOG, retention_ms=age)) == first


def test_one_limit_is_enough() -> None:
    assert kept_from(log_with(LOG, retention_ms=8000, retention_bytes=500)) == 40


def test_what_a_cursor_has_not_read_stays() -> None:
    everything = log_with(LOG, retention_bytes=0)
    assert kept_from(everything, 60, 35) == 30
    assert kept_from(everything, 30) == 30
    assert kept_from(everything, 5) == 0


def test_it_never_gives_any_back() -> None:
    hidden = replace(LOG, first_offset=33, dropped=LOG.dropped.with_tail(33))
    assert hidden.end_offset == 0
    assert kept_from(log_with(hidden, retention_bytes=801)) == 33


def test_one_that_says_nothing_goes_with_the_next_that_does() -> None:
    old = log_with(LOG, retention_ms=5000)
    beginnings = [fragment.beginning for fragment in TEN.fragments[1:]]
    assert kept_from(old, ledger=fragments(*beginnings[:3], None, *beginnings[4:])) == 30
    assert kept_from(old, ledger=fragments(None, *beginnings[1:])) == 40
    assert kept_from(log_with(old, retention_bytes=0), ledger=fragments(None, None)) == 0


def test_a_clock_that_is_behind_makes_nothing_older_than_what_is_in_front() -> None:
    late, early = Beginning(NOW - 1000, 100), Beginning(NOW - 9000, 200)
    assert kept_from(log_with(LOG, retention_ms=5000), ledger=fragments(late, early)) == 0


def test_behind_closed_ledgers_offsets_begin_where_these_end() -> None:
    behind = log_with(LOG, ledgers=(LoggedLedger(1, 0, 40, 100, closed_ms=1),), retention_bytes=0)
    assert kept_from(behind) == 130
    assert kept_from(log_with(behind, retention_bytes=10_000)) == 40


def test_what_the_tail_is_known_to_hold_lies_behind_closed_ledgers() -> None:
    closed = LoggedLedger(1, 0, 40, 100, closed_ms=1)
    limited = log_with(LOG, ledgers=(closed,), retention_bytes=known_bytes(TEN))
    for behind, first in ((known_bytes(TEN), 40), (known_bytes(TEN) - 1, 0)):
        assert retained_from(limited, now_ms=NOW, bytes_behind=behind) == first


def test_entries_that_were_given_up_do_not_count() -> None:
    """Behind them it has less than was said before."""
    old = (Beginning(1, 1000), Beginning(2, 2000), Beginning(3, 3000))
    young = (Beginning(NOW - 10, 100), Beginning(NOW - 5, 200))
    log = log_with(LOG, retention_ms=60, retention_bytes=1000)
    assert kept_from(log, ledger=fragments(*old, *young)) == 30


@pytest.mark.parametrize("wrong", [(-1, 0), (0, -1)])
def test_nothing_begins_before_there_was_anything(wrong: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="less than nothing"):
        Beginning(*wrong)
