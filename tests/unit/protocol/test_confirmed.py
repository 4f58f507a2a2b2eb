"""How far an open ledger may be read, by all that its bookies may say."""

from collections.abc import Iterator
from itertools import combinations, product

import pytest

from bkspark.protocol.ledger.evidence import Confirmed, confirmed, witnesses
from bkspark.protocol.ledger.quorum import Quorum
from tests.thorough import always

QUORUMS = [(1, 1, 1), (2, 2, 1), (2, 2, 2), (3, 3, 2), (3, 3, 3), (3, 2, 1), (3, 2, 2), (4, 3, 2)]
Lacs = tuple[int, ...]


def answers(quorum: Quorum) -> Iterator[tuple[int, ...]]:
    members = range(quorum.ensemble_size)
    return (some for size in range(len(members) + 1) for some in combinations(members, size))


def shown(quorum: Quorum, lacs: Lacs, sure: tuple[int, ...], unsure: tuple[int, ...]) -> Confirmed:
    said = {index: lacs[index] for index in (*sure, *unsure)}
    return confirmed(quorum, said, sure)


@pytest.mark.parametrize("sizes", always(QUORUMS[:-1], QUORUMS))
def test_no_reader_is_shown_less_than_one_before_him(sizes: tuple[int, int, int]) -> None:
    """Whoever answers either of them, and whatever bookies are told between the two."""
    quorum, members = Quorum(*sizes), range(sizes[0])
    first: dict[Lacs, int] = {}
    for lacs in product((-1, 0, 1), repeat=len(members)):
        found = [shown(quorum, lacs, sure, ()) for sure in answers(quorum)]
        first[lacs] = max((one.least for one in found if one.is_known), default=-1)
    for before, told in first.items():
        for after in first:
            if all(old <= new for old, new in zip(before, after, strict=True)):
                for sure in answers(quorum):
                    found = shown(quorum, after, sure, ())
                    assert not found.is_known or found.least >= told


@pytest.mark.parametrize("sizes", QUORUMS)
def test_who_may_have_had_more_than_it_shows_is_believed_only_in_what_it_shows(
    sizes: tuple[int, int, int],
) -> None:
    """A bookie that was cut back shows less, and nobody is shown less for it."""
    quorum, members = Quorum(*sizes), range(sizes[0])
    for lacs in product((-1, 0, 1), repeat=len(members)):
        whole = shown(quorum, lacs, tuple(members), ())
        for cut in answers(quorum):
            left = tuple(-1 if index in cut else lac for index, lac in enumerate(lacs))
            sure = tuple(index for index in members if index not in cut)
            found = shown(quorum, left, sure, cut)
            assert not found.is_known or found == whole


@pytest.mark.parametrize("sizes", QUORUMS)
def test_what_an_acknowledged_record_says_is_shown(sizes: tuple[int, int, int]) -> None:
    quorum = Quorum(*sizes)
    for write_set in quorum.write_sets():
        for acked in combinations(write_set, quorum.ack_quorum_size):
            lacs = [7 if index in acked else -1 for index in range(quorum.ensemble_size)]
            everybody = dict(enumerate(lacs))
            assert confirmed(quorum, everybody, everybody) == Confirmed(7, 7)


def test_it_is_known_only_with_answers_from_every_write_set() -> None:
    for sizes in QUORUMS:
        quorum = Quorum(*sizes)
        for sure in answers(quorum):
            found = shown(quorum, (4,) * sizes[0], sure, ())
            covers = all(quorum.is_absent(write_set, sure) for write_set in quorum.write_sets())
            assert covers or not found.is_known
            assert found.is_known == (found.least == 4 and found.most == 4)


@pytest.mark.parametrize(
    ("sizes", "away_max"), [((3, 3, 2), 1), ((3, 3, 3), 1), ((2, 2, 2), 0), ((5, 5, 3), 2)]
)
def test_so_many_bookies_may_be_away_where_the_others_agree(
    sizes: tuple[int, int, int], away_max: int
) -> None:
    quorum = Quorum(*sizes)
    for sure in answers(quorum):
        found = shown(quorum, (4,) * sizes[0], sure, ())
        assert found.is_known == (sizes[0] - len(sure) <= away_max)


def test_what_is_known_by_other_means_counts() -> None:
    quorum = Quorum(3, 3, 2)
    assert confirmed(quorum, {}, ()) == Confirmed(-1, None)
    assert confirmed(quorum, {0: -1, 1: -1}, (0, 1), floor=5) == Confirmed(5, 5)
    assert confirmed(quorum, {0: 3, 1: -1}, (0, 1), floor=5) == Confirmed(5, 5)
    assert confirmed(quorum, {0: 9, 1: -1}, (0, 1), floor=5) == Confirmed(5, 9)
    assert confirmed(quorum, {0: 9, 1: 9}, (0, 1), floor=5) == Confirmed(9, 9)
    assert [witnesses(Quorum(*sizes)) for sizes in QUORUMS] == [1, 1, 1, 2, 2, 1, 1, 2]
