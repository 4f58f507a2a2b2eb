"""Arrays made from bytes are those that Arrow makes from the values."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.format import arrow_message


@settings(deadline=None)
@given(st.lists(st.binary(max_size=20)))
def test_bytes(values: list[bytes]) -> None:
    made = arrow_message.of_bytes(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.binary()))


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers(values: list[int]) -> None:
    made = arrow_message.of_integers(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.int64()))


def test_an_integer_of_more_than_64_bits_is_refused() -> None:
    with pytest.raises(OverflowError):
        arrow_message.of_integers([2**63])
