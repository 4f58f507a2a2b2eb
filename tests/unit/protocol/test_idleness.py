"""Since when a ledger is unchanged."""

from dataclasses import replace

from bkspark.protocol.upkeep.idleness import Sighting, is_idle, seen_again

BEFORE = Sighting(7, "1-a-1", 1000, {"bookie-1": 5, "bookie-2": 6})
NOW = replace(BEFORE, since_ms=9000)


def test_what_is_unchanged_is_so_since_it_was_first_seen() -> None:
    assert seen_again(None, NOW) == NOW
    assert seen_again(BEFORE, NOW) == BEFORE


def test_any_change_begins_it_anew() -> None:
    for changed in (
        replace(NOW, writer="2-a-1"),
        replace(NOW, sizes={"bookie-1": 5, "bookie-2": 7}),
        replace(NOW, sizes={"bookie-2": 5}),
    ):
        assert seen_again(BEFORE, changed) == changed


def test_who_does_not_answer_is_remembered_and_proves_nothing() -> None:
    silent = replace(NOW, sizes={"bookie-1": 5})
    assert seen_again(BEFORE, silent) == BEFORE
    more = replace(NOW, sizes={"bookie-3": 8})
    assert seen_again(BEFORE, more).sizes == {"bookie-1": 5, "bookie-2": 6, "bookie-3": 8}


def test_a_clock_that_went_back_begins_it_anew() -> None:
    early = replace(NOW, since_ms=500)
    assert seen_again(BEFORE, early) == early


def test_it_is_idle_after_so_many_seconds() -> None:
    assert is_idle(BEFORE, 4000, 3)
    assert not is_idle(BEFORE, 3999, 3)
    assert is_idle(BEFORE, 1000, 0)
