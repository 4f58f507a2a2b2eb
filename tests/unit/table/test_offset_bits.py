"""The bits of a range are the set of its offsets that were found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkspark.table.reading import DoubledOffsetError, OffsetBits

BEGIN = 2**40 + 3
RANGES = st.lists(st.tuples(st.integers(-5, 45), st.integers(-5, 45)), max_size=3)
BATCHES = st.lists(st.lists(st.integers(0, 39), min_size=1, max_size=8), max_size=6)


def shifted(values: list[int]) -> "np.typing.NDArray[np.int64]":
    return np.array(values, np.int64) + BEGIN


@given(length=st.integers(0, 40), missing=RANGES, passes=st.lists(BATCHES, max_size=3))
def test_bits_are_a_set(
    length: int, missing: list[tuple[int, int]], passes: list[list[list[int]]]
) -> None:
    """Batches of one pass after another, up to the first offset that is there twice."""
    gaps = [(first + BEGIN, last + BEGIN) for first, last in missing]
    bits = OffsetBits(BEGIN, BEGIN + length, gaps)
    done = {n for first, last in missing for n in range(max(first, 0), min(last, length))}
    seen = set[int]()
    for batches in passes:
        for wanted in batches:
            batch = [n for n in wanted if n < length]
            if not batch:
                continue
            if seen & set(batch) or len(set(batch)) < len(batch):
                twice = [n for n in batch if n in seen or batch.count(n) > 1]
                with pytest.raises(DoubledOffsetError) as error:
                    bits.admit(shifted(batch))
                assert error.value.offset - BEGIN in twice
                return
            assert bits.admit(shifted(batch)).tolist() == [n not in done for n in batch]
            seen |= set(batch)
        left = [n for begin, end in bits.left() for n in range(begin - BEGIN, end - BEGIN)]
        assert left == sorted(set(range(length)) - seen - done)
        bits.begin_pass()
        done |= seen
        seen = set()
        for first, last in ((0, length), (3, 9), (-9, 2), (38, 99)):
            inside = set(range(max(first, 0), min(last + 1, length)))
            assert bits.are_done(first + BEGIN, last + BEGIN) == (inside <= done)


def test_an_offset_costs_a_bit() -> None:
    bits = OffsetBits(0, 8_000_000)
    assert sum(part.nbytes for part in (bits._done, bits._seen)) == 2_000_000
