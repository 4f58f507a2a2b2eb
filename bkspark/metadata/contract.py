"""The contract of a metadata store.

A record is bytes under a key, with a version that grows by one with every change. The only way to
change one is ``put`` with the version one has seen: compare-and-set. The answer of a ``put`` has
three values: done, lost to somebody else (``MetadataVersionError``), or unknown
(``OutcomeUnknownError``). A value must differ in every ``put`` (callers put a random token in it),
so that whoever got no answer can read back and recognise its own (R8, H6).

Keys are ``/``-separated, made by ``bkspark.format.layout``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class VersionedBytes:
    """A record's value together with the version to compare against."""

    value: bytes
    version: int


class MetadataStore(Protocol):
    """Picklable by its URI; a connection is made when first needed."""

    @property
    def uri(self) -> str: ...

    def get(self, key: str) -> VersionedBytes | None:
        """The newest version, or None if the key surely does not exist.

        Linearizable: at least as new as every ``put`` that returned before this call began.
        """
        ...

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        """Store ``value`` if the newest version is ``expected`` (None: the key must not exist).

        Returns:
            The new version, durable.

        Raises:
            MetadataVersionError: the version is another one; nothing changed by this call.
            OutcomeUnknownError: the store gave no sure answer.
        """
        ...

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        """Whether ``seen``, version and value, is still the newest: the metadata check (R4).

        One linearizable look, cheaper than ``get``. Never True from a cache.
        """
        ...

    def list(self, prefix: str) -> list[str]:
        """Sorted last parts of the keys right under ``prefix``."""
        ...

    def delete(self, key: str) -> None:
        """Remove a record for ever, oldest version first; its key must not be used again."""
        ...

    def close(self) -> None: ...


class FormattableStore(MetadataStore, Protocol):
    """A metadata store that makes the place it is in."""

    def format(self) -> None:
        """Make the empty place a metadata store.

        Raises:
            InvalidRequestError: there is something in it already, or it cannot be made.
        """
        ...


@dataclass(frozen=True, slots=True)
class MetadataKind:
    """A kind of metadata store, for the entry points ``bkspark.metadata_stores`` of other packages.

    Attributes:
        store: makes the store at a URI, and connects to nothing.
    """

    store: Callable[[str], FormattableStore]
