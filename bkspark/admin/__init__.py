"""Looking after a cluster: views, audits and what they lead to, the life of bookies, deleting."""

from importlib import import_module
from typing import Any

_VERBS = ("audit", "collect", "compact", "decommission", "rebalance", "recover", "repair", "scrub")


def __getattr__(name: str) -> Any:
    """The maintenance verbs as Python calls: they lie above this folder, since some use Spark."""
    if name not in _VERBS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("bkspark.verbs"), name)
