"""Full above one mark until below another: a naive list of looks says which."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.protocol.bookies import USUAL_MARKS, Marks, is_full, told

MARKS = Marks(950, 900)


def looks(*used: int, marks: Marks = MARKS, total: int = 100) -> list[bool]:
    """What is said of a disk of 100 bytes of which so many are used, one look after the other."""
    said, was_full = [], False
    for count in used:
        was_full = is_full(marks, total - count, total, was_full=was_full)
        said.append(was_full)
    return said


def test_a_disk_is_full_above_the_upper_mark_until_it_is_below_the_lower_one() -> None:
    assert looks(94, 95, 96, 95, 90, 89, 95, 96) == [
        False,
        False,
        True,
        True,
        True,
        False,
        False,
        True,
    ]


def test_of_a_disk_of_unknown_size_nothing_new_is_said() -> None:
    assert not is_full(MARKS, 0, 0, was_full=False)
    assert is_full(MARKS, 0, 0, was_full=True)


def test_a_mark_of_everything_is_never_passed() -> None:
    assert looks(99, 100, marks=Marks(1000, 900)) == [False, False]


@pytest.mark.parametrize("marks", [(0, 0), (900, 950), (1001, 900), (900, 0), (-1, -1)])
def test_marks_are_in_order_and_inside_the_disk(marks: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no marks"):
        Marks(*marks)


def test_what_follows_is_told_in_one_line() -> None:
    assert told(USUAL_MARKS, 39, 1000) == (
        "96.1 % of its disk is used: it gets no new ledgers until less than 90 % is used"
    )
    assert told(USUAL_MARKS, 0, 0).startswith("its disk was nearly full: ")


@settings(max_examples=200, derandomize=True, database=None)
@given(st.lists(st.integers(0, 100)), st.integers(1, 10), st.integers(0, 9))
def test_it_changes_only_where_a_mark_is_passed(used: list[int], low: int, more: int) -> None:
    marks = Marks(min(1000, (low + more) * 100), low * 100)
    was_full = False
    for count, now in zip(used, looks(*used, marks=marks)):
        if now and not was_full:
            assert count * 10 > marks.high_permille
        if was_full and not now:
            assert count * 10 < marks.low_permille
        if marks.low_permille <= count * 10 <= marks.high_permille:
            assert now is was_full
        was_full = now
