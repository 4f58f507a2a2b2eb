"""Records when a maintenance verb last ran on the whole cluster, and its findings: for people.

No decision rests on the record.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json

KIND = "report"


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """The last run of a verb.

    Attributes:
        began_ms, ended_ms: for people.
        left: how much is left to do.
        counters: as in the verb's report.
    """

    verb: str
    began_ms: int
    ended_ms: int
    left: int
    counters: Mapping[str, int]


def encode(report: ReportRecord, nonce: str) -> bytes:
    value: dict[str, Any] = {
        "nonce": nonce,
        "verb": report.verb,
        "began_ms": report.began_ms,
        "ended_ms": report.ended_ms,
        "left": report.left,
        "counters": dict(report.counters),
    }
    return strict_json.encode(KIND, layout.report_key(report.verb), value)


def decode(verb: str, data: bytes) -> ReportRecord:
    """Decode the report; raise ``CorruptDataError`` if damaged, of another verb, or malformed."""
    fields = strict_json.decode(KIND, layout.report_key(verb), data)
    if fields.take("verb", str) != verb:
        raise CorruptDataError(f"{fields.what} names another verb")
    return ReportRecord(
        verb=verb,
        began_ms=fields.take("began_ms", int),
        ended_ms=fields.take("ended_ms", int),
        left=fields.take("left", int),
        counters=fields.mapping("counters", int),
    )
