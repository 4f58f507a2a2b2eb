"""Records sightings of open ledgers, and since when each is unchanged (advisory).

There is one record for all ledgers; ledgers without room there are not remembered.
"""

from collections.abc import Mapping
from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json
from bkspark.format.strict_json import Fields
from bkspark.protocol.upkeep.idleness import Sighting

KIND = "open"

LEDGERS_MAX = 2000
"""Keeps the record below 768 kB."""

Sightings = Mapping[int, Sighting]
"""By ledger id."""


def encode(seen: Sightings, nonce: str) -> bytes:
    value: dict[str, Any] = {
        "nonce": nonce,
        "ledgers": [
            {
                "ledger": one.ledger_id,
                "writer": one.writer,
                "since_ms": one.since_ms,
                "sizes": dict(one.sizes),
            }
            for _, one in sorted(seen.items())
        ],
    }
    return strict_json.encode(KIND, layout.OPEN_LEDGERS_KEY, value)


def decode(key: str, data: bytes) -> Sightings:
    """Decode the sightings; raise ``CorruptDataError`` if damaged or malformed."""
    fields = strict_json.decode(KIND, key, data)
    found = [_sighting(item) for item in fields.objects("ledgers")]
    if len(found) > LEDGERS_MAX:
        raise CorruptDataError(f"{fields.what} has more ledgers than there is room for")
    return {one.ledger_id: one for one in found}


def _sighting(fields: Fields) -> Sighting:
    return Sighting(
        fields.take("ledger", int),
        fields.take("writer", str),
        fields.take("since_ms", int),
        fields.mapping("sizes", int),
    )
