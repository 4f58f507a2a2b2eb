"""Faults in all the storage of a client: every bookie and the metadata store.

Clients find storage by its address at two points: the table of kinds of bookies, and the function
that opens a metadata store. ``StorageFaults.installed`` replaces both for a while; addresses,
records and files stay unchanged, and the client does not notice.

    faults = StorageFaults()
    faults.decide = crash_at(17, Moment.AFTER)
    with faults.installed(), pytest.raises(Crash):
        commit(target, reports)

Operations are numbered over all places together, in the order of their beginnings.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from bkspark import environment
from bkspark.bookie import uri as bookies
from bkspark.bookie.contract import Bookie, BookieAddress
from bkspark.errors import BookieUnavailableError, OutcomeUnknownError
from bkspark.metadata import uri as metadata_stores
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.testing.faulty import Fault, Faults, FaultyBookie, Moment
from bkspark.testing.faulty_os import Crash

T = TypeVar("T")

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
