"""Fault injection: bookies, metadata stores and system calls that fail on demand."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from bkspark import environment
from bkspark.bookie import uri as bookies
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
from bkspark.errors import BookieUnavailableError, OutcomeUnknownError
from bkspark.metadata import uri as metadata_stores
from bkspark.metadata.contract import MetadataStore, VersionedBytes

# --- faulty --------------------------------------------------------------------------------------
# A bookie that fails on demand: before an effect, after it, or in the middle of an append.
#
# ``Faults`` decides and keeps the trace; bookies that share a ``Faults`` have their operations
# numbered together. ``decide`` is called before each operation with its number (from 0), operation
# and name, and returns the fault, or None. ``decide`` may also act: wait, switch to another actor,
# wipe a disk, or raise an exception of its own.


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

    @property
    def bytes_per_request(self) -> int:
        return self._inner.bytes_per_request

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


# --- faulty os -----------------------------------------------------------------------------------
# A stand-in for the module ``os``: records calls to storage, and makes a call fail.
#
# A test replaces the name ``os`` in the modules under test. ``fail_at`` makes a call raise an
# error; ``crash_at`` acts as if the process had died at the call: no clean-up reaches the disk. An
# fsync is recorded, not done: tests check its place in the order of calls.


CALLS = frozenset(
    {"open", "mkdir", "write", "writev", "fsync", "fdatasync", "link", "unlink"}
    | {"pread", "stat", "fstat", "fstatvfs", "scandir", "dup"}
)


_SYNCS = frozenset({"fsync", "fdatasync"})


class Crash(BaseException):
    """The death of the process; not an ``Exception``, so that no handler catches it."""


class FaultyOs:
    """``os`` with counted calls.

    Attributes:
        trace: (call, subject) of each call of ``CALLS``; the subject is the call's name argument,
            or the name under which its descriptor was opened.
    """

    def __init__(self) -> None:
        self.trace: list[tuple[str, str]] = []
        self._names: dict[int, str] = {}
        self._open: set[int] = set()
        self._fault: Callable[[int, Callable[[], object], list[Any]], None] = _no_fault
        self._is_dead = False

    def fail_at(self, number: int, error: int) -> None:
        """Make call ``number`` (from 0) raise ``OSError(error)`` without effect."""

        def fault(now: int, _effect: Callable[[], object], _arguments: list[Any]) -> None:
            if now == number:
                raise OSError(error, os.strerror(error))

        self._fault = fault

    def crash_at(self, number: int, moment: Moment) -> None:
        """Die at call ``number``: before it, after it, or with half of a write done."""

        def fault(now: int, effect: Callable[[], object], arguments: list[Any]) -> None:
            if now != number:
                return
            self._is_dead = True
            if moment is Moment.AFTER:
                effect()
            elif moment is Moment.HALF:
                _write_half(self.trace[-1][0], arguments)
            raise Crash

        self._fault = fault

    def close_all(self) -> None:
        """Close the descriptors that a dead process left open."""
        while self._open:
            os.close(self._open.pop())

    def close(self, descriptor: int) -> None:
        self._open.discard(descriptor)
        os.close(descriptor)

    def __getattr__(self, call: str) -> Any:
        real = _no_sync if call in _SYNCS else getattr(os, call)
        if call not in CALLS:
            return real

        def recorded(*arguments: Any, **options: Any) -> Any:
            return self._call(call, real, list(arguments), options)

        return recorded

    def _call(self, call: str, real: Any, arguments: list[Any], options: dict[str, Any]) -> Any:
        if self._is_dead:
            raise Crash
        first = arguments[0]
        name = self._names.get(first, "?") if isinstance(first, int) else str(first)
        self.trace.append((call, name))
        self._fault(len(self.trace) - 1, lambda: real(*arguments, **options), arguments)
        result = real(*arguments, **options)
        if call in ("open", "dup"):
            self._open.add(result)
            self._names[result] = name
        return result


def _no_sync(_descriptor: int) -> None:
    return None


def _no_fault(_number: int, _effect: Callable[[], object], _arguments: list[Any]) -> None:
    return None


def _write_half(call: str, arguments: list[Any]) -> None:
    if call == "write":
        data = bytes(arguments[1])
    elif call == "writev":
        data = b"".join(arguments[1])
    else:
        return
    os.write(arguments[0], data[: len(data) // 2])


# --- faulty cluster ------------------------------------------------------------------------------
# Faults in all the storage of a client: every bookie and the metadata store.
#
# Clients find storage by its address at two points: the table of kinds of bookies, and the function
# that opens a metadata store. ``StorageFaults.installed`` replaces both for a while; addresses,
# records and files stay unchanged, and the client does not notice.
#
#     faults = StorageFaults()
#     faults.decide = crash_at(17, Moment.AFTER)
#     with faults.installed(), pytest.raises(Crash):
#         commit(target, reports)
#
# Operations are numbered over all places together, in the order of their beginnings.


METADATA = environment.METADATA


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation about to run.

    Attributes:
        place: a bookie id, or ``METADATA``.
        call: for example ``append`` or ``put``.
        name: of the file or record.
    """

    place: str
    call: str
    name: str


