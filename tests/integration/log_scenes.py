"""What tests of logs have in common: looking at a whole log, and would-be writers to hold up."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError
from bkspark.format import layout
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log.log_handle import LogHandle
from bkspark.log.log_writer import LogWriter
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from tests.kit.faulty import Operation

from .rig import Rig

SILENT = WriterSettings(explicit_lac_ms=0)
NAME = "wal"


def values(log: LogHandle, start: int | None = None, end: int | None = None) -> list[bytes]:
    entries = list(log.read(start, end))
    first = log.first_offset if start is None else start
    assert [entry.offset for entry in entries] == list(range(first, first + len(entries)))
    return [entry.value for entry in entries]


def fill(log: LogHandle, *counts: int) -> list[bytes]:
    """As many entries in as many ledgers; returns all of them."""
    added = []
    with log.writer() as writer:
        for number, count in enumerate(counts):
            if number:
                writer.roll()
            for _ in range(count):
                offset = writer.end_offset
                added.append(f"entry {offset}".encode())
                assert writer.append(added[-1]) == offset
    return added


def unbounded(keeper: BookKeeper, **settings: int) -> LogHandle:
    return keeper.create_log(NAME, unbounded=True, **settings)


def one_ledger(log: LogHandle) -> LedgerMetadata:
    """The log's only one, which is OPEN."""
    [ledger_id] = log.record.listed_ids
    assert log.record.tail == (ledger_id,)
    ledger = log._cluster.ledger(ledger_id).value
    assert (ledger.state, ledger.goes_on) == (LedgerState.OPEN, True)
    return ledger


def open_ledgers(uri: str) -> set[int]:
    with Cluster(uri) as cluster:
        found = (cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids())
        return {
            seen.value.ledger_id
            for seen in found
            if seen is not None and seen.value.state in (LedgerState.OPEN, LedgerState.IN_RECOVERY)
        }


def assert_sound(log: LogHandle) -> None:
    """I8: a ledger with entries is on the list, and at most the tail's last one is open."""
    record = log.record
    assert open_ledgers(log._cluster.uri) <= set(record.tail[-1:])


@dataclass
class Held:
    """Appends to a writer's journals wait here; ``let_go`` takes them on.

    Attributes:
        passes: bookies whose appends do not wait.
    """

    journal: str = ""
    passes: set[str] = field(default_factory=set)
    is_on: bool = False
    gate: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def decide(self, _number: int, operation: Operation) -> None:
        is_append = (operation.call, operation.name) == ("append", self.journal)
        if self.is_on and is_append and operation.place not in self.passes:
            self.arrived.release()
            assert self.gate.wait(120)

    def hold(self, *passes: str) -> None:
        self.is_on, self.passes = True, set(passes)

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self.arrived.acquire(timeout=120)

    def let_go(self) -> None:
        self.is_on = False
        self.gate.set()


@contextmanager
def held_writer(rig: Rig) -> Iterator[tuple[LogWriter, Held]]:
    """A writer of a new log, the appends of which can be held up on their way."""
    held = Held()
    rig.faults.decide = held.decide
    with rig.faults.installed():
        writer = BookKeeper(rig.uri).create_log(NAME).writer(settings=SILENT)
        held.journal = journal_of(writer)
        try:
            yield writer, held
        finally:
            held.let_go()
            writer.release()


def journal_of(writer: LogWriter) -> str:
    ledger = writer._segment.handle.metadata
    return layout.journal(ledger.ledger_id, ledger.term, ledger.token)


SENT = [str(number).encode() for number in range(5)]


def tell_story(log: LogHandle) -> dict[int, bytes]:
    """Open, add, roll twice, close; ends at the first error. Returns what was acknowledged."""
    acknowledged: dict[int, bytes] = {}
    try:
        writer = log.writer(settings=SILENT)
    except BookKeeperError:
        return acknowledged
    try:
        with writer:
            for number, value in enumerate(SENT):
                acknowledged[writer.append(value)] = value
                if number in (1, 3):
                    writer.roll()
    except BookKeeperError:
        writer.release()
    return acknowledged


def at_rest(keeper: BookKeeper) -> LogHandle:
    """An unbounded log with two entries, and nobody who writes to it."""
    log = keeper.create_log(NAME, unbounded=True)
    with log.writer() as writer:
        writer.append_many([b"a", b"b"])
    return log


def the_ledger(log: LogHandle) -> int:
    """The one ledger in which the log goes on."""
    [ledger_id] = log.record.tail
    return ledger_id
