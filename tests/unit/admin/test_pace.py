"""How fast bookies are read and written, by whatever goes on side by side."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkspark import environment
from bkspark.admin.maintenance import BEAT_SECONDS, Pace, shares


class OwnClock(environment.RealEnvironment):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds <= BEAT_SECONDS
        self.now += seconds


@given(st.lists(st.sets(st.sampled_from("abcdef"), min_size=1), max_size=5))
def test_no_bookie_is_asked_for_more_than_is_allowed(
    works: list[set[str]],
) -> None:
    rates = shares(60.0, works)
    of_bookie: defaultdict[str, float] = defaultdict(float)
    for work, rate in zip(works, rates, strict=True):
        assert rate
        for bookie_id in work:
            of_bookie[bookie_id] += rate
    assert all(total <= 60.001 for total in of_bookie.values())


def test_works_of_other_bookies_do_not_share() -> None:
    assert shares(9.0, [{"a", "b"}, {"c"}, {"b", "d"}]) == [4.5, 9.0, 4.5]
    assert shares(None, [{"a"}, {"a"}]) == [None, None]


@pytest.mark.parametrize("piece", [10, 100, 5000])
def test_who_has_passed_more_than_may_be_waits_with_signs_of_life(piece: int) -> None:
    clock, beats = OwnClock(), []
    with environment.use(clock):
        pace = Pace(100.0, lambda: beats.append(clock.now))
        for _ in range(5000 // piece):
            pace.passed(piece)
    assert clock.now == pytest.approx(50.0)
    assert len(beats) >= 50
