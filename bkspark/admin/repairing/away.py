"""Note since when bookies are silent, as seen by repairs.

Rule. The time a bookie was away proves nothing about its data. If an operator has set a limit, the
time only decides when copies are made elsewhere to replace the bookie. A wrong clock makes the
replacement earlier or later. A bookie that comes back later was replaced by one with the copies. So
a note may be lost: the bookie's time away then starts now.
"""

from collections.abc import Collection

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout
from bkspark.format.recovery import AwayBookie
from bkspark.protocol.ledger.metadata import Member


def note_silent(cluster: Cluster, silent: Collection[str]) -> None:
    """Note the bookies silent now, and the bookies no longer silent."""
    known = set(cluster.store.list(layout.AWAY_PREFIX))
    for member in cluster.addresses():
        if member.bookie_id in silent or member.bookie_id in known:
            since_ms = environment.now_ms() if member.bookie_id in silent else 0
            seen = cluster.upkeep.away.get(member.bookie_id)
            before = None if seen is None else seen.value
            after = _noted(member, since_ms, before)
            if after != before:
                cluster.upkeep.away.try_to_note(member.bookie_id, after)


def away_for(cluster: Cluster, silent: Collection[str], seconds: float) -> frozenset[Member]:
    """Return silent members first seen silent at least ``seconds`` ago."""
    now_ms = environment.now_ms()
    found = set()
    for member in cluster.addresses():
        seen = cluster.upkeep.away.get(member.bookie_id) if member.bookie_id in silent else None
        if seen is not None and _is_since(seen.value, member, now_ms - seconds * 1000):
            found.add(member)
    return frozenset(found)


def _is_since(away: AwayBookie, member: Member, then_ms: float) -> bool:
    return away.incarnation == member.incarnation and 0 < away.since_ms <= then_ms


def _noted(member: Member, since_ms: int, before: AwayBookie | None) -> AwayBookie:
    """Return the record of a bookie: silent since ``since_ms`` or earlier, or not silent if 0."""
    is_known = before is not None and before.incarnation == member.incarnation
    if before is not None and is_known and since_ms and before.since_ms:
        return before
    return AwayBookie(member.bookie_id, member.incarnation, since_ms)
