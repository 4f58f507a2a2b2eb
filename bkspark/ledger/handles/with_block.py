"""The end of a ``with`` block around a writer: close, or only release after an exception."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from bkspark.cluster.guards import BoundToProcess


class ClosedAtEnd(BoundToProcess, ABC):
    """Closes at the end of a ``with`` block, and only releases if an exception ends the block.

    A writer that fails leaves its ledger open. The next client that opens the ledger recovers it.
    """

    @abstractmethod
    def close(self) -> None:
        """Wait until all entries are acknowledged, then close."""

    @abstractmethod
    def release(self) -> None:
        """Release resources without closing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        elif self.is_of_this_process:
            self.release()
