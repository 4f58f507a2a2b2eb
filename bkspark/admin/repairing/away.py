"""Bookies that are silent: since when, as repairs have seen it.

Rule. How long a bookie was away decides nothing about what it has. It decides only, where an
operator has named a limit, when copies are made elsewhere and take its place; a clock that is wrong
makes that sooner or later, and a bookie that comes back was replaced by one that has the copies. So
what was noted of it may be lost: then it is away from now on.
"""

from collections.abc import Collection

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout
from bkspark.format.recovery import AwayBookie
from bkspark.protocol.ledger.metadata import Member


def note_silent(cluster: Cluster, silent: Collection[str]) -> None:
    """Note which bookies are silent now, and which are not any more."""
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
    """Members that are silent, and were first seen so at least so long ago."""
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
    """The record of a bookie that is silent, first seen now, or not silent if that is 0."""
    is_known = before is not None and before.incarnation == member.incarnation
    if before is not None and is_known and since_ms and before.since_ms:
        return before
    return AwayBookie(member.bookie_id, member.incarnation, since_ms)
