"""What was let go of, told apart from what is missing."""

from dataclasses import replace

import pytest

from bkspark.protocol.log.data_loss import LogGeneration, MovedError, data_loss, truncated

from .test_log import LOG

WANTED = LogGeneration("events", 1)
CUT = LOG.truncated(12)


@pytest.mark.parametrize(
    ("begin", "end", "shown"),
    [(0, 10, "offsets 0 to 9"), (3, 12, "offsets 3 to 11"), (9, 10, "offset 9")],
)
def test_what_lies_below_the_first_offset_was_let_go_of(begin: int, end: int, shown: str) -> None:
    error = data_loss(WANTED, CUT, begin, end, 2)
    assert error is not None
    assert error.args == (f"log 'events' is truncated below offset 12, so {shown} cannot be read",)
    assert error.hint.startswith("read from offset 12 on ")


@pytest.mark.parametrize(("begin", "end"), [(0, 13), (10, 15), (12, 15)])
def test_what_the_log_still_has_was_not(begin: int, end: int) -> None:
    """Its ledger may be gone all the same: that is damage, and no reason to go on."""
    assert data_loss(WANTED, CUT, begin, end, 2) is None


@pytest.mark.parametrize("now", [replace(LOG, generation=2), LOG.vacated()])
def test_all_of_an_earlier_generation_was_let_go_of(now: object) -> None:
    error = data_loss(WANTED, now, 12, 15, 2)  # type: ignore[arg-type]
    assert error is not None
    assert "was overwritten or deleted during the read, so offsets 12 to 14 of gen" in str(error)


def test_where_only_the_first_offset_is_known() -> None:
    assert "so offset 3 cannot be read" in str(truncated("events", 12, 3))


def test_what_lies_in_another_ledger_now_is_read_again_there() -> None:
    error = data_loss(WANTED, CUT, 12, 15, 99)
    assert isinstance(error, MovedError)
    assert "was compacted and its old ledger collected" in str(error)
    assert "the offsets have not changed" in str(error)
