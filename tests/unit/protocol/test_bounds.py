"""Numbers and texts at their bounds."""

import pytest

from bkspark.protocol import bounds


@pytest.mark.parametrize("value", [bounds.NUMBER_MIN, 0, bounds.NUMBER_MAX])
def test_what_a_record_holds_is_a_stored_number(value: int) -> None:
    assert bounds.is_stored_number(value)
    assert bounds.are_stored_numbers([value])


@pytest.mark.parametrize("value", [bounds.NUMBER_MIN - 1, bounds.NUMBER_MAX + 1, True, 1.0, "1"])
def test_what_no_record_holds_is_none(value: object) -> None:
    assert not bounds.is_stored_number(value)
    assert not bounds.are_stored_numbers([value])  # type: ignore[list-item]


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("-3", -3), ("0" * 30 + "7", 7)])
def test_digits_are_a_whole_number(text: str, number: int) -> None:
    assert bounds.whole(text) == number


@pytest.mark.parametrize("text", ["", " 1", "1_0", "+1", "1.0", "٣", "1" * 20])
def test_another_text_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="not a whole number"):
        bounds.whole(text)


@pytest.mark.parametrize(("text", "size"), [("ab", 2), ("é", 6), ("\ud800", 0), (None, 0)])
def test_the_size_of_a_text_is_what_json_writes(text: object, size: int) -> None:
    assert bounds.json_bytes(text) == size


def test_a_limit_that_is_too_large_is_none() -> None:
    assert bounds.limit(5) == 5
    assert bounds.limit(bounds.NUMBER_MAX + 1) is None


def test_a_time_that_is_too_long_is_no_limit() -> None:
    assert bounds.time_limit(5.0) == 5.0
    assert bounds.time_limit(bounds.SECONDS_MAX * 2) is None
    assert bounds.is_time(0)
    assert not any(map(bounds.is_time, (-1, float("inf"), float("nan"))))
