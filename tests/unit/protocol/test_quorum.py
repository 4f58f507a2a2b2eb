"""Quorum arithmetic against enumeration of every ack quorum, for every E <= 8."""

from collections.abc import Iterator
from itertools import combinations, product

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.quorum import ENSEMBLE_SIZE_MAX, Quorum
from tests.thorough import always

SIZES = [
    (size, write, ack)
    for size in range(1, 9)
    for write in range(1, size + 1)
    for ack in range(1, write + 1)
]
SOME = [sizes for sizes in SIZES if sizes[0] <= 5]


def ring_window(size: int, write: int, entry_id: int) -> list[int]:
    """The write set by walking the ring one step at a time."""
    window, index = [], 0
    for _ in range(entry_id):
        index = 0 if index == size - 1 else index + 1
    for _ in range(write):
        window.append(index)
        index = 0 if index == size - 1 else index + 1
    return window


def ack_quorums(size: int, write: int, ack: int) -> dict[int, list[frozenset[int]]]:
    """Every possible ack quorum, by the entry whose write set it is a part of."""
    return {
        entry_id: [frozenset(c) for c in combinations(ring_window(size, write, entry_id), ack)]
        for entry_id in range(size)
    }


def subsets(size: int) -> Iterator[frozenset[int]]:
    for flags in product((False, True), repeat=size):
        yield frozenset(index for index, flag in enumerate(flags) if flag)


def test_the_write_sets_of_the_protocol_document() -> None:
    """Its example: E = 4, Qw = 3, Qa = 2; bookies B1 to B4; the first six entries."""
    quorum = Quorum(4, 3, 2)
    names = [[f"B{index + 1}" for index in quorum.write_set(entry)] for entry in range(6)]
    assert names == [
        ["B1", "B2", "B3"],
        ["B2", "B3", "B4"],
        ["B3", "B4", "B1"],
        ["B4", "B1", "B2"],
        ["B1", "B2", "B3"],
        ["B2", "B3", "B4"],
    ]


@pytest.mark.parametrize("sizes", SIZES)
def test_a_write_set_is_qw_neighbours_from_index_e_mod_E(sizes: tuple[int, int, int]) -> None:
    quorum = Quorum(*sizes)
    for entry_id in range(2 * sizes[0] + 1):
        assert list(quorum.write_set(entry_id)) == ring_window(sizes[0], sizes[1], entry_id)


@pytest.mark.parametrize("sizes", SIZES)
def test_there_are_as_many_write_sets_as_differ_as_sets(sizes: tuple[int, int, int]) -> None:
    quorum = Quorum(*sizes)
    distinct = {frozenset(ring_window(sizes[0], sizes[1], e)) for e in range(sizes[0])}
    assert quorum.stripe_count == len(quorum.write_sets()) == len(distinct)
    assert {frozenset(write_set) for write_set in quorum.write_sets()} == distinct
    assert [write_set[0] for write_set in quorum.write_sets()] == list(range(quorum.stripe_count))


@pytest.mark.parametrize("sizes", always(SOME, SIZES))
def test_an_entry_is_acknowledged_by_qa_of_its_own_write_set(sizes: tuple[int, int, int]) -> None:
    quorum, possible = Quorum(*sizes), ack_quorums(*sizes)
    for acked in subsets(sizes[0]):
        complete = [any(acks <= acked for acks in possible[e]) for e in range(sizes[0])]
        own = [quorum.is_ack_quorum(quorum.write_set(e), acked) for e in range(sizes[0])]
        assert own == complete
        assert quorum.is_ack_quorum_of_all(acked) == all(complete)


@pytest.mark.parametrize("sizes", always(SOME, SIZES))
def test_answers_from_every_write_set_mean_that_no_ack_quorum_is_silent(
    sizes: tuple[int, int, int],
) -> None:
    quorum = Quorum(*sizes)
    every = {acks for group in ack_quorums(*sizes).values() for acks in group}
    for answered in subsets(sizes[0]):
        covered = not any(acks.isdisjoint(answered) for acks in every)
        assert covered == all(quorum.is_absent(ws, answered) for ws in quorum.write_sets())


@pytest.mark.parametrize("sizes", always(SOME, SIZES))
def test_absent_means_that_every_ack_quorum_has_a_proof(sizes: tuple[int, int, int]) -> None:
    quorum, possible = Quorum(*sizes), ack_quorums(*sizes)
    for absences in subsets(sizes[0]):
        for entry_id in range(sizes[0]):
            proved = all(acks & absences for acks in possible[entry_id])
            assert quorum.is_absent(quorum.write_set(entry_id), absences) == proved


def test_answers_from_outside_the_write_set_count_for_nothing() -> None:
    quorum = Quorum(4, 2, 2)
    assert not quorum.is_ack_quorum(quorum.write_set(1), {0, 1, 3})
    assert not Quorum(5, 3, 2).is_absent((1, 2, 3), {0, 1, 4})


@pytest.mark.parametrize("sizes", SIZES)
def test_losses_that_can_be_borne(sizes: tuple[int, int, int]) -> None:
    quorum = Quorum(*sizes)
    write_set = quorum.write_set(0)
    acked = set(write_set[: sizes[2]])
    assert acked - set(write_set[: quorum.losses_max])
    assert not acked - set(write_set[: quorum.losses_max + 1])


@pytest.mark.parametrize(
    "sizes", [(3, 4, 2), (3, 2, 3), (3, 3, 0), (0, 0, 0), (3, 0, -1), (ENSEMBLE_SIZE_MAX + 1, 3, 2)]
)
def test_sizes_out_of_order_are_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(InvalidRequestError, match="ensembleSize >= writeQuorumSize"):
        Quorum(*sizes)


def test_the_largest_ensemble_is_allowed() -> None:
    assert Quorum(ENSEMBLE_SIZE_MAX, 3, 2).stripe_count == ENSEMBLE_SIZE_MAX
