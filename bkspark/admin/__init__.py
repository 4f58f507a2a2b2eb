"""Looking after a cluster: views, audits and what they lead to, the life of bookies, deleting."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

Calls = Mapping[str, Callable[..., Any]]

_givers: list[Callable[[], Calls]] = []


def show_calls_of(giver: Callable[[], Calls]) -> None:
    """Show the maintenance calls that ``giver`` gives as attributes of this module.

    They are declared in ``bkspark.verbs``, which lies above this folder because some use Spark.
    """
    _givers[:] = [giver]


def __getattr__(name: str) -> Any:
    """A maintenance call."""
    is_part = name.startswith("_") or find_spec(f"{__name__}.{name}") is not None
    call = None if is_part or not _givers else _givers[0]().get(name)
    if call is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return call


def __dir__() -> list[str]:
    return sorted({*globals(), *(_givers[0]() if _givers else ())})
