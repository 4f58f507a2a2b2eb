"""Sizes and times are written alike everywhere."""

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.quantities import seconds, size


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("1048576", 1048576),
        ("1e3", 1000),
        ("1_000", 1000),
        ("64MB", 64 * 2**20),
        ("64mib", 64 * 2**20),
        ("1GB", 2**30),
        (" 1.5 g ", 3 * 2**29),
        ("1k", 1024),
        ("2tb", 2**41),
        ("9223372036854775807", 2**63 - 1),
        ("512 bytes", 512),
        (4096, 4096),
        (2e6, 2_000_000),
    ],
)
def test_sizes(text: str, count: int) -> None:
    assert size("x", text) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("90", 90),
        ("0.5", 0.5),
        ("500ms", 0.5),
        ("90s", 90),
        ("10min", 600),
        ("10m", 600),
        ("1h", 3600),
        ("1 Hour", 3600),
        ("1h30m", 5400),
        ("7d", 604800),
        ("2 weeks", 1209600),
        (600.0, 600),
        (3600, 3600),
    ],
)
def test_times(text: str, count: float) -> None:
    assert seconds("x", text) == count


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "-1", "-1h", "1x", "h", "1 2", "1h 2", "2 1h", "nan", "inf", "1e999", "0x10"),
        *("1,5", "9" * 400, "9" * 5_000, "1." + "9" * 9 + "e308 9e307"),
    ],
)
@pytest.mark.parametrize("parse", [size, seconds])
def test_what_is_neither_is_one_line(parse, text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^--what must be a (size|time)") as caught:
        parse("--what", text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["9" * 400 + "h 0.5s", "9" * 307 + "h 1s 1h"])
def test_a_sum_that_no_float_holds_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="must be a time"):
        seconds("x", text)


@pytest.mark.parametrize(("parse", "text"), [(size, "1h"), (seconds, "1GB"), (seconds, "1kb")])
def test_a_time_is_no_size(parse, text: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse("x", text)
