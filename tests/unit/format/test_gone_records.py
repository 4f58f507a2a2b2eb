"""Ids of ledgers that are gone: bytes and back, and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json
from bkspark.format.upkeep_records import GONE_KIND, decode_gone, encode_gone

LENGTH = layout.GONE_PAGE_LENGTH


@settings(max_examples=80, derandomize=True, database=None, deadline=None)
@given(st.integers(0, 3), st.frozensets(st.integers(0, LENGTH - 1), max_size=30))
def test_it_comes_back_as_it_went(page: int, places: frozenset[int]) -> None:
    ids = frozenset(page * LENGTH + place for place in places)
    assert decode_gone(page, encode_gone(page, ids, "nonce")) == ids


def test_a_page_of_which_all_are_gone_is_a_line() -> None:
    assert len(encode_gone(1, frozenset(range(LENGTH, 2 * LENGTH)), "nonce")) < 100


@pytest.mark.parametrize(
    "ranges",
    [
        [[0, LENGTH]],
        [[-1, 2]],
        [[3, 2]],
        [[0, 3], [3, 4]],
        [[5, 6], [0, 1]],
        [[0, 2**80]],
        [[0]],
        [["0", "1"]],
        [[True, True]],
        [7],
        "ranges",
    ],
    ids=str,
)
def test_hostile_ranges_are_refused(ranges: object) -> None:
    data = strict_json.encode(GONE_KIND, layout.gone_key(0), {"nonce": "n", "ranges": ranges})
    with pytest.raises(CorruptDataError):
        decode_gone(0, data)


def test_a_page_in_the_place_of_another_is_refused() -> None:
    with pytest.raises(CorruptDataError):
        decode_gone(1, encode_gone(0, frozenset({1}), "nonce"))
