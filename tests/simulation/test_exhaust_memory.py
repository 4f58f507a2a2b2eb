"""What a search of many states remembers, and what it says of itself meanwhile."""

import pytest

from tests.simulation.exhaustive import memory as exhaust_memory
from tests.simulation.exhaustive import progress as exhaust_progress
from tests.simulation.exhaustive.deeds import Deeds
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.exhaustive.memory import Fingerprints, odds
from tests.simulation.exhaustive.moves import Choice, Move
from tests.simulation.exhaustive.programs import Waiting
from tests.simulation.exhaustive.progress import Progress


def test_a_table_that_has_grown_still_knows_everything() -> None:
    table, keys = Fingerprints(), [number.to_bytes(4, "big") for number in range(5000)]
    for number, key in enumerate(keys):
        table[key] = number
    assert len(table) == len(keys)
    assert [table.get(key) for key in keys] == list(range(len(keys)))
    assert table.get(b"something else") is None


def test_what_is_told_again_takes_the_place_of_what_was_told() -> None:
    table = Fingerprints()
    table[b"state"] = 0
    assert table.get(b"state") == 0
    table[b"state"] = 2**32 - 1
    assert table.get(b"state") == 2**32 - 1
    assert len(table) == 1


def test_what_falls_on_the_same_place_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    prints = {b"a": 1023, b"b": 2047, b"c": 3071, b"d": 4095}
    monkeypatch.setattr(exhaust_memory, "_fingerprint", prints.__getitem__)
    table = Fingerprints()
    for number, key in enumerate([b"a", b"b", b"c"]):
        table[key] = number
    assert [table.get(key) for key in prints] == [0, 1, 2, None]


def test_odds_are_those_of_a_birthday() -> None:
    assert odds(2**32) == 0.5
    assert odds(100_000_000) == pytest.approx(2.7e-4, rel=0.01)


def test_a_long_search_says_how_far_it_has_come(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress()
    progress.tell(4096, 5000)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(exhaust_progress, "_SECONDS", 0.0)
    progress.tell(8192, 10_000)
    progress.tell(8193, 10_001)
    (line,) = capsys.readouterr().err.splitlines()
    assert "8192 states, 10000 steps" in line
    assert "states/s" in line
    assert line.endswith(" MB")


def test_who_sleeps_wakes_when_something_happens_that_it_does_not_commute_with() -> None:
    deeds = Deeds()
    reads, writes = (("x", Access.READ),), (("x", Access.WRITE),)
    asleep = deeds.bit(deeds.of("a", reads))
    assert deeds.behind(deeds.of("b", reads), asleep) == asleep
    assert deeds.behind(deeds.of("b", writes), asleep) == 0
    assert deeds.behind(deeds.of("a", reads), asleep) == 0
    both = asleep | deeds.bit(deeds.of("c", writes))
    assert deeds.behind(deeds.of("b", reads), both) == asleep
    both = asleep | deeds.bit(deeds.of("d", reads))
    assert deeds.behind(deeds.of("b", reads), both) == both


def test_who_is_asleep_is_found() -> None:
    deeds = Deeds()
    asleep = deeds.bit(deeds.of("a", (("x", Access.READ),)))
    writes = (("x", Access.WRITE),)
    both = asleep | deeds.bit(deeds.of("c", writes))
    assert deeds.sleeper("c", both) is deeds.of("c", writes)
    assert deeds.sleeper("c", asleep) is None


def test_what_is_met_later_can_come_in_front_too() -> None:
    deeds = Deeds()
    one = deeds.of("a", (("x", Access.WRITE),))
    behind = deeds.of("b", (("x", Access.READ),)).bits
    assert deeds.rivals(one, behind) == ["b"]
    behind |= deeds.of("c", (("x", Access.ADD),)).bits | one.bits
    assert deeds.rivals(one, behind) == ["b", "c"]


def test_a_move_is_of_what_was_looked_at() -> None:
    waiting = Waiting("a/main", ("bookie-1", "size", "name"), is_able=True)
    choice = Choice("a/main", waiting, 0, 1, {7: -2, 8: -3}, (2, "", ""), is_on_metadata=False)
    move = choice.moves[-2] = Move(5, None, ("a/main",), Deeds().of("a/main", ()))
    assert choice.move((0, 7)) is move
    assert choice.move((0, 8)) is None
    assert choice.move((0, 9)) is None
