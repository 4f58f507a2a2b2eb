"""Which places leave a bookie, and which ledgers may be given up, by hand-made facts."""

from dataclasses import replace
from itertools import combinations

import pytest

from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.upkeep.repairing import (
    MemberState,
    is_kept_without,
    is_named,
    places_to_leave,
)

MEMBERS = tuple(Member(f"bookie-{n}", f"{n:032x}") for n in range(6))
CLOSED = LedgerMetadata(
    ledger_id=7,
    quorum=Quorum(3, 3, 2),
    state=LedgerState.CLOSED,
    term=2,
    token="ab" * 16,
    fragments=(Fragment(0, 1, MEMBERS[:3]), Fragment(5, 2, MEMBERS[1:4])),
    last_entry_id=9,
    length_bytes=10,
)
OPEN = replace(CLOSED, state=LedgerState.OPEN, last_entry_id=None, length_bytes=None)


def answers(_: Member) -> MemberState:
    return MemberState.ANSWERS


def test_each_place_of_a_closed_ledger_leaves_and_says_how_many_stay() -> None:
    needs = list(places_to_leave(CLOSED, {"bookie-0", "bookie-2"}, answers))
    found = [(n.place.fragment_first_entry_id, n.place.index, n.copies) for n in needs]
    assert found == [(0, 0, 1), (0, 2, 1), (5, 1, 2)]
    assert all(need.place.member == MEMBERS[(0, 2, 2)[n]] for n, need in enumerate(needs))


def test_a_ledger_that_is_not_closed_keeps_its_members() -> None:
    in_recovery = replace(OPEN, state=LedgerState.IN_RECOVERY)
    for ledger in (OPEN, in_recovery):
        assert list(places_to_leave(ledger, {"bookie-0"}, answers)) == []
        assert is_named(ledger, {"bookie-0"})
    assert not is_named(CLOSED, {"bookie-5"})
    assert not is_named(CLOSED.deleting(), {"bookie-0"})


@pytest.mark.parametrize("quorum", [Quorum(3, 3, 2), Quorum(4, 2, 2), Quorum(5, 3, 1)])
def test_what_is_given_up_is_had_by_others(quorum: Quorum) -> None:
    """Whoever an entry of a write set is on, as far as is promised: one of them stays."""
    fragments = (Fragment(0, 1, MEMBERS[: quorum.ensemble_size]),)
    for count in range(quorum.ensemble_size + 1):
        for without in combinations(range(quorum.ensemble_size), count):
            for ledger, holders in (
                (CLOSED, quorum.write_quorum_size),
                (OPEN, quorum.ack_quorum_size),
            ):
                worst = all(
                    set(holding) - set(without)
                    for write_set in quorum.write_sets()
                    for holding in combinations(write_set, holders)
                )
                wide = replace(ledger, quorum=quorum, fragments=fragments)
                assert is_kept_without(wide, lambda _, gone=without: gone) is worst  # type: ignore[misc]
