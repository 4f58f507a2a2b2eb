"""Records of ledgers and logs that guarantee their write quorum."""

from dataclasses import replace
from pathlib import Path

import pytest

from bkspark.errors import CorruptDataError
from bkspark.format import envelope, layout, ledger_metadata, log_record

from .material import LEDGER, guaranteeing, log, paged_log

FIXTURES = Path(__file__).parents[2] / "fixtures"
STORED_LEDGER = FIXTURES / "ledgers" / "guaranteeing-v4"
STORED_LOG = FIXTURES / "logs" / "guaranteeing-v4"
"""As the first version that knew it wrote them; never made again."""

LOG = replace(log(), settings=replace(log().settings, guarantees_write_quorum=True))


def test_they_come_back_as_they_went() -> None:
    stored = ledger_metadata.encode(guaranteeing(), "nonce")
    assert STORED_LEDGER.read_bytes() == stored
    assert ledger_metadata.decode(LEDGER, stored) == guaranteeing()
    assert STORED_LOG.read_bytes() == log_record.encode(LOG, "nonce")
    assert log_record.decode("events", STORED_LOG.read_bytes()) == LOG


def test_they_are_refused_by_who_does_not_know_them() -> None:
    """He would close ledgers on fewer copies, or put others on the log's list."""
    ledger, stored = ledger_metadata.encode(guaranteeing(), "n"), log_record.encode(LOG, "n")
    with pytest.raises(CorruptDataError, match="newer bkspark"):
        envelope.decode("ledger", layout.ledger_key(LEDGER), ledger, newest=3)
    with pytest.raises(CorruptDataError, match="newer bkspark"):
        envelope.decode("log", layout.log_key("events"), stored, newest=3)


def test_a_log_with_pages_that_does_not_stays_as_it_was() -> None:
    assert log_record.encode(paged_log(), "n").startswith(b"bkspark log v2 ")
    assert b"guarantees" not in log_record.encode(paged_log(), "n")
