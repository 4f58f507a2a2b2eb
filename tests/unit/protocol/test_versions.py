"""Versions of a log: which offsets each of them had, and why another one cannot be read."""

from dataclasses import replace

import pytest

from bkspark.errors import NoSuchEntryError
from bkspark.protocol.log.compaction import compacted
from bkspark.protocol.log.ledger_list import LoggedLedger, place_of_version
from bkspark.protocol.log.record import LogRecord
from tests.log_with import log_with

from .test_log import EMPTY, ledger, splice
from .test_offloading import copied, freed, released
from .test_paging import Shelf, log_of

HISTORY = "view=history shows the versions"


def refusal(log: LogRecord, version: int) -> tuple[str, str]:
    """Why a version cannot be read, and what to do instead."""
    with pytest.raises(NoSuchEntryError) as refused:
        log.end_of_version(version)
    return refused.value.args[0], refused.value.hint


def test_every_version_ends_where_its_ledger_does() -> None:
    """Nine ledgers of four entries, most of them on pages."""
    log = log_of(9, Shelf())
    assert log.older
    assert [log.end_of_version(version) for version in range(9)] == [*range(4, 37, 4)]
    assert log.shown_oldest_version == "the oldest version that can be read is 0"


def test_a_version_of_the_future_is_not_there_yet() -> None:
    hint = f"a ledger has a version once it is closed; {HISTORY}"
    told = "log 'events' has no version 9 yet: the newest one is 8"
    assert refusal(log_of(9, Shelf()), 9) == (told, hint)
    assert refusal(EMPTY, 0) == ("log 'events' has no version 0 yet: it has none now", hint)
    assert EMPTY.shown_oldest_version == "no version can be read now"


def test_a_version_without_a_readable_entry_is_gone() -> None:
    log = log_of(9, Shelf()).truncated(8)
    assert log.end_of_version(2) == 12
    told = "version 1 of log 'events' cannot be read any more: "
    assert refusal(log, 1) == (f"{told}the oldest version that can be read is 2", HISTORY)
    inside = log_with(EMPTY, ledgers=(LoggedLedger(1, 0, 4, 40),), first_offset=4)
    told = "version 0 of log 'events' cannot be read any more: no version can be read now"
    assert refusal(inside, 0) == (told, HISTORY)


def test_versions_before_an_overwrite_are_gone() -> None:
    log = splice(log_of(3, Shelf()), ledger(90), overwrite=True)
    assert log.end_of_version(3) == 4
    told = "version 2 of log 'events' cannot be read any more: "
    assert refusal(log, 2) == (f"{told}the oldest version that can be read is 3", HISTORY)


def test_a_compaction_leaves_the_last_of_its_versions() -> None:
    shelf = Shelf()
    log = log_of(9, shelf)
    log = compacted(log, list(log.ledgers_in(4, 16)), ledger(99, 12), shelf.make)
    assert [log.end_of_version(version) for version in (0, 3, 4, 8)] == [4, 16, 20, 36]
    for version in (1, 2):
        told = f"version {version} of log 'events' was compacted into version 3"
        hint = "read version 3, or the time of the version with timestampAsOf"
        assert refusal(log, version) == (told, hint)


def test_a_version_that_only_the_table_may_have_is_read_by_offset_or_time() -> None:
    log = released(freed(copied(log_of(9, Shelf()), 8), 8))
    told, hint = refusal(log, 1)
    assert told.endswith("any more: the oldest version that can be read is 2")
    assert hint == f"{HISTORY}; rows that only the log's table has are read by offset or by time"
    assert refusal(log.truncated(8), 1)[1] == HISTORY


def test_a_version_is_at_one_place_at_most() -> None:
    shelf = Shelf()
    log = log_of(20, shelf)
    assert len(log.older) > 1
    places = [place_of_version(log.stretches, 0, version, shelf) for version in range(20)]
    assert places == [(place, version) for version, place in enumerate(log.every_ledger())]
    for outside in (-1, 20):
        assert place_of_version(log.stretches, 0, outside, shelf) is None
    merged = replace(log.ledgers[0], merged_count=2)
    assert [place_of_version([merged], 5, version, shelf) for version in (5, 7)] == [
        (merged, 7)
    ] * 2
