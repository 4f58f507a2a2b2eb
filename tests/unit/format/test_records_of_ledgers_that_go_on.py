"""Records of ledgers that go on in later terms, and of those whose beginning is gone."""

import json
from dataclasses import replace

import pytest

from bkspark.errors import CorruptDataError
from bkspark.format import envelope, layout, ledger_metadata
from bkspark.protocol.ledger.beginning import Beginning
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.truncating import without_front

from .material import LEDGER, TOKEN, metadata
from .test_write_quorum_records import FIXTURES

STORED = FIXTURES / "ledgers" / "goes-on-v5"
STORED_TRUNCATED = FIXTURES / "ledgers" / "truncated-v6"
STORED_BEGUN = FIXTURES / "ledgers" / "begun-v7"
"""As the first version that knew it wrote them; never made again."""


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
    truncated = (STORED_TRUNCATED, without_front(goes_on(), 4))
    for file, ledger in ((STORED, goes_on()), truncated, (STORED_BEGUN, begun())):
        assert file.read_bytes() == ledger_metadata.encode(ledger, "nonce")
        assert ledger_metadata.decode(LEDGER, file.read_bytes()) == ledger


def test_who_does_not_know_that_the_beginning_is_gone_refuses_it() -> None:
    """He would miss its first entries, and what has them."""
    stored = ledger_metadata.encode(without_front(goes_on(), 4), "n")
    with pytest.raises(CorruptDataError, match="newer bkspark"):
        envelope.decode("ledger", layout.ledger_key(LEDGER), stored, newest=5)


def test_who_does_not_know_when_fragments_were_begun_refuses_it() -> None:
    """He would drop it with his next change. Also where the beginning is gone."""
    for ledger in (begun(), without_front(begun(), 4)):
        stored = ledger_metadata.encode(ledger, "n")
        assert ledger_metadata.decode(LEDGER, stored) == ledger
        with pytest.raises(CorruptDataError, match="newer bkspark"):
            envelope.decode("ledger", layout.ledger_key(LEDGER), stored, newest=6)


@pytest.mark.parametrize("name", ["began_ms", "bytes_before"])
def test_a_beginning_below_0_is_refused(name: str) -> None:
    value = json.loads(ledger_metadata.encode(begun(), "n").partition(b"\n")[2])
    value["fragments"][-1][name] = -1
    wrong = envelope.encode("ledger", layout.ledger_key(LEDGER), value, version=7)
    with pytest.raises(CorruptDataError, match="malformed"):
        ledger_metadata.decode(LEDGER, wrong)


@pytest.mark.parametrize("name", ["began_ms", "bytes_before"])
def test_half_a_beginning_is_refused(name: str) -> None:
    value = json.loads(ledger_metadata.encode(begun(), "n").partition(b"\n")[2])
    del value["fragments"][-1][name]
    wrong = envelope.encode("ledger", layout.ledger_key(LEDGER), value, version=7)
    with pytest.raises(CorruptDataError, match="malformed"):
        ledger_metadata.decode(LEDGER, wrong)


@pytest.mark.parametrize("first", [0, 3, 5, -1])
def test_one_that_contradicts_itself_is_refused(first: int) -> None:
    stored = ledger_metadata.encode(without_front(goes_on(), 4), "n")
    value = {**json.loads(stored.partition(b"\n")[2]), "first_available": first}
    wrong = envelope.encode("ledger", layout.ledger_key(LEDGER), value, version=6)
    with pytest.raises(CorruptDataError):
        ledger_metadata.decode(LEDGER, wrong)
