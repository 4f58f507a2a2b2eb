"""What may go of a ledger that stays."""

from dataclasses import replace

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.upkeep.repairing import (
    Place,
    barred,
    leavers,
    left_by,
    may_leave,
    replaced,
    unnamed,
)

OLD, SECOND, THIRD, FOURTH = (Member(name, "1") for name in ("old", "second", "third", "fourth"))
OPEN = LedgerMetadata(
    ledger_id=7,
    quorum=Quorum(2, 2, 2),
    state=LedgerState.OPEN,
    term=1,
    token="a" * 32,
    fragments=(Fragment(0, 1, (OLD, SECOND)), Fragment(5, 1, (SECOND, THIRD))),
)
CLOSED = OPEN.closed(last_entry_id=8, length_bytes=1, term=1, token="a" * 32)


def test_who_has_a_place_in_any_fragment_does_not_leave() -> None:
    assert [may_leave(CLOSED, who) for who in (OLD, SECOND, THIRD, FOURTH)] == [False] * 3 + [True]
    for member in (OLD, SECOND, THIRD):
        with pytest.raises(InvalidRequestError, match="has a place"):
            left_by(CLOSED, [FOURTH, member])


def test_a_bookie_that_was_set_up_anew_is_another_member() -> None:
    anew = replace(OLD, incarnation="2")
    after = left_by(CLOSED, [anew])
    assert after.left == {anew}
    assert barred(after, [OLD, SECOND]) == set()
    assert barred(after, [anew, SECOND]) == {"old"}


@pytest.mark.parametrize("ledger", [OPEN, OPEN.in_recovery("b" * 32), CLOSED.deleting()])
def test_only_closed_ledgers_are_left(ledger: LedgerMetadata) -> None:
    assert not may_leave(ledger, FOURTH)
    with pytest.raises(InvalidRequestError):
        left_by(ledger, [FOURTH])


def test_who_has_left_gets_no_place_and_is_never_forgotten() -> None:
    after = left_by(CLOSED, [FOURTH])
    assert left_by(after, [replace(OLD, incarnation="2")]).left > {FOURTH}
    assert left_by(after, [FOURTH]) == after
    place = Place(7, 0, 0, OLD)
    with pytest.raises(InvalidRequestError, match="left"):
        replaced(after, place, FOURTH)
    swapped = replaced(after, place, replace(FOURTH, incarnation="2"))
    assert swapped.left == after.deleting().left == {FOURTH}


def test_the_last_that_is_free_does_not_leave() -> None:
    fifth = Member("fifth", "1")
    assert leavers(CLOSED, [FOURTH, OLD], [OLD, FOURTH, fifth]) == {FOURTH}
    assert leavers(CLOSED, [FOURTH, fifth], [OLD, FOURTH, fifth]) == {fifth}
    assert leavers(CLOSED, [FOURTH], [OLD, FOURTH]) == set()
    assert leavers(CLOSED, [FOURTH], [OLD]) == {FOURTH}, "nobody gives it a place anyway"
    after = left_by(CLOSED, [fifth])
    assert leavers(after, [FOURTH, fifth], [FOURTH, fifth]) == {fifth}, "it has left already"


def test_nothing_is_unnamed_unless_every_member_has_told_all_it_knows() -> None:
    listed = {"a", "b", "c"}
    assert unnamed(listed, [{"a"}, {"b"}]) == {"c"}
    assert unnamed(listed, [set(), set()]) == listed
    assert unnamed(listed, [{"a"}, None]) == set()
    assert unnamed(listed, []) == set()
