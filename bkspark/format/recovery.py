"""Records about recoveries and repairs: why a recovery is stuck, which bookies are lost, or away.

A stuck record is advice for people: no decision rests on it. A lost record is an operator's word
about one incarnation of a bookie: a bookie initialised again under the same id is not lost. An away
record only tells when a copy may be made elsewhere, never that a copy is absent.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json
from bkspark.format.strict_json import Fields

STUCK_KIND = "stuck"
LOST_KIND = "lost"
AWAY_KIND = "away"


@dataclass(frozen=True, slots=True)
class StuckRecovery:
    """Why a recovery could not close its ledger.

    Attributes:
        term: of the recovery; in a later term the record may be wrong.
        entry_id: the first undecided entry; None if the reason is not about an entry.
        waiting_for: bookie ids whose answers could decide.
        reason: in one line.
        hint: what to do next.
        told_ms: when, for people.
    """

    ledger_id: int
    term: int
    entry_id: int | None
    waiting_for: tuple[str, ...]
    reason: str
    hint: str
    told_ms: int


@dataclass(frozen=True, slots=True)
class LostBookie:
    """Incarnations of a bookie that will never come back."""

    bookie_id: str
    incarnations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AwayBookie:
    """A bookie that was silent when a repair looked.

    Attributes:
        since_ms: when a repair first saw it silent; 0 if it has answered since.
    """

    bookie_id: str
    incarnation: str
    since_ms: int


def encode_stuck(stuck: StuckRecovery, nonce: str) -> bytes:
    value: dict[str, Any] = {
        "nonce": nonce,
        "ledger": stuck.ledger_id,
        "term": stuck.term,
        "entry": stuck.entry_id,
        "waiting_for": list(stuck.waiting_for),
        "reason": stuck.reason,
        "hint": stuck.hint,
        "told_ms": stuck.told_ms,
    }
    return strict_json.encode(STUCK_KIND, layout.recovery_key(stuck.ledger_id), value)


def decode_stuck(ledger_id: int, data: bytes) -> StuckRecovery:
    """Decode the reason; raise ``CorruptDataError`` if damaged, of another ledger, or malformed."""
    fields = strict_json.decode(STUCK_KIND, layout.recovery_key(ledger_id), data)
    if fields.take("ledger", int) != ledger_id:
        raise CorruptDataError(f"{fields.what} names another ledger")
    return StuckRecovery(
        ledger_id=ledger_id,
        term=fields.take("term", int),
        entry_id=fields.take_or_none("entry", int),
        waiting_for=_names(fields, "waiting_for", layout.bookie_id),
        reason=fields.take("reason", str),
        hint=fields.take("hint", str),
        told_ms=fields.take("told_ms", int),
    )


def encode_lost(lost: LostBookie, nonce: str) -> bytes:
    value = {"nonce": nonce, "id": lost.bookie_id, "incarnations": list(lost.incarnations)}
    return strict_json.encode(LOST_KIND, layout.lost_key(lost.bookie_id), value)


def decode_lost(bookie_id: str, data: bytes) -> LostBookie:
    """Decode the incarnations; raise ``CorruptDataError`` if damaged, of another bookie, or
    malformed.
    """
    fields = strict_json.decode(LOST_KIND, layout.lost_key(bookie_id), data)
    if fields.take("id", str) != bookie_id:
        raise CorruptDataError(f"{fields.what} names another bookie")
    return LostBookie(bookie_id, _names(fields, "incarnations", layout.token))


def encode_away(away: AwayBookie, nonce: str) -> bytes:
    value = {
        "nonce": nonce,
        "id": away.bookie_id,
        "incarnation": away.incarnation,
        "since_ms": away.since_ms,
    }
    return strict_json.encode(AWAY_KIND, layout.away_key(away.bookie_id), value)


def decode_away(bookie_id: str, data: bytes) -> AwayBookie:
    """Decode the record; raise ``CorruptDataError`` if damaged, of another bookie, or malformed."""
    fields = strict_json.decode(AWAY_KIND, layout.away_key(bookie_id), data)
    if fields.take("id", str) != bookie_id:
        raise CorruptDataError(f"{fields.what} names another bookie")
    try:
        incarnation = layout.token(fields.take("incarnation", str))
    except ValueError as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error
    return AwayBookie(bookie_id, incarnation, fields.take("since_ms", int))


def _names(fields: Fields, field: str, checked: Callable[[str], str]) -> tuple[str, ...]:
    try:
        return tuple(checked(value) for value in fields.take(field, list))
    except (TypeError, ValueError) as error:
        raise CorruptDataError(f"{fields.what}: field {field!r} is malformed") from error
