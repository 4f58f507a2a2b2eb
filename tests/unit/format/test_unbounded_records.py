"""Records of unbounded logs."""

from dataclasses import replace
from pathlib import Path

import pytest

from bkspark.errors import CorruptDataError
from bkspark.format import envelope, layout, log_record
from tests.log_with import log_with

from .material import log

STORED = Path(__file__).parents[2] / "fixtures" / "logs" / "unbounded-v5"
"""As the first version that knew it wrote it; never made again."""

LOG = log_with(log(), settings=replace(log().settings, is_unbounded=True), ledgers=(), tail=(6,))
FULL = replace(LOG, settings=replace(LOG.settings, guarantees_write_quorum=True))


def test_it_comes_back_as_it_went() -> None:
    assert STORED.read_bytes() == log_record.encode(LOG, "nonce")
    assert log_record.decode("events", STORED.read_bytes()) == LOG
    assert log_record.decode("events", log_record.encode(FULL, "nonce")) == FULL


@pytest.mark.parametrize("record", [LOG, FULL])
def test_it_is_refused_by_who_does_not_know_it(record) -> None:
    """He would put ledgers behind its one, and close that."""
    with pytest.raises(CorruptDataError, match="newer bkspark"):
        envelope.decode("log", layout.log_key("events"), log_record.encode(record, "n"), newest=4)


def test_another_log_stays_as_it_was() -> None:
    assert log_record.encode(log(), "n").startswith(b"bkspark log v1 ")
    assert b"unbounded" not in log_record.encode(log(), "n")


STORED_INSIDE = STORED.parent / "truncated-v6"
INSIDE = replace(LOG, dropped=replace(LOG.dropped, of_tail=5))


def test_one_that_begins_inside_of_its_tail_comes_back_as_it_went() -> None:
    assert STORED_INSIDE.read_bytes() == log_record.encode(INSIDE, "nonce")
    assert log_record.decode("events", STORED_INSIDE.read_bytes()) == INSIDE
    with pytest.raises(CorruptDataError, match="newer bkspark"):
        envelope.decode("log", layout.log_key("events"), STORED_INSIDE.read_bytes(), newest=5)
