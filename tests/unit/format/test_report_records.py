"""What verbs note of their last run: bytes and back, and nothing else."""

import pytest

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import layout, strict_json
from bkspark.format.upkeep_records import REPORT_KIND, ReportRecord, decode_report, encode_report

REPORT = ReportRecord("audit", 5, 7, 2, {"NUM_LEDGERS_CHECKED": 9, "NUM_ORPHANED_ENTRY_LOGS": 0})


def test_it_comes_back_as_it_went() -> None:
    assert decode_report("audit", encode_report(REPORT, "nonce")) == REPORT


def test_a_record_of_another_verb_is_refused() -> None:
    with pytest.raises(CorruptDataError):
        decode_report("scrub", encode_report(REPORT, "nonce"))
    other = strict_json.encode(REPORT_KIND, layout.report_key("audit"), {"verb": "scrub"})
    with pytest.raises(CorruptDataError, match="another verb"):
        decode_report("audit", other)


@pytest.mark.parametrize(
    ("field", "value"),
    [("left", "2"), ("ended_ms", True), ("counters", [1]), ("counters", {"a": "1"})],
)
def test_a_hostile_report_is_refused(field: str, value: object) -> None:
    fields = {"verb": "audit", "began_ms": 5, "ended_ms": 7, "left": 2, "counters": {}}
    data = strict_json.encode(REPORT_KIND, layout.report_key("audit"), {**fields, field: value})
    with pytest.raises(CorruptDataError):
        decode_report("audit", data)


def test_a_verb_is_a_word() -> None:
    for verb in ("", "../x", "a/b", "Audit", "a" * 33):
        with pytest.raises(InvalidRequestError):
            layout.report_key(verb)