DecideOperation = Callable[[int, Operation], Fault | None]


class StorageFaults:
    """Decides about the failure of each operation, and keeps the trace of all operations.

    Attributes:
        trace: all operations so far, failed operations included.
        decide: called before each operation with its number (from 0); may be replaced at any time,
            and may act too: fence a ledger, wipe a disk, raise an error of its own.
        down: bookies without any answer.
    """

    def __init__(self) -> None:
        self.trace: list[Operation] = []
        self.decide: DecideOperation = no_fault
        self.down: set[str] = set()
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Begin a new trace, without faults."""
        self.trace = []
        self.decide = no_fault
        self.down = set()

    def at(self, place: str) -> Faults:
        """The faults of ``place``."""
        return Faults(lambda _number, call, name: self._decide(Operation(place, call, name)))

    def before(self, place: str, storage: Any) -> Any:
        """``storage`` of ``place`` with its faults, for a test's own environment."""
        kind = FaultyMetadataStore if place == METADATA else FaultyBookie
        return kind(storage, self.at(place))

    @contextmanager
    def installed(self) -> Iterator["StorageFaults"]:
        """Route all storage opened inside the block through these faults."""
        kinds, open_store = dict(bookies._BOOKIES), metadata_stores.open_store

        def faulty(kind: Callable[[BookieAddress], Bookie]) -> Callable[[BookieAddress], Bookie]:
            return lambda address: self.before(address.bookie_id, kind(address))

        def open_faulty_store(uri: str) -> MetadataStore:
            found: MetadataStore = self.before(METADATA, open_store(uri))
            return found

        bookies._BOOKIES.update({scheme: faulty(kind) for scheme, kind in kinds.items()})
        metadata_stores.open_store = open_faulty_store
        try:
            yield self
        finally:
            bookies._BOOKIES.update(kinds)
            metadata_stores.open_store = open_store

    def _decide(self, operation: Operation) -> Fault | None:
        with self._lock:
            number = len(self.trace)
            self.trace.append(operation)
        fault = self.decide(number, operation)
        return fault or (Fault() if operation.place in self.down else None)


class FaultyMetadataStore:
    """Wraps ``inner`` with the faults of ``faults``; a fault is an unknown outcome."""

    def __init__(self, inner: MetadataStore, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    @property
    def uri(self) -> str:
        return self._inner.uri

    def get(self, key: str) -> VersionedBytes | None:
        return self._run("get", key, lambda: self._inner.get(key))

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        return self._run("put", key, lambda: self._inner.put(key, value, expected))

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        return self._run("is_current", key, lambda: self._inner.is_current(key, seen))

    def list(self, prefix: str) -> list[str]:
        return self._run("list", prefix, lambda: self._inner.list(prefix))

    def delete(self, key: str) -> None:
        self._run("delete", key, lambda: self._inner.delete(key))

    def close(self) -> None:
        self._inner.close()

    def _run(self, call: str, key: str, effect: Callable[[], T]) -> T:
        try:
            return self._faults.run(call, key, effect)
        except BookieUnavailableError as error:
            raise OutcomeUnknownError(f"metadata store: {error}") from error


def no_fault(_number: int, _operation: Operation) -> Fault | None:
    return None


def fail_at(number: int, moment: Moment = Moment.BEFORE) -> DecideOperation:
    """Fail a single operation; AFTER only loses its answer."""
    return lambda now, _operation: Fault(moment) if now == number else None


def crash_at(number: int, moment: Moment) -> DecideOperation:
    """Kill the process at an operation, so no later operation takes effect either."""

    def decide(now: int, _operation: Operation) -> Fault | None:
        if now < number:
            return None
        return Fault(moment if now == number else Moment.BEFORE, Crash)

    return decide
