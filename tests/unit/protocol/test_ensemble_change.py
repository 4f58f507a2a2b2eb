"""Which failed members are replaced, with and without delay: every case of small ensembles."""

from itertools import chain, combinations

import pytest

from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.writer.ensemble_change import members_to_replace

SIZES = [(e, w, a) for e in range(1, 6) for w in range(1, e + 1) for a in range(1, w + 1)]


def subsets(size: int) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(range(size), n) for n in range(size + 1)))


@pytest.mark.parametrize("sizes", SIZES)
def test_without_delay_all_are(sizes: tuple[int, int, int]) -> None:
    for failed in subsets(sizes[0]):
        assert members_to_replace(Quorum(*sizes), set(failed), is_delayed=False) == failed


@pytest.mark.parametrize("sizes", SIZES)
def test_with_delay_all_are_as_soon_as_some_entry_would_miss_its_ack_quorum(
    sizes: tuple[int, int, int],
) -> None:
    quorum = Quorum(*sizes)
    for failed in subsets(sizes[0]):
        live = [
            sum(index not in failed for index in quorum.write_set(entry_id))
            for entry_id in range(quorum.ensemble_size)
        ]
        expected = failed if min(live) < quorum.ack_quorum_size else ()
        assert members_to_replace(quorum, set(failed), is_delayed=True) == expected
