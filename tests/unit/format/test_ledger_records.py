"""Records of ledgers that members have left."""

import json
from dataclasses import replace

import pytest

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json
from bkspark.format.ledger_metadata import KIND, decode, encode
from bkspark.protocol.ledger.metadata import (
    CommitTimes,
    Fragment,
    LedgerMetadata,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.upkeep.repairing import left_by

MEMBERS = tuple(Member(f"bookie-{number}", f"{number:032x}") for number in range(1, 6))
CLOSED = LedgerMetadata(
    ledger_id=7,
    quorum=Quorum(3, 3, 2),
    state=LedgerState.CLOSED,
    term=1,
    token="a" * 32,
    fragments=(Fragment(0, 1, MEMBERS[:3], "a" * 32, has_headers=True),),
    last_entry_id=9,
    length_bytes=90,
)
LEFT = left_by(CLOSED, MEMBERS[3:])


def test_who_has_left_comes_back_as_it_went() -> None:
    assert decode(7, encode(LEFT, "nonce")) == LEFT


def test_records_share_the_members_that_they_name() -> None:
    one, other = (decode(7, encode(LEFT, nonce)) for nonce in ("a", "b"))
    for mine, theirs in zip(one.last_fragment.ensemble, other.last_fragment.ensemble):
        assert mine is theirs


@pytest.mark.parametrize(
    "left",
    [
        [["bookie-1", f"{1:032x}"]],
        [["../x", f"{1:032x}"]],
        [["bookie-4", "4"]],
        [["b"]],
        3,
        [[[], {}]],
    ],
)
def test_hostile_members_are_refused(left: object) -> None:
    """One of them has a place; others are no members."""
    key = layout.ledger_key(7)
    value = json.loads(encode(LEFT, "nonce").partition(b"\n")[2]) | {"left": left}
    with pytest.raises(CorruptDataError):
        decode(7, strict_json.encode(KIND, key, value))


def test_a_ledger_that_is_not_closed_has_left_nobody() -> None:
    opened = replace(CLOSED, state=LedgerState.OPEN, last_entry_id=None, length_bytes=None)
    assert opened.left == set()


TIMES_MAX = [2**63 - 1, 2**63 - 1]


@pytest.mark.parametrize("times", [[0, 0], [5, 5], [5, 6], TIMES_MAX])
def test_times_in_a_record_come_back(times: list[int]) -> None:
    ledger = replace(CLOSED, times=CommitTimes(*times))
    assert decode(7, encode(ledger, "nonce")) == ledger


@pytest.mark.parametrize(
    "times", [[6, 5], [-1, 5], [5], [5, 6, 7], [5, 2**63], [5, True], [5, "6"], None, {}]
)
def test_times_in_a_record_are_in_order(times: object) -> None:
    value = json.loads(encode(CLOSED, "nonce").partition(b"\n")[2]) | {"times": times}
    with pytest.raises(CorruptDataError):
        decode(7, strict_json.encode(KIND, layout.ledger_key(7), value))
