"""How much of a log is kept: ledger by ledger."""

from dataclasses import replace

import pytest

from bkspark.protocol.log.contents import Retention
from bkspark.protocol.log.ledger_list import LoggedLedger
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.retention import retained_from
from tests.log_with import log_with

from .test_log import EMPTY

NOW = 1_000_000
TEN = log_with(
    EMPTY,
    ledgers=tuple(
        LoggedLedger(n, 10 * n, 10, 100, closed_ms=NOW - 1000 * (10 - n)) for n in range(10)
    ),
)


def kept_from(log: LogRecord, *positions: int) -> int:
    return retained_from(log, now_ms=NOW, positions=positions)


def test_without_settings_everything_stays() -> None:
    assert kept_from(TEN) == 0
    assert kept_from(EMPTY) == 0


@pytest.mark.parametrize(
    ("size", "first"), [(0, 90), (100, 90), (101, 80), (500, 50), (501, 40), (1000, 0), (2000, 0)]
)
def test_size_is_counted_ledger_by_ledger(size: int, first: int) -> None:
    """Half of the bytes are kept, so five of ten ledgers go, not nine."""
    assert kept_from(log_with(TEN, retention_bytes=size)) == first


@pytest.mark.parametrize(
    ("age", "first"), [(0, 90), (999, 90), (1000, 90), (1999, 90), (5000, 50), (10000, 0)]
)
def test_ledgers_that_are_too_old_go(age: int, first: int) -> None:
    assert kept_from(log_with(TEN, retention_ms=age)) == first


def test_the_last_ledger_goes_only_if_another_is_behind_it() -> None:
    assert kept_from(log_with(TEN, retention_bytes=0, tail=(20,))) == 100


def test_one_limit_is_enough() -> None:
    assert kept_from(log_with(TEN, retention_ms=8000, retention_bytes=500)) == 50


def test_a_ledger_of_unknown_age_is_not_old_and_ends_it() -> None:
    ledgers = (TEN.ledgers[0], replace(TEN.ledgers[1], closed_ms=0), *TEN.ledgers[2:])
    assert kept_from(log_with(TEN, ledgers=ledgers, retention_ms=0)) == 10


@pytest.mark.parametrize(
    ("positions", "first"), [((90, 35), 30), ((40,), 40), ((0, 90), 0), ((95,), 90)]
)
def test_what_a_cursor_has_not_read_stays(positions: tuple[int, ...], first: int) -> None:
    assert kept_from(log_with(TEN, retention_bytes=0), *positions) == first


@pytest.mark.parametrize(("count", "first"), [(0, 0), (1, 10), (3, 30), (9, 90), (20, 90)])
def test_only_so_many_ledgers_go_at_a_time(count: int, first: int) -> None:
    short = log_with(TEN, retention_bytes=0)
    assert retained_from(short, now_ms=NOW, ledger_count_max=count) == first


@pytest.mark.parametrize(("clock", "noted"), [(500, 1000), (1000, 1000), (1500, 1500)])
def test_a_clock_that_is_behind_makes_no_ledger_older_than_the_one_in_front(
    clock: int, noted: int
) -> None:
    ledgers = (replace(TEN.ledgers[0], closed_ms=1000), replace(TEN.ledgers[1], closed_ms=0))
    stamped = log_with(TEN, ledgers=ledgers).stamped(clock)
    assert [ledger.closed_ms for ledger in stamped.ledgers] == [1000, noted]
    assert stamped.times.changed_ms == clock


def test_a_log_with_either_limit_is_limited() -> None:
    assert not TEN.retention.is_limited
    assert Retention(byte_count=0).is_limited
    assert Retention(milliseconds=0).is_limited


def test_what_is_hidden_already_stays_hidden() -> None:
    assert kept_from(log_with(TEN, first_offset=35, retention_bytes=900)) == 35
