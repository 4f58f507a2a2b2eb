"""The maintenance verbs as Python calls: the same options and the same report as on a shell."""

from bkspark.verbs.logs import compact
from bkspark.verbs.places import decommission, rebalance
from bkspark.verbs.upkeep import audit, collect, recover, repair, scrub

__all__ = [
    "audit",
    "collect",
    "compact",
    "decommission",
    "rebalance",
    "recover",
    "repair",
    "scrub",
]
