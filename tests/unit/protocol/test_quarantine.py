"""Bookies that fail often are asked last for a while; a naive list says which."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.protocol.bookies import (
    FAILURES_MAX,
    QUARANTINE_SECONDS,
    WINDOW_SECONDS,
    Quarantine,
)
from bkspark.protocol.ledger.metadata import Member

A, B = Member("a", "1" * 32), Member("b", "2" * 32)


def noted(*times: float, member: Member = A) -> Quarantine:
    quarantine = Quarantine()
    for time in times:
        quarantine.note_failure(member, time)
    return quarantine


def test_it_takes_some_failures() -> None:
    times = [float(n) for n in range(FAILURES_MAX)]
    assert noted().bookie_ids(0) == frozenset()
    assert noted(*times[:-1]).bookie_ids(times[-1]) == frozenset()
    assert noted(*times).bookie_ids(times[-1]) == {"a"}


def test_failures_far_apart_are_none() -> None:
    spread = [0.0] * (FAILURES_MAX - 1)
    assert noted(*spread, WINDOW_SECONDS).bookie_ids(WINDOW_SECONDS) == {"a"}
    assert noted(*spread, WINDOW_SECONDS + 1).bookie_ids(WINDOW_SECONDS + 1) == frozenset()


def test_it_lasts_from_the_last_failure() -> None:
    quarantine = noted(*[0.0] * (FAILURES_MAX - 1), WINDOW_SECONDS)
    assert quarantine.bookie_ids(QUARANTINE_SECONDS + WINDOW_SECONDS - 1) == {"a"}


def test_it_ends_and_the_next_failure_alone_does_not_renew_it() -> None:
    quarantine = noted(*[0.0] * FAILURES_MAX)
    assert quarantine.bookie_ids(QUARANTINE_SECONDS - 1) == {"a"}
    assert quarantine.bookie_ids(QUARANTINE_SECONDS) == frozenset()
    quarantine.note_failure(A, QUARANTINE_SECONDS)
    assert quarantine.bookie_ids(QUARANTINE_SECONDS) == frozenset()


def test_another_incarnation_begins_anew() -> None:
    quarantine = noted(*[0.0] * (FAILURES_MAX - 1))
    quarantine.note_failure(Member("a", "9" * 32), 0.0)
    assert quarantine.bookie_ids(0.0) == frozenset()


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([A, B]), st.floats(0, 400)), max_size=12), st.floats(0, 3000)
)
def test_any_history(steps: list[tuple[Member, float]], later: float) -> None:
    quarantine, now, history = Quarantine(), 0.0, list[tuple[Member, float]]()
    for member, seconds in steps:
        now += seconds
        quarantine.note_failure(member, now)
        history.append((member, now))
    expected = set()
    for member in (A, B):
        latest = [time for who, time in history if who == member][-FAILURES_MAX:]
        is_full = len(latest) == FAILURES_MAX and latest[-1] - latest[0] <= WINDOW_SECONDS
        if is_full and now + later - latest[-1] < QUARANTINE_SECONDS:
            expected.add(member.bookie_id)
    assert quarantine.bookie_ids(now + later) == expected
