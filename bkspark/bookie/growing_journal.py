"""The common part of all backends' journals: a journal ends at the first doubt (H24)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from bkspark.bookie.contract import Buffer
from bkspark.errors import BookieUnavailableError


class GrowingJournal(ABC):
    """A journal for records in order, closed as soon as a record may not be durable."""

    def __init__(self, bookie_name: str, name: str) -> None:
        self._bookie_name = bookie_name
        self._name = name
        self._end = 0
        self._is_over = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def end(self) -> int:
        return self._end

    def append(self, parts: Sequence[Buffer]) -> None:
        if self._is_over:
            raise BookieUnavailableError(
                f"{self._bookie_name}: journal {self._name} takes no more records "
                "after an error or after it was closed",
                hint="begin a new journal",
            )
        # Over until proven durable, so that any exception, even an interrupt, ends the journal.
        self._is_over = True
        self._end += self._store(parts)
        self._is_over = False

    def close(self) -> None:
        self._is_over = True

    @abstractmethod
    def _store(self, parts: Sequence[Buffer]) -> int:
        """Make one record durable after the last; returns its length in bytes."""
