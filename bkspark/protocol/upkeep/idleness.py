"""Decides whether the writer of an open ledger counts as gone, from observations of the ledger.

Rule. The writer counts as gone if the ledger was observed for long enough without a change of the
writer, of the ensembles, or of the size on any bookie that answered both times. The times come from
clocks that may be wrong, and a paused writer looks like a writer that is gone. So the decision only
avoids needless recoveries: a recovery is safe even beside a running writer, which is then fenced.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Sighting:
    """An observation of an open ledger.

    Attributes:
        writer: the writer and the ensembles, as a text to compare.
        since_ms: start of the period without an observed change.
        sizes: size of the ledger on each bookie that answered, by bookie id.
    """

    ledger_id: int
    writer: str
    since_ms: int
    sizes: Mapping[str, int] = field(default_factory=dict)


def seen_again(before: Sighting | None, now: Sighting) -> Sighting:
    """Combine the observation ``before`` with the observation ``now``."""
    if before is None or before.writer != now.writer or before.since_ms > now.since_ms:
        return now
    if any(now.sizes.get(member, size) != size for member, size in before.sizes.items()):
        return now
    return replace(before, sizes={**before.sizes, **now.sizes})


def is_idle(seen: Sighting, now_ms: int, grace_seconds: float) -> bool:
    """Whether the ledger has been unchanged for ``grace_seconds``."""
    return now_ms - seen.since_ms >= grace_seconds * 1000
