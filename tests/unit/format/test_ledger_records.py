"""Records of ledgers that members have left."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bkspark.errors import CorruptDataError
from bkspark.format import envelope, layout
from bkspark.format.ledger_metadata import HEADERS_VERSION, KIND, LEFT_VERSION, decode, encode
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.upkeep.leaving import left_by

STORED = Path(__file__).parents[2] / "fixtures" / "ledgers" / "left-v3"
"""As the first version that knew it wrote it; never made again."""
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
    assert decode(7, STORED.read_bytes()) == LEFT
    assert STORED.read_bytes() == encode(LEFT, "nonce")


def test_who_has_left_needs_the_newest_version() -> None:
    """Others stay as they were, so that older versions go on reading them."""
    key = layout.ledger_key(7)
    with pytest.raises(CorruptDataError):
        envelope.decode(KIND, key, encode(LEFT, "nonce"), newest=LEFT_VERSION - 1)
    envelope.decode(KIND, key, encode(CLOSED, "nonce"), newest=HEADERS_VERSION)


@pytest.mark.parametrize(
    "left", [[["bookie-1", f"{1:032x}"]], [["../x", f"{1:032x}"]], [["bookie-4", "4"]], [["b"]], 3]
)
def test_hostile_members_are_refused(left: object) -> None:
    """One of them has a place; others are no members."""
    key = layout.ledger_key(7)
    value = json.loads(encode(LEFT, "nonce").partition(b"\n")[2]) | {"left": left}
    with pytest.raises(CorruptDataError):
        decode(7, envelope.encode(KIND, key, value, version=LEFT_VERSION))


def test_a_ledger_that_is_not_closed_has_left_nobody() -> None:
    opened = replace(CLOSED, state=LedgerState.OPEN, last_entry_id=None, length_bytes=None)
    assert opened.left == set()
