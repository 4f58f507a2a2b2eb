"""What recoveries leave behind and what operators declare: bytes and back, and nothing else."""

import pytest

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json
from bkspark.format.recovery import (
    AWAY_KIND,
    LOST_KIND,
    STUCK_KIND,
    AwayBookie,
    LostBookie,
    StuckRecovery,
    decode_away,
    decode_lost,
    decode_stuck,
    encode_away,
    encode_lost,
    encode_stuck,
)

STUCK = StuckRecovery(7, 3, 12, ("bookie-1", "bookie-2"), "entry 12 is in doubt", "wait", 1)
LOST = LostBookie("bookie-1", ("a" * 32, "b" * 32))


def test_both_come_back_as_they_went() -> None:
    assert decode_stuck(7, encode_stuck(STUCK, "nonce")) == STUCK
    nowhere = StuckRecovery(7, 3, None, (), "no bookie shows the record", "", 0)
    assert decode_stuck(7, encode_stuck(nowhere, "nonce")) == nowhere
    assert decode_lost("bookie-1", encode_lost(LOST, "nonce")) == LOST


def test_a_record_under_another_name_is_refused() -> None:
    with pytest.raises(CorruptDataError):
        decode_stuck(8, encode_stuck(STUCK, "nonce"))
    with pytest.raises(CorruptDataError):
        decode_lost("bookie-2", encode_lost(LOST, "nonce"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ledger", 8),
        ("term", "3"),
        ("entry", "12"),
        ("waiting_for", "bookie-1"),
        ("waiting_for", ["../bookie"]),
        ("waiting_for", [7]),
        ("reason", None),
        ("told_ms", True),
    ],
)
def test_a_hostile_reason_is_refused(field: str, value: object) -> None:
    fields = {
        "ledger": 7,
        "term": 3,
        "entry": 12,
        "waiting_for": [],
        "reason": "",
        "hint": "",
        "told_ms": 0,
    }
    good = strict_json.encode(STUCK_KIND, layout.recovery_key(7), fields)
    assert decode_stuck(7, good).entry_id == 12
    bad = strict_json.encode(STUCK_KIND, layout.recovery_key(7), fields | {field: value})
    with pytest.raises(CorruptDataError):
        decode_stuck(7, bad)


@pytest.mark.parametrize("value", ["a" * 32, ["A" * 32], ["a"], [["a" * 32]], [None]])
def test_a_hostile_incarnation_is_refused(value: object) -> None:
    fields = {"id": "bookie-1", "incarnations": value}
    data = strict_json.encode(LOST_KIND, layout.lost_key("bookie-1"), fields)
    with pytest.raises(CorruptDataError):
        decode_lost("bookie-1", data)
    other = strict_json.encode(LOST_KIND, layout.lost_key("bookie-1"), fields | {"id": "bookie-2"})
    with pytest.raises(CorruptDataError):
        decode_lost("bookie-1", other)


def test_a_silent_bookie_is_read_back_and_damage_is_seen() -> None:
    away = AwayBookie("bookie-1", "ab" * 16, 12)
    data = encode_away(away, "00" * 8)
    assert decode_away("bookie-1", data) == away
    fields = {"nonce": "00" * 8, "id": "bookie-1", "incarnation": "ab" * 16, "since_ms": 1}
    for wrong in ({"id": "bookie-2"}, {"incarnation": "../x"}, {"since_ms": "1"}):
        broken = strict_json.encode(AWAY_KIND, layout.away_key("bookie-1"), fields | wrong)
        with pytest.raises(CorruptDataError):
            decode_away("bookie-1", broken)
