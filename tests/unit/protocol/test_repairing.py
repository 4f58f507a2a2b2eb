"""What a repair does about a place, in which order, and what it changes in the metadata."""

from dataclasses import replace
from itertools import combinations

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    MadeSmaller,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.upkeep.repairing import (
    MemberState,
    Need,
    Place,
    Way,
    fewest_copies,
    location_of,
    may_widen,
    replaced,
    way_of,
    widened,
)

MEMBERS = tuple(Member(f"bookie-{n}", f"{n:032x}") for n in range(6))
LEDGER = LedgerMetadata(
    ledger_id=7,
    quorum=Quorum(3, 3, 2),
    state=LedgerState.CLOSED,
    term=2,
    token="ab" * 16,
    fragments=(
        Fragment(0, 1, MEMBERS[:3], "cd" * 16, has_headers=True),
        Fragment(5, 2, MEMBERS[1:4]),
    ),
    last_entry_id=9,
    length_bytes=10,
)
PLACE = Place(7, 0, 1, MEMBERS[1])


def test_who_answers_is_filled_who_is_gone_is_replaced_who_is_silent_is_waited_for() -> None:
    assert way_of(MemberState.ANSWERS, is_lost=False) is Way.FILL
    assert way_of(MemberState.ANSWERS, is_lost=True) is Way.REPLACE
    assert way_of(MemberState.GONE, is_lost=False) is Way.REPLACE
    assert way_of(MemberState.SILENT, is_lost=False) is Way.WAIT
    assert way_of(MemberState.SILENT, is_lost=False, is_given_up=True) is Way.REPLACE


@pytest.mark.parametrize("quorum", [Quorum(3, 3, 2), Quorum(4, 2, 2), Quorum(5, 3, 2)])
def test_the_fewest_copies_are_those_of_the_worst_write_set_that_lacks_any(quorum: Quorum) -> None:
    for count in range(1, quorum.ensemble_size + 1):
        for without in combinations(range(quorum.ensemble_size), count):
            copies = [
                len(set(ws) - set(without)) for ws in quorum.write_sets() if set(ws) & set(without)
            ]
            assert fewest_copies(quorum, without) == min(copies)
    assert fewest_copies(quorum, ()) == quorum.write_quorum_size


def test_one_copy_left_comes_first_and_none_comes_last() -> None:
    needs = [Need(replace(PLACE, index=n), MemberState.GONE, n, "") for n in (0, 2, 1, 3)]
    assert [n.copies for n in sorted(needs, key=lambda need: need.urgency)] == [1, 2, 3, 0]


def test_one_place_of_one_fragment_changes_and_nothing_else() -> None:
    after = replaced(LEDGER, PLACE, MEMBERS[5])
    assert after.fragments[0].ensemble == (MEMBERS[0], MEMBERS[5], MEMBERS[2])
    assert replaced(after, replace(PLACE, member=MEMBERS[5]), MEMBERS[1]) == LEDGER
    assert PLACE.is_beside(replace(PLACE, index=2))
    assert not PLACE.is_beside(replace(PLACE, fragment_first_entry_id=5))


def test_a_place_that_is_not_as_it_was_is_not_touched() -> None:
    open_ = replace(LEDGER, state=LedgerState.OPEN, last_entry_id=None, length_bytes=None)
    for ledger, place in (
        (open_, PLACE),
        (LEDGER, replace(PLACE, member=MEMBERS[4])),
        (LEDGER, replace(PLACE, fragment_first_entry_id=3)),
    ):
        assert location_of(ledger, place) is None
        with pytest.raises(InvalidRequestError, match="cannot be replaced there"):
            replaced(ledger, place, MEMBERS[5])
    with pytest.raises(InvalidRequestError, match="distinct bookies"):
        replaced(LEDGER, PLACE, MEMBERS[2])


SMALLER = replace(
    LEDGER,
    quorum=Quorum(2, 2, 2),
    fragments=(Fragment(0, 1, MEMBERS[:2]), Fragment(5, 2, MEMBERS[1:3])),
    settings=LedgerSettings(smaller=MadeSmaller(Quorum(2, 2, 2), Quorum(4, 3, 2))),
)


def test_a_further_member_stands_at_the_end_of_each_ensemble() -> None:
    after = widened(SMALLER, [MEMBERS[2], MEMBERS[0]])
    assert after.quorum == Quorum(3, 3, 2)
    assert [f.ensemble for f in after.fragments] == [MEMBERS[:3], (*MEMBERS[1:3], MEMBERS[0])]
    kept = replace(after, quorum=SMALLER.quorum, fragments=SMALLER.fragments)
    assert kept == SMALLER
    for entry_id in range(10):
        assert set(Locations(SMALLER).holders(entry_id)) < set(Locations(after).holders(entry_id))


def test_only_a_closed_unstriped_ledger_that_is_short_gets_further_members() -> None:
    full = widened(SMALLER, [MEMBERS[2], MEMBERS[0]])
    state = LedgerState.IN_RECOVERY
    unclosed = replace(SMALLER, state=state, last_entry_id=None, length_bytes=None)
    empty = replace(SMALLER, fragments=SMALLER.fragments[:1], last_entry_id=-1, length_bytes=0)
    smaller = LedgerSettings(smaller=MadeSmaller(Quorum(3, 2, 2), Quorum(4, 2, 2)))
    striped = replace(LEDGER, quorum=Quorum(3, 2, 2), settings=smaller)
    assert may_widen(SMALLER)
    for ledger in (full, unclosed, empty, striped, LEDGER):
        assert not may_widen(ledger)
        with pytest.raises(InvalidRequestError):
            widened(ledger, MEMBERS[4 : 4 + len(ledger.fragments)])


@pytest.mark.parametrize("joining", [[2], [2, 2], [0, 3], [2, 3, 4]])
def test_a_member_that_is_there_or_none_for_a_fragment_is_refused(joining: list[int]) -> None:
    with pytest.raises(InvalidRequestError):
        widened(SMALLER, [MEMBERS[number] for number in joining])


def test_who_has_left_does_not_join() -> None:
    left = replace(SMALLER, left=frozenset({MEMBERS[3]}))
    with pytest.raises(InvalidRequestError):
        widened(left, [MEMBERS[3], MEMBERS[0]])
