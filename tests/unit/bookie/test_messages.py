"""A message names its bookie once."""

import pytest

from bkspark.bookie.messages import told_of


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("it is full", "bookie bookie-2: it is full"),
        ("bookie bookie-2: cannot read x", "bookie bookie-2: cannot read x"),
        ("bookie bookie-2 still does not answer", "bookie bookie-2 still does not answer"),
        ("bookie bookie-22: cannot", "bookie bookie-2: bookie bookie-22: cannot"),
        ("bookie bookie-2-b: cannot", "bookie bookie-2: bookie bookie-2-b: cannot"),
        ("", "bookie bookie-2: "),
    ],
)
def test_the_bookie_is_named_once(message: str, told: str) -> None:
    assert told_of("bookie-2", message) == told
