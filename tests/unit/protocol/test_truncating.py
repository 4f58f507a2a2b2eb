"""A ledger's beginning: what may go of it, and what is left."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.errors import InvalidRequestError, NoSuchEntryError
from bkspark.protocol.ledger.deletion import oldest_owner, without_front
from bkspark.protocol.ledger.evidence import counts, owners
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import (
    FRAGMENTS_MAX,
    Fragment,
    LedgerMetadata,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord

QUORUM = Quorum(3, 3, 2)
MEMBERS = tuple(Member(name, "1" * 32) for name in "abc")
TERMS = {0: 1, 4: 1, 6: 3, 9: 3, 12: 7}
OPEN, CLOSED = LedgerState.OPEN, LedgerState.CLOSED


def ledger(state: LedgerState = OPEN, *, goes_on: bool = True) -> LedgerMetadata:
    fragments = tuple(
        Fragment(first, term, MEMBERS, f"{term:032x}", has_headers=True, owner=term * goes_on)
        for first, term in TERMS.items()
    )
    end = (20, 300) if state is CLOSED else (None, None)
    return LedgerMetadata(
        *(7, QUORUM, state, 7, f"{7:032x}", fragments), last_entry_id=end[0], length_bytes=end[1]
    )


def firsts(found: LedgerMetadata) -> list[int]:
    return [fragment.first_entry_id for fragment in found.fragments]


@pytest.mark.parametrize(
    ("before", "left"),
    [
        (0, [0, 4, 6, 9, 12]),
        (3, [0, 4, 6, 9, 12]),
        (4, [4, 6, 9, 12]),
        (8, [6, 9, 12]),
        (9, [9, 12]),
        (10**9, [9, 12]),
    ],
)
@pytest.mark.parametrize("state", [OPEN, LedgerState.IN_RECOVERY])
def test_fragments_that_end_in_front_of_an_entry_go_but_for_the_last_two(
    before: int, left: list[int], state: LedgerState
) -> None:
    """The last record of a ledger lies in one of these, and it alone says the length."""
    after = without_front(replace(ledger(), state=state), before)
    assert firsts(after) == left
    assert after.first_available == left[0]
    assert after.last_fragment == ledger().last_fragment
    assert replace(after, fragments=ledger().fragments, state=OPEN) == ledger()


def test_of_a_closed_one_the_last_fragment_stays() -> None:
    assert firsts(without_front(ledger(CLOSED), 10**9)) == [12]
    assert firsts(without_front(ledger(CLOSED), 11)) == [9, 12]


def test_nothing_comes_back_and_nothing_goes_of_one_that_is_deleted() -> None:
    after = without_front(ledger(), 7)
    assert without_front(after, 0) == without_front(after, 8) == after
    deleting = ledger().deleting()
    assert without_front(deleting, 9) == deleting


def test_only_one_that_goes_on_is_truncated() -> None:
    with pytest.raises(InvalidRequestError, match="only one that goes on"):
        without_front(ledger(goes_on=False), 9)
    old = ledger(goes_on=False)
    with pytest.raises(InvalidRequestError, match="must start at 0"):
        replace(old, fragments=old.fragments[1:])


def test_what_lies_in_front_is_in_no_fragment_and_says_so() -> None:
    after = without_front(ledger(), 8)
    for entry_id in range(6):
        with pytest.raises(NoSuchEntryError, match=r"begins at entry 6, .* was truncated"):
            after.fragment_of(entry_id)
    assert after.fragment_of(6).first_entry_id == 6
    assert Locations(after).holders(13) == Locations(ledger()).holders(13)


def record(term: int, first: int, last: int) -> AddRecord:
    return AddRecord(7, term, f"{term:032x}", first, last, first - 1, 10 * (last + 1), QUORUM, ())


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(0, 5),
    st.integers(1, 9),
)
def test_behind_its_beginning_the_same_counts_and_in_front_nothing(
    before: int, first: int, more: int, term: int
) -> None:
    after, one = without_front(ledger(), before), record(term, first, first + more)
    counted = counts(ledger().fragments, one)
    assert counts(after.fragments, one) == (counted and first >= after.first_available)
    assert bool(owners(after.fragments, first)) == (first >= after.first_available)


def test_only_journals_of_terms_that_own_nothing_any_more_may_go() -> None:
    assert oldest_owner(ledger()) == 0
    assert oldest_owner(without_front(ledger(), 4)) == 1
    assert oldest_owner(without_front(ledger(), 6)) == 3
    assert oldest_owner(without_front(ledger(), 11)) == 3
    assert oldest_owner(without_front(ledger(CLOSED), 12)) == 7


def test_a_ledger_of_many_fragments_has_room_again_once_some_are_gone() -> None:
    first, last = ledger().fragments[0], ledger().last_fragment
    most = tuple(replace(first, first_entry_id=n) for n in range(FRAGMENTS_MAX - 1))
    full = replace(ledger(), fragments=(*most, replace(last, first_entry_id=FRAGMENTS_MAX)))
    assert not full.has_room
    assert without_front(full, 9).has_room
