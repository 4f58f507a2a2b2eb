"""How a ``with`` block around a writer ends: closed, or, if by an exception, only released."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from bkspark.cluster.bound import BoundToProcess


class ClosedAtEnd(BoundToProcess, ABC):
    """Closes at the end of a ``with`` block, and only releases if an exception ends it.

    What failed half-way is not sealed: whoever opens it next recovers it.
    """

    @abstractmethod
    def close(self) -> None:
        """Wait for what was added, then seal."""

    @abstractmethod
    def release(self) -> None:
        """Let go without sealing."""

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
