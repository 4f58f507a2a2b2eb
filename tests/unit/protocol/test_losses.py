"""Which confirmed entries are said to be lost: compared with counting the copies of each entry."""

from itertools import combinations

import pytest

from bkspark.protocol.ledger import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.losses import losses
from bkspark.protocol.quorum import Quorum

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
                members = ledger.members_of(entry_id)
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
