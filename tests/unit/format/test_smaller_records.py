"""Records of ledgers that were made on fewer bookies than wanted, and of strict ones."""

import json
from dataclasses import replace
from typing import Any

import pytest

from bkspark.errors import CorruptDataError
from bkspark.format import layout, ledger_metadata, log_record, strict_json
from bkspark.protocol.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    MadeSmaller,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum

from .material import log

MEMBERS = tuple(Member(f"bookie-{n}", f"{n:032x}") for n in range(1, 4))
SMALLER = LedgerMetadata(
    ledger_id=7,
    quorum=Quorum(2, 2, 2),
    state=LedgerState.CLOSED,
    term=1,
    token="a" * 32,
    fragments=(Fragment(0, 1, MEMBERS[:2], "a" * 32, has_headers=True),),
    settings=LedgerSettings(smaller=MadeSmaller(Quorum(2, 2, 2), Quorum(3, 3, 2))),
    last_entry_id=9,
    length_bytes=90,
)
GROWN = replace(
    SMALLER,
    quorum=Quorum(3, 3, 2),
    fragments=(replace(SMALLER.fragments[0], ensemble=MEMBERS),),
)
STRICT = replace(SMALLER, settings=LedgerSettings(is_strict=True))


APART = replace(SMALLER, settings=LedgerSettings(min_distinct={"rack": 2, "zone": 1}))


@pytest.mark.parametrize("ledger", [SMALLER, GROWN, STRICT, APART])
def test_ledgers_come_back_as_they_went(ledger: LedgerMetadata) -> None:
    assert ledger_metadata.decode(7, ledger_metadata.encode(ledger, "nonce")) == ledger


def test_a_strict_log_comes_back_as_it_went() -> None:
    strict = replace(log(), settings=replace(log().settings, is_strict=True))
    assert log_record.decode("events", log_record.encode(strict, "nonce")) == strict
    apart = replace(log(), settings=replace(log().settings, min_distinct={"rack": 2}))
    assert log_record.decode("events", log_record.encode(apart, "nonce")) == apart


@pytest.mark.parametrize(
    "wanted",
    [None, [], {"rack": 0}, {"rack": True}, {"rack": "2"}, {"rack": 257}, {"Rack": 1}, {"": 1}],
)
def test_labels_on_which_no_ledger_can_insist_are_refused(wanted: Any) -> None:
    value = json.loads(ledger_metadata.encode(SMALLER, "nonce").partition(b"\n")[2])
    value["min_distinct"] = wanted
    data = strict_json.encode("ledger", layout.ledger_key(7), value)
    with pytest.raises(CorruptDataError):
        ledger_metadata.decode(7, data)


@pytest.mark.parametrize(
    "changed",
    [
        {"made": None},
        {"wanted": None},
        {"made": [2, 2]},
        {"made": [2, 2, True]},
        {"made": [3, 3, 2]},
        {"wanted": [2, 2, 2]},
        {"wanted": [5, 2, 1]},
        {"made": [1, 1, 1]},
        {"quorum": [3, 3, 2]},
        {"made": "2/2/2"},
    ],
)
def test_hostile_sizes_are_refused(changed: dict[str, Any]) -> None:
    value = json.loads(ledger_metadata.encode(SMALLER, "nonce").partition(b"\n")[2])
    place = value if "quorum" in changed else value["smaller"]
    place |= changed
    data = strict_json.encode("ledger", layout.ledger_key(7), value)
    with pytest.raises(CorruptDataError):
        ledger_metadata.decode(7, data)
