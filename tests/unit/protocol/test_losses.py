"""Which confirmed entries are said to be lost: compared with counting the copies of each entry."""

from itertools import combinations

import pytest

from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, InlinePart, Piece
from bkspark.protocol.recovery.verdicts import (
    Doubt,
    GivenUp,
    MemberAnswer,
    given_up,
    losses,
    not_shown,
)

BOOKIES = tuple(Member(f"bookie-{n}", "0" * 32) for n in range(7))


def ledger_of(quorum: Quorum, *fragments: tuple[int, int]) -> LedgerMetadata:
    """Fragments: (first entry, number of the first bookie of its ensemble)."""
    made = tuple(
        Fragment(first, 1, BOOKIES[number : number + quorum.ensemble_size])
        for first, number in fragments
    )
    return LedgerMetadata(0, quorum, LedgerState.IN_RECOVERY, 2, "0" * 32, made)


@pytest.mark.parametrize("sizes", [(3, 3, 2), (4, 2, 2), (5, 3, 2), (3, 3, 3), (2, 1, 1)])
def test_each_entry_that_may_be_lost_is_in_a_loss_and_no_other_is(
    sizes: tuple[int, int, int],
) -> None:
    ledger = ledger_of(Quorum(*sizes), (0, 0), (7, 1), (9, 2))
    for count in range(5):
        for gone in combinations(BOOKIES, count):
            found = losses(ledger, gone, 20)
            for entry_id in range(21):
                members = Locations(ledger).holders(entry_id)
                left = [member for member in members if member not in gone]
                [*said] = (
                    loss
                    for loss in found
                    if loss.first_entry_id <= entry_id <= loss.last_entry_id
                    and set(loss.members) == set(members)
                )
                is_in_danger = len(members) - len(left) >= sizes[2]
                assert len(said) == is_in_danger, (gone, entry_id)
                assert [loss.is_certain for loss in said] == [not left] * len(said)


def test_only_confirmed_entries_of_their_own_fragment_are_lost() -> None:
    ledger = ledger_of(Quorum(3, 3, 2), (0, 0), (7, 3))
    assert [(x.first_entry_id, x.last_entry_id) for x in losses(ledger, BOOKIES, 8)] == [
        (0, 6),
        (7, 8),
    ]
    assert [(x.first_entry_id, x.last_entry_id) for x in losses(ledger, BOOKIES, 6)] == [(0, 6)]
    assert losses(ledger_of(Quorum(3, 3, 2), (0, 0)), BOOKIES, -1) == []


def test_a_loss_names_who_is_gone_in_write_order() -> None:
    ledger = ledger_of(Quorum(5, 3, 2), (0, 0))
    named = [
        ([m.bookie_id[-1] for m in loss.members], [m.bookie_id[-1] for m in loss.gone])
        for loss in losses(ledger, {BOOKIES[0], BOOKIES[3], BOOKIES[4]}, 0)
    ]
    assert named == [
        (["2", "3", "4"], ["3", "4"]),
        (["3", "4", "0"], ["3", "4", "0"]),
        (["4", "0", "1"], ["4", "0"]),
    ]


@pytest.mark.parametrize("sizes", [(3, 3, 2), (4, 2, 2), (5, 3, 2)])
def test_damage_is_counted_entry_by_entry(sizes: tuple[int, int, int]) -> None:
    """Compared with counting, for each entry, the members that are gone or hide it."""
    ledger = ledger_of(Quorum(*sizes), (0, 0), (7, 1))
    damaged = {
        BOOKIES[0]: [(2, 5)],
        BOOKIES[1]: [(0, 2), (5, 8)],
        BOOKIES[2]: [(4, None)],
        BOOKIES[3]: [(12, 30)],
    }
    for gone in [(), (BOOKIES[1],), (BOOKIES[3], BOOKIES[4])]:
        found = losses(ledger, gone, 14, damaged)
        for entry_id in range(16):
            fragment = ledger.fragment_of(entry_id)
            for write_set in ledger.quorum.write_sets():
                members = [fragment.ensemble[index] for index in write_set]
                missing = [
                    m
                    for m in members
                    if m in gone
                    or any(
                        first <= entry_id and (last is None or entry_id <= last)
                        for first, last in damaged.get(m, [])
                    )
                ]
                said = [
                    loss
                    for loss in found
                    if loss.first_entry_id <= entry_id <= loss.last_entry_id
                    and list(loss.members) == members
                ]
                assert len(said) == (len(missing) >= sizes[2] and entry_id <= 14)
                for loss in said:
                    assert list(loss.gone) == missing
                    assert list(loss.damaged) == [m for m in missing if m not in gone]


def test_neighbouring_entries_that_are_lost_alike_are_one_loss() -> None:
    ledger = ledger_of(Quorum(3, 3, 2), (0, 0))
    damaged = {BOOKIES[0]: [(1, 3), (4, 6)], BOOKIES[1]: [(0, None)], BOOKIES[2]: [(9, 9)]}
    found = [(x.first_entry_id, x.last_entry_id) for x in losses(ledger, (), 12, damaged)]
    assert found == [(1, 6), (9, 9)]


def test_what_is_shown_elsewhere_is_not_hidden() -> None:
    def left(*shown: tuple[int, int]) -> list[tuple[int, int | None]]:
        return list(not_shown([(2, 5), (8, None)], shown))

    assert left() == [(2, 5), (8, None)]
    assert left((3, 4), (9, 10)) == [(2, 2), (5, 5), (8, 8), (11, None)]
    assert left((0, 3), (3, 9)) == [(10, None)]
    assert left((6, 7)) == [(2, 5), (8, None)]


def test_what_is_given_up_is_what_shows_and_the_gaps_in_it() -> None:
    quorum = Quorum(3, 3, 2)

    def record(first: int, last: int) -> tuple[AddRecord, frozenset[Piece]]:
        parts = (InlinePart(0, 1, "0" * 8),)
        found = AddRecord(0, 1, "0" * 32, first, last, -1, 0, quorum, (), rows=parts)
        return found, found.pieces

    torn = (record(5, 6)[0], frozenset[Piece]())
    answers = {
        0: MemberAnswer({1: record(1, 2), 4: record(4, 4), 5: torn}, Doubt.DAMAGED),
        1: MemberAnswer({7: record(7, 8), 9: record(9, 9)}, Doubt.DAMAGED),
        2: MemberAnswer({}, Doubt.LOST),
    }
    assert given_up(3, answers, quorum) == [
        GivenUp(3, 3, is_whole=False),
        GivenUp(4, 4, is_whole=True),
        GivenUp(5, 6, is_whole=False),
        GivenUp(7, 9, is_whole=True),
    ]
    assert given_up(10, answers, quorum) == []
