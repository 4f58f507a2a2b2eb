"""Marks of damaged copies: bytes and back, and nothing else, and never too many bytes."""

import pytest

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json
from bkspark.format.upkeep_records import (
    DAMAGE_KIND,
    FILES_MAX,
    LEDGERS_MAX,
    RANGES_MAX,
    DamagedCopies,
    Mark,
    bounded,
    decode_damage,
    encode_damage,
)

TOKEN = "0123456789abcdef" * 2
MARK = Mark(7, TOKEN, ("ledgers/07/j",), ((0, 3), (5, 5)), ("ledgers/07/e",), "byte 3: bad")
COPIES = DamagedCopies("bookie-1", {7: MARK, 9: Mark(9, TOKEN)})
FIELDS = {
    "ledger": 7,
    "incarnation": TOKEN,
    "journals": [],
    "entries": [],
    "entry_logs": [],
    "reason": "",
}


def test_they_come_back_as_they_went() -> None:
    assert decode_damage("bookie-1", encode_damage(COPIES, "nonce")) == COPIES


def test_those_of_another_bookie_are_refused() -> None:
    with pytest.raises(CorruptDataError):
        decode_damage("bookie-2", encode_damage(COPIES, "nonce"))
    fields = {"id": "bookie-2", "marks": []}
    data = strict_json.encode(DAMAGE_KIND, layout.damaged_key("bookie-1"), fields)
    with pytest.raises(CorruptDataError, match="another bookie"):
        decode_damage("bookie-1", data)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ledger", "7"),
        ("incarnation", "../x"),
        ("journals", [1]),
        ("entry_logs", ["x" * 201]),
        ("entries", [[3]]),
        ("entries", [[3, 2]]),
        ("entries", [[-1, 2]]),
        ("entries", ["ab"]),
    ],
)
def test_a_hostile_mark_is_refused(field: str, value: object) -> None:
    fields = {"id": "bookie-1", "marks": [{**FIELDS, field: value}]}
    data = strict_json.encode(DAMAGE_KIND, layout.damaged_key("bookie-1"), fields)
    with pytest.raises(CorruptDataError):
        decode_damage("bookie-1", data)


def test_the_largest_record_is_small_enough_for_every_store() -> None:
    name = layout.entry_log(2**63 - 1, TOKEN, 255)
    mark = Mark(
        2**63 - 1,
        TOKEN,
        (name,) * FILES_MAX,
        ((2**62, 2**62),) * RANGES_MAX,
        (name,) * FILES_MAX,
        "x" * 200,
    )
    marks = dict.fromkeys(range(LEDGERS_MAX), mark)
    assert len(encode_damage(DamagedCopies("bookie-1", marks), "nonce")) < 768 * 1024


def test_too_many_ranges_end_in_one_that_holds_the_others() -> None:
    few = [(n, n) for n in range(0, 2 * RANGES_MAX, 2)]
    assert bounded(few) == tuple(few)
    many = [*few, (20, 29), (21, 22)]
    assert bounded(many) == (*few[: RANGES_MAX - 1], (few[RANGES_MAX - 1][0], 29))
