"""A cursor goes forward, inside its log."""

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.protocol.log.cursor import CursorRecord

CURSOR = CursorRecord("events", "mail", generation=2, offset=5)


@pytest.mark.parametrize("offset", [5, 6, 9])
def test_a_cursor_goes_forward(offset: int) -> None:
    assert CURSOR.advanced(offset, 9) == CursorRecord("events", "mail", 2, offset)


@pytest.mark.parametrize("offset", [-1, 4, 10])
def test_a_cursor_goes_neither_back_nor_past_the_end(offset: int) -> None:
    with pytest.raises(InvalidRequestError, match="cursor mail of log events is at offset 5"):
        CURSOR.advanced(offset, 9)


def test_a_cursor_that_cannot_go_there_says_where_it_can() -> None:
    with pytest.raises(InvalidRequestError) as past:
        CURSOR.advanced(10, 9)
    assert past.value.hint == "advance it to offset 9 at most"
    with pytest.raises(InvalidRequestError) as back:
        CURSOR.advanced(4, 9)
    assert back.value.hint == "a cursor moves forward only; make another cursor to read again"


def test_a_cursor_is_not_below_0() -> None:
    with pytest.raises(InvalidRequestError, match="below 0"):
        CursorRecord("events", "mail", 1, -1)


@pytest.mark.parametrize(
    ("generation", "first", "problem"),
    [
        (2, 0, ""),
        (2, 5, ""),
        (2, 8, "offsets 5 to 7 are truncated: move it to 8"),
        (3, 0, "of generation 2, and the log is at 3: delete it"),
    ],
)
def test_a_cursor_tells_what_is_wrong_with_it(generation: int, first: int, problem: str) -> None:
    assert CURSOR.problem(generation, first) == problem


def test_a_deleted_cursor_says_so() -> None:
    assert CURSOR.deleted().is_deleted
