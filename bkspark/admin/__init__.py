"""Looking after a cluster: views, audits and what they lead to, the life of bookies, deleting."""

from collections.abc import Callable
from typing import Any

_VERBS = (
    *("audit", "collect", "compact", "decommission", "rebalance", "recover", "repair", "retain"),
    "scrub",
)

_finders: list[Callable[[str], Any]] = []


def find_verbs_by(finder: Callable[[str], Any]) -> None:
    """Let ``finder`` give the maintenance verbs by name.

    They lie above this folder, because some use Spark: the package hands them down.
    """
    _finders[:] = [finder]


def __getattr__(name: str) -> Any:
    """The maintenance verbs as Python calls."""
    if name not in _VERBS or not _finders:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _finders[0](name)
