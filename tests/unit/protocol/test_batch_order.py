"""Where a micro-batch stands among those of its query."""

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.protocol.log.batch import is_repeated, other_rows


def test_the_last_batch_is_repeated_and_a_later_one_is_new() -> None:
    assert is_repeated("query", 4, 4, "log")
    assert not is_repeated("query", 5, 4, "log")


def test_a_batch_below_the_last_one_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"micro-batch 3 .* restored .*new checkpoint"):
        is_repeated("query", 3, 4, "log")


def test_other_rows_are_refused_with_the_difference() -> None:
    assert "with other rows (2 and 3)" in str(other_rows("query", 4, "log", "2 and 3"))
