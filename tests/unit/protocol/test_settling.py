"""Which ledgers a command need not look at again."""

import itertools

from bkspark.protocol.upkeep import settling
from bkspark.protocol.upkeep.settling import EXCEPTIONS_MAX, LedgersSeen, Settled


def look(
    begin: int,
    end: int,
    read: set[int],
    unsettled: set[int],
    now_ms: int = 5,
    members: str = "",
    doubts: int = 0,
) -> LedgersSeen:
    seen = frozenset(read), frozenset(unsettled)
    return LedgersSeen(begin, end, *seen, now_ms, members, doubts)


def test_a_look_settles_what_it_read_and_names_the_rest() -> None:
    known = Settled().after(look(0, 4, {0, 1, 2, 3}, {1, 3}))
    assert known == Settled(4, {1: 5, 3: 5})
    assert [known.has(number) for number in range(6)] == [True, False, True, False, False, False]
    later = known.after(look(4, 6, {1, 3, 4, 5}, {3, 5}, now_ms=9))
    assert later == Settled(6, {3: 5, 5: 9})


def test_a_look_settles_nothing_that_it_did_not_read() -> None:
    doubted = Settled(4, {1: 5, 3: 5}).doubting([2], now_ms=7)
    assert doubted == Settled(4, {1: 5, 2: 7, 3: 5}, doubts=1, doubted={2: 1})
    later = look(4, 6, {1, 4, 5}, set(), doubts=1)
    assert doubted.after(later) == Settled(6, {2: 7, 3: 5}, doubts=1, doubted={2: 1})


def test_a_look_that_began_at_a_later_note_says_nothing_about_the_ledgers_before() -> None:
    lost = Settled()
    assert lost.after(look(4, 6, {4, 5}, set())) == lost


def test_a_late_look_takes_nothing_back() -> None:
    known = Settled(9, {7: 5})
    assert known.after(look(2, 6, {2, 3, 4, 5}, {4})) == known


def test_a_doubt_is_about_new_ledgers_and_exceptions_too() -> None:
    """A look that goes on may be about to settle them."""
    doubted = Settled(4, {1: 5}).doubting([1, 9], now_ms=7)
    assert doubted == Settled(4, {1: 5, 9: 7}, doubts=1, doubted={1: 1, 9: 1})


def test_a_look_that_began_before_a_doubt_does_not_settle_the_ledger() -> None:
    """It may have read the ledger before the loss that another client found."""
    known = Settled(4, {1: 5})
    before = look(4, 6, {1, 4, 5}, set())
    doubted = known.doubting([1, 4], now_ms=7)
    assert doubted.after(before) == Settled(6, {1: 5, 4: 7}, doubts=1, doubted={1: 1, 4: 1})
    assert known.after(before) == Settled(6)


def test_a_doubt_stays_until_a_look_has_read_the_ledger() -> None:
    doubted = Settled(4).doubting([1, 2], now_ms=7)
    other = doubted.after(look(4, 6, {1, 4, 5}, {4}, doubts=1))
    assert other == Settled(6, {2: 7, 4: 5}, doubts=1, doubted={2: 1})
    late = look(4, 6, {2, 4, 5}, set())
    assert not other.after(late).has(2)
    assert other.after(look(6, 6, {2, 4}, {2}, doubts=1)) == Settled(6, {2: 7}, doubts=1)


def test_a_look_that_began_before_a_doubt_without_room_settles_nothing() -> None:
    known = Settled(EXCEPTIONS_MAX + 9)
    late = known.doubting(range(EXCEPTIONS_MAX + 1), now_ms=7)
    assert len(late.doubted) == EXCEPTIONS_MAX
    before = look(0, EXCEPTIONS_MAX + 9, set(range(EXCEPTIONS_MAX + 9)), set())
    assert late.after(before) == late
    after = look(0, EXCEPTIONS_MAX + 9, set(range(EXCEPTIONS_MAX + 9)), set(), doubts=1)
    assert late.after(after) == Settled(EXCEPTIONS_MAX + 9, doubts=1, forgotten=1)


def test_exceptions_without_room_that_were_not_doubted_stop_no_look() -> None:
    ids = set(range(EXCEPTIONS_MAX + 1))
    known = Settled().after(look(0, EXCEPTIONS_MAX + 1, ids, ids))
    assert (known.below, known.forgotten) == (EXCEPTIONS_MAX, 0)


def test_a_note_is_about_the_bookies_that_were_there() -> None:
    known = Settled(4, {1: 5}, members="three")
    assert known.among("three") == known
    others = known.among("two")
    assert not any(others.has(number) for number in range(4))
    part = look(4, 6, {1, 4, 5}, set(), members="two")
    assert known.after(part) == known
    whole = look(0, 6, {0, 1, 2, 3, 4, 5}, {1, 3}, members="two", now_ms=9)
    assert known.after(whole) == Settled(6, {1: 5, 3: 9}, members="two")
    late = look(0, 3, {0, 1, 2}, {2}, members="two", now_ms=9)
    assert known.after(late) == Settled(3, {2: 9}, members="two")


def test_looks_at_the_same_time_may_be_noted_in_any_order() -> None:
    looks = [
        look(0, 3, {0, 1, 2}, {1}),
        look(0, 5, {0, 1, 2, 3, 4}, {4}),
        look(0, 3, {0, 1, 2}, {1}),
    ]
    for order in itertools.permutations(looks):
        known = Settled()
        for one in order:
            known = known.after(one)
        assert known.below == 5
        assert 4 in known.exceptions


def test_an_id_without_a_record_is_given_up_after_a_day() -> None:
    known = Settled(4, {1: 1000})
    after = int(settling.UNBORN_SECONDS * 1000)
    assert not known.is_given_up(1, 999 + after)
    assert known.is_given_up(1, 1000 + after)
    assert not known.is_given_up(2, 2**60)


def test_what_a_note_is_about_stays_when_there_are_too_many_exceptions() -> None:
    known = Settled(EXCEPTIONS_MAX + 1, {}, "three", 7)
    later = known.doubting(range(EXCEPTIONS_MAX + 1), now_ms=5)
    assert (later.below, later.members, later.doubts) == (EXCEPTIONS_MAX, "three", 8)


def test_with_too_many_exceptions_the_later_ledgers_count_as_new() -> None:
    ids = set(range(0, 2 * EXCEPTIONS_MAX + 4, 2))
    known = Settled().after(look(0, 2 * EXCEPTIONS_MAX + 9, ids, ids))
    assert len(known.exceptions) == EXCEPTIONS_MAX
    assert known.below == 2 * EXCEPTIONS_MAX
    assert known.has(1)
    assert not known.has(2 * EXCEPTIONS_MAX + 1)
