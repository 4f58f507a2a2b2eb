"""Records of ledgers that go on in later terms, and of those whose beginning is gone."""

import json
from dataclasses import replace

import pytest

from bkspark.errors import CorruptDataError
from bkspark.format import layout, ledger_metadata, strict_json
from bkspark.protocol.ledger.deletion import without_front
from bkspark.protocol.ledger.metadata import Beginning, LedgerMetadata

from .material import LEDGER, TOKEN, metadata


def goes_on() -> LedgerMetadata:
    """Closed, by the writer of its second term."""
    fragments = [
        replace(fragment, token=TOKEN, has_headers=True, owner=fragment.term)
        for fragment in metadata().fragments
    ]
    return replace(metadata(), fragments=tuple(fragments))


def begun() -> LedgerMetadata:
    """Its last fragment says when, and behind how many bytes."""
    *front, last = goes_on().fragments
    beginning = Beginning(1_700_000_000_123, 45)
    return replace(goes_on(), fragments=(*front, replace(last, beginning=beginning)))


def test_they_come_back_as_they_went() -> None:
    for ledger in (goes_on(), without_front(goes_on(), 4), begun(), without_front(begun(), 4)):
        assert ledger_metadata.decode(LEDGER, ledger_metadata.encode(ledger, "nonce")) == ledger


@pytest.mark.parametrize("wrong", [[-1, 45], [45, -1], [45], [1, 2, 3], [1, None], 7])
def test_a_beginning_that_cannot_be_is_refused(wrong: object) -> None:
    value = json.loads(ledger_metadata.encode(begun(), "n").partition(b"\n")[2])
    value["fragments"][-1]["beginning"] = wrong
    stored = strict_json.encode("ledger", layout.ledger_key(LEDGER), value)
    with pytest.raises(CorruptDataError, match=r"beginning|malformed"):
        ledger_metadata.decode(LEDGER, stored)


@pytest.mark.parametrize("first", [0, 3, 5, -1])
def test_one_that_contradicts_itself_is_refused(first: int) -> None:
    stored = ledger_metadata.encode(without_front(goes_on(), 4), "n")
    value = {**json.loads(stored.partition(b"\n")[2]), "first_available": first}
    wrong = strict_json.encode("ledger", layout.ledger_key(LEDGER), value)
    with pytest.raises(CorruptDataError):
        ledger_metadata.decode(LEDGER, wrong)
