"""Maintenance of a cluster: views, audits, repairs, collections, bookies, deletion."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

Calls = Mapping[str, Callable[..., Any]]

_givers: list[Callable[[], Calls]] = []


def show_calls_of(giver: Callable[[], Calls]) -> None:
    """Show the maintenance calls returned by ``giver`` as attributes of the module.

    The calls are declared in ``bkspark.verbs``, a layer above, because some calls use Spark.
    """
    _givers[:] = [giver]


def __getattr__(name: str) -> Any:
    """Return a maintenance call."""
    is_part = name.startswith("_") or find_spec(f"{__name__}.{name}") is not None
    call = None if is_part or not _givers else _givers[0]().get(name)
    if call is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return call


def __dir__() -> list[str]:
    return sorted({*globals(), *(_givers[0]() if _givers else ())})
