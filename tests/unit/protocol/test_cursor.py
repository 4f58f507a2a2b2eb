"""A cursor goes forward, inside its log."""

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.protocol.cursor import CursorRecord

CURSOR = CursorRecord("events", "mail", generation=2, offset=5)


@pytest.mark.parametrize("offset", [5, 6, 9])
def test_a_cursor_goes_forward(offset: int) -> None:
    assert CURSOR.advanced(offset, 9) == CursorRecord("events", "mail", 2, offset)


@pytest.mark.parametrize("offset", [-1, 4, 10])
def test_a_cursor_goes_neither_back_nor_past_the_end(offset: int) -> None:
    with pytest.raises(InvalidRequestError, match="cursor mail of log events is at offset 5"):
        CURSOR.advanced(offset, 9)


def test_a_cursor_is_not_below_0() -> None:
    with pytest.raises(InvalidRequestError, match="below 0"):
        CursorRecord("events", "mail", 1, -1)


def test_a_deleted_cursor_says_so() -> None:
    assert CURSOR.deleted().is_deleted
