"""The contract of a metadata store.

A record is bytes under a key, with a version that grows by one with every change. The only way to
change a record is ``put`` with the version last seen: compare-and-set. A ``put`` has three results:
done, lost to another client (``MetadataVersionError``), or unknown (``OutcomeUnknownError``). A
value must differ in every ``put`` (callers add a random token), so that a client without an answer
can read the record back and recognise its own value (R8, H6).

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
    """A store of versioned records, picklable by its URI; connects at first use."""

    @property
    def uri(self) -> str: ...

    def get(self, key: str) -> VersionedBytes | None:
        """The newest version, or None if the key certainly does not exist.

        Linearizable: at least as new as every ``put`` that returned before this call began.
        """
        ...

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        """Store ``value`` if the newest version is ``expected`` (None: the key must not exist).

        Returns:
            The new version, durable.

        Raises:
            MetadataVersionError: the version differs; this call changed no record.
            OutcomeUnknownError: the store gave no certain answer.
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
    """A metadata store that can initialise its own place."""

    def format(self) -> None:
        """Make the empty place a metadata store.

        Raises:
            InvalidRequestError: the place is not empty, or the store cannot be made.
        """
        ...


@dataclass(frozen=True, slots=True)
class MetadataKind:
    """A kind of metadata store, for entry points ``bkspark.metadata_stores`` of other packages.

    Attributes:
        store: makes the store at a URI, without connecting.
    """

    store: Callable[[str], FormattableStore]
