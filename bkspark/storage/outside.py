"""Kinds of storage from other packages, found by entry point.

A package names its kind in an entry point of the group ``bkspark.bookies`` or
``bkspark.metadata_stores``. The name of the entry point is the scheme of the kind's URLs. Schemes
of bkspark itself are never looked up here, so no other package can replace them.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from bkspark.errors import InvalidRequestError

# Imported on demand: it takes longer to load than most look-ups, and few clusters have such kinds.
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BOOKIES = "bkspark.bookies"
METADATA_STORES = "bkspark.metadata_stores"

T = TypeVar("T")


def schemes(group: str) -> list[str]:
    """The schemes added by installed packages."""
    from importlib.metadata import entry_points

    return sorted({entry.name for entry in entry_points(group=group)})


def kind_of(group: str, scheme: str, wanted: type[T]) -> T | None:
    """The kind of ``scheme``; None if no installed package has the scheme.

    Raises:
        InvalidRequestError: the kind cannot be loaded, is no ``wanted``, or two packages add the
            scheme.
    """
    from importlib.metadata import entry_points

    found = {entry.value: entry for entry in entry_points(group=group, name=scheme)}
    if not found:
        return None
    if len(found) > 1:
        raise InvalidRequestError(
            f"{len(found)} packages add {scheme}:// to {group}: {_named(found.values())}",
            hint="uninstall all but one of them",
        )
    [entry] = found.values()
    try:
        kind = entry.load()
    except (ImportError, AttributeError) as error:
        raise InvalidRequestError(
            f"the package that adds {scheme}:// cannot be loaded: {error}",
            hint=f"install what it needs, or install {_named([entry])} again",
        ) from error
    if not isinstance(kind, wanted):
        raise InvalidRequestError(
            f"{entry.value}, which adds {scheme}://, is not a {wanted.__name__}",
            hint=f"use a release of {_named([entry])} that is made for this release of bkspark",
        )
    return kind


def _named(entries: Iterable["EntryPoint"]) -> str:
    names = (entry.dist.name if entry.dist is not None else entry.module for entry in entries)
    return ", ".join(sorted(names))
