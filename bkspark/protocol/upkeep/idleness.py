"""Whether the writer of an open ledger may be taken for gone, by what was seen of the ledger.

Rule. It may when the ledger was seen for long enough and nothing of it changed: neither who writes
it and where, nor how much there is on any bookie that answered both times. Times come from clocks
that nobody trusts, and a writer that pauses looks like one that is gone. So this is a matter of
manners alone: a recovery is as safe beside a writer that lives, which is fenced.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was seen of an open ledger.

    Attributes:
        writer: who writes it, and with which ensembles.
        since_ms: since when nothing of it has changed, as far as it was looked at.
        sizes: how much of it each bookie has that answered, by bookie id.
    """

    ledger_id: int
    writer: str
    since_ms: int
    sizes: Mapping[str, int] = field(default_factory=dict)


def seen_again(before: Sighting | None, now: Sighting) -> Sighting:
    """What is known of a ledger that looked like ``before`` and looks like ``now``."""
    if before is None or before.writer != now.writer or before.since_ms > now.since_ms:
        return now
    if any(now.sizes.get(who, size) != size for who, size in before.sizes.items()):
        return now
    return replace(before, sizes={**before.sizes, **now.sizes})


def is_idle(seen: Sighting, now_ms: int, grace_seconds: float) -> bool:
    """Whether nothing of the ledger has changed for so long."""
    return now_ms - seen.since_ms >= grace_seconds * 1000
