"""Pages of digests as metadata records."""

import pytest

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json, tier_record
from bkspark.format.tier_record import WINDOW_OFFSETS_MAX, DigestsPage

NAME = layout.log_page_name(1, "0123456789abcdef" * 2)
PAGE = DigestsPage(10, b"\x01\xff", (11, 11 + WINDOW_OFFSETS_MAX), (0, 2**32 - 1))


def test_a_page_comes_back() -> None:
    data = tier_record.encode_digests("events", NAME, PAGE)
    assert tier_record.decode_digests("events", NAME, data) == PAGE
    assert PAGE.windows == ((10, 11), (11, PAGE.end))
    with pytest.raises(CorruptDataError):
        tier_record.decode_digests("others", NAME, data)


@pytest.mark.parametrize(
    ("ends", "digests"),
    [
        ((), ()),
        ((11,), ()),
        ((10,), (1,)),
        ((12, 11), (1, 1)),
        ((11 + WINDOW_OFFSETS_MAX,), (1,)),
        ((11,), (2**32,)),
    ],
)
def test_an_impossible_page_is_neither_made_nor_read(
    ends: tuple[int, ...], digests: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=r"window|digest"):
        DigestsPage(10, b"", ends, digests)
    value = {"begin": 10, "schema": "", "ends": list(ends), "digests": list(digests)}
    data = strict_json.encode("tierdigests", layout.tier_page_key("events", NAME), value)
    with pytest.raises(CorruptDataError, match="malformed"):
        tier_record.decode_digests("events", NAME, data)
