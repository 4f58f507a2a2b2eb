"""A bookie that fails on demand: before an effect, after it, or in the middle of an append.

``Faults`` decides and keeps the trace; bookies that share a ``Faults`` have their operations
numbered together. ``decide`` is called before each operation with its number (from 0), operation
and name, and returns the fault, or None. ``decide`` may also act: wait, switch to another actor,
wipe a disk, or raise an exception of its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from bkspark.bookie.checks import post_check
from bkspark.bookie.contract import (
    Bookie,
    BookieAddress,
    BookieRoot,
    Buffer,
    EntryFile,
    Journal,
    Usage,
)
from bkspark.errors import BookieUnavailableError

T = TypeVar("T")


class Moment(Enum):
    """The moment of a failure."""

    BEFORE = "before the effect"
    HALF = "in the middle of an append; as BEFORE for all else"
    AFTER = "after the effect: the answer is lost"


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure of an operation.

    Attributes:
        error: raised instead of ``BookieUnavailableError``, for example to kill an actor.
    """

    moment: Moment = Moment.BEFORE
    error: type[BaseException] | None = None


Decide = Callable[[int, str, str], Fault | None]


class Faults:
    """Decides about the failure of each operation.

    Attributes:
        trace: (operation, name) of all operations so far, failed operations included.
        decide: may be replaced at any time.
    """

    def __init__(self, decide: Decide | None = None) -> None:
        self.trace: list[tuple[str, str]] = []
        self.decide: Decide = decide or (lambda _number, _operation, _name: None)

    @classmethod
    def at(cls, plan: Mapping[int, Fault]) -> "Faults":
        """Fail the operations with the given numbers."""
        return cls(lambda number, _operation, _name: plan.get(number))

    @classmethod
    def always(cls, operations: Iterable[str], fault: Fault | None = None) -> "Faults":
        """Fail each of the given operations, for example ``("append", "put_new")``."""
        failing, how = frozenset(operations), fault or Fault()
        return cls(lambda _number, operation, _name: how if operation in failing else None)

    @property
    def count(self) -> int:
        """Number of operations so far."""
        return len(self.trace)

    def run(
        self,
        operation: str,
        name: str,
        effect: Callable[[], T],
        half_effect: Callable[[], None] | None = None,
    ) -> T:
        """Record and run an operation, with the fault from ``decide``."""
        number = self.count
        self.trace.append((operation, name))
        fault = self.decide(number, operation, name)
        if fault is None:
            return effect()
        if fault.moment is Moment.AFTER:
            effect()
        elif fault.moment is Moment.HALF and half_effect is not None:
            half_effect()
        message = f"{operation} {name} (operation {number}) fails {fault.moment.value}"
        raise fault.error(message) if fault.error else BookieUnavailableError(message)


class FaultyBookie:
    """Wraps ``inner`` with the faults of ``faults``."""

    def __init__(self, inner: Bookie, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    @property
    def address(self) -> BookieAddress:
        return self._inner.address

    def open_root(self) -> AbstractContextManager["FaultyRoot"]:
        return self._opened()

    def post_check(self, journal: Journal, *, fence: str, permission: str) -> bool:
        """Run the look-ups in sequence, unlike ``inner``, so each can fail."""
        return post_check(self, journal, fence=fence, permission=permission)

    @contextmanager
    def _opened(self) -> Iterator["FaultyRoot"]:
        with ExitStack() as stack:
            root = self._faults.run(
                "open_root",
                self.address.bookie_id,
                lambda: stack.enter_context(self._inner.open_root()),
            )
            yield FaultyRoot(root, self._faults)


class FaultyRoot:
    """Counts every operation of ``inner``."""

    def __init__(self, inner: BookieRoot, faults: Faults) -> None:
        self._inner = inner
        self._run = faults.run
        self._faults = faults

    def put_new(self, name: str, data: Buffer, *, once: bool = False) -> bool:
        return self._run("put_new", name, lambda: self._inner.put_new(name, data, once=once))

    def create(self, name: str) -> "FaultyEntryFile":
        file = self._run("create", name, lambda: self._inner.create(name))
        return FaultyEntryFile(file, name, self._faults)

    def open_journal(self, name: str, first: Sequence[Buffer] = ()) -> "FaultyJournal":
        journal = self._run("open_journal", name, lambda: self._inner.open_journal(name, first))
        return FaultyJournal(journal, self._faults)

    def has_journal(self, journal: Journal) -> bool:
        wrapped = journal.inner if isinstance(journal, FaultyJournal) else journal
        return self._run("has_journal", journal.name, lambda: self._inner.has_journal(wrapped))

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        return self._run("read", name, lambda: self._inner.read(name, begin, length))

    def size(self, name: str) -> int | None:
        return self._run("size", name, lambda: self._inner.size(name))

    def list(self, folder: str) -> list[str]:
        return self._run("list", folder, lambda: self._inner.list(folder))

    def sync(self, name: str) -> bool:
        return self._run("sync", name, lambda: self._inner.sync(name))

    def delete(self, name: str) -> bool:
        return self._run("delete", name, lambda: self._inner.delete(name))

    def forget_journal(self, name: str) -> bool:
        return self._run("forget_journal", name, lambda: self._inner.forget_journal(name))

    def sweep(self, folder: str) -> int:
        return self._run("sweep", folder, lambda: self._inner.sweep(folder))

    def unfinished(self, folder: str) -> Usage:
        return self._run("unfinished", folder, lambda: self._inner.unfinished(folder))

    def usage(self, folder: str) -> Usage:
        return self._run("usage", folder, lambda: self._inner.usage(folder))

    def remove_folder(self, folder: str) -> Usage:
        return self._run("remove_folder", folder, lambda: self._inner.remove_folder(folder))

    def free_bytes(self) -> int:
        return self._run("free_bytes", "", self._inner.free_bytes)

    def total_bytes(self) -> int:
        """Not counted: always asked together with the free space."""
        return self._inner.total_bytes()

    def write_problem(self) -> str:
        """Not counted: makes no change, and only affects the choice of bookies."""
        return self._inner.write_problem()

    def close(self) -> None:
        self._inner.close()


class FaultyEntryFile:
    """An entry file, unusable after a fault like a real file."""

    def __init__(self, inner: EntryFile, name: str, faults: Faults) -> None:
        self._inner = inner
        self._name = name
        self._faults = faults

    def write(self, data: Buffer) -> None:
        self._attempt("write", lambda: self._inner.write(data))

    def finish(self) -> None:
        self._attempt("finish", self._inner.finish)

    def discard(self) -> None:
        self._inner.discard()

    def _attempt(self, operation: str, effect: Callable[[], None]) -> None:
        try:
            self._faults.run(operation, self._name, effect)
        except BaseException:
            self._inner.discard()
            raise


class FaultyJournal:
    """A journal, ended by its first fault like a real journal."""

    def __init__(self, inner: Journal, faults: Faults) -> None:
        self.inner = inner
        self._faults = faults
        self._end = inner.end
        self._is_over = False

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def end(self) -> int:
        return self._end

    def append(self, parts: Sequence[Buffer]) -> None:
        if self._is_over:
            raise BookieUnavailableError(f"journal {self.name} takes no more records")
        record = b"".join(parts)
        half = [record[: len(record) // 2]]
        self._is_over = True
        self._faults.run(
            "append",
            self.name,
            lambda: self.inner.append(parts),
            lambda: self.inner.append(half),
        )
        self._end = self.inner.end
        self._is_over = False

    def close(self) -> None:
        self._is_over = True
        self.inner.close()
