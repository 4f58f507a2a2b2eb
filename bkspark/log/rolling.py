"""When a log writer closes its ledger and continues in a new ledger, and what it logs then."""

import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from weakref import WeakMethod

import pyarrow as pa

from bkspark import environment
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.guards import CallbackGuard
from bkspark.cluster.log_messages import tell
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned
from bkspark.errors import BookKeeperError
from bkspark.ledger.handles.entries import count_of
from bkspark.ledger.handles.group_bounds import Entries
from bkspark.ledger.handles.promise import Answers
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import FIRST, ConfirmedEnd, LedgerMetadata

# --- roll log ------------------------------------------------------------------------------------
# Log messages about the rolls of a log writer.


logger = logging.getLogger(__name__)


def rolled(log_name: str, old: int, new: int, end_offset: int, reason: str) -> None:
    """Log that ledger ``new`` follows ``old``; ``end_offset`` is the log's end now."""
    tell(
        logger,
        "log %s: rolled from ledger %d to %d at offset %d: %s",
        *(log_name, old, new, end_offset, reason),
        ledger_id=new,
    )


def fragment_begun(log_name: str, ledger_id: int, offset: int, reason: str) -> None:
    """Log the begin of a fragment in the ledger of an unbounded log."""
    line = "log %s: ledger %d has a new fragment from offset %d on: %s"
    tell(logger, line, log_name, ledger_id, offset, reason, ledger_id=ledger_id)


def failed(log_name: str, error: BookKeeperError) -> BookKeeperError:
    """Log ``error`` and return it. The log continues; the next roll repeats the failed step."""
    logger.warning("log %s: a roll failed: %s", log_name, error.args[0])
    return error


# --- rolling -------------------------------------------------------------------------------------
# When a log writer closes its ledger and continues in a new ledger.


CLOSING_WAITS = 3
"""Waits of an add during a roll: the old ledger's entries, its closing, the add itself."""

LOOK_SECONDS = 10.0
"""Seconds between two checks whether there are enough bookies again."""

SHORT = "bookies are back"
"""Why a ledger whose entries get fewer copies is rolled."""

ADD_BYTES = 100
"""Overhead of one add, in bytes."""


@dataclass(frozen=True, slots=True)
class Add:
    """Entries to be sent; ``future`` gets the offset of the last entry."""

    entries: Entries
    future: "Future[int]"
    byte_count: int

    @property
    def weight(self) -> int:
        """Bytes that the add occupies while it waits."""
        return self.byte_count + ADD_BYTES


@dataclass(frozen=True, slots=True)
class RollPolicy:
    """Limits of one ledger, or of one fragment of an unbounded log; None for no limit.

    The limits only decide where ledgers are cut. A ledger that has reached a limit takes entries
    while the next ledger is made, but at most as much again; further appends block.

    Attributes:
        max_bytes, max_entries: most bytes and entries added to the ledger.
        max_seconds: most seconds since the writer began the ledger; checked at each add.
        max_records: most records; keeps the journals, which readers scan, short.

    Raises:
        InvalidRequestError: a limit is no number, or not above 0.
    """

    max_bytes: int | None = None
    max_entries: int | None = None
    max_seconds: float | None = None
    max_records: int | None = None

    def __post_init__(self) -> None:
        arguments.limit_or_none("roll_bytes", self.max_bytes, least=1)
        arguments.limit_or_none("roll_entries", self.max_entries, least=1)
        arguments.seconds_or_none("roll_seconds", self.max_seconds, is_above_0=True)


NEVER = RollPolicy()


@dataclass(slots=True)
class Filling:
    """The fill level of a ledger, compared with its policy."""

    policy: RollPolicy
    byte_count: int = 0
    entry_count: int = 0
    record_count: int = 0
    began: float = field(default_factory=environment.monotonic)

    def add(self, entry_count: int, byte_count: int) -> None:
        self.entry_count += entry_count
        self.byte_count += byte_count

    def anew(self) -> "Filling":
        """Return an empty filling that begins now."""
        return Filling(self.policy)

    def why_full(self) -> str:
        """Return why to roll now, in one line; empty if there is no reason."""
        seconds = self.policy.max_seconds
        is_aged = seconds is not None and self._age() >= seconds
        return self.reached() or (f"it is {seconds:g} s old" if is_aged else "")

    def reached(self) -> str:
        """Return the count that has reached its limit, in one line; empty if none has."""
        policy = self.policy  # each append asks: a loop over the three would cost thrice as much
        if policy.max_records is not None and self.record_count >= policy.max_records:
            return f"it has {self.record_count} records"
        if policy.max_entries is not None and self.entry_count >= policy.max_entries:
            return f"it has {self.entry_count} entries"
        if policy.max_bytes is not None and self.byte_count >= policy.max_bytes:
            return f"it has {self.byte_count} bytes"
        return ""

    def _age(self) -> float:
        return environment.monotonic() - self.began


@dataclass(slots=True)
class WaitingAdds:
    """The adds that wait while a ledger closes, in order."""

    adds: deque[Add] = field(default_factory=deque)
    byte_count: int = 0

    def add(self, entries: Entries, byte_count: int) -> "Future[int]":
        """Add entries; return the future of their last offset."""
        future: Future[int] = Future()
        future.set_running_or_notify_cancel()  # a submitted add cannot be cancelled
        add = Add(entries, future, byte_count)
        self.adds.append(add)
        self.byte_count += add.weight
        return future


@dataclass(slots=True)
class Segment:
    """The ledger that takes new entries.

    Attributes:
        first_offset: log offset of entry 0.
        faults_before: faults of earlier ledgers.
        looked_at: time of the last check whether the log can move to other bookies.
        is_small: whether the ledger was made on fewer bookies than wanted.
    """

    handle: WriteHandle
    first_offset: int
    filling: Filling
    faults_before: Mapping[str, str] = field(default_factory=dict)
    looked_at: float = field(default_factory=environment.monotonic)
    is_small: bool = False

    @property
    def ledger_id(self) -> int:
        return self.handle.ledger_id

    @property
    def unlimited_handle(self) -> WriteHandle | None:
        """The handle if no number of adds makes a roll due; None otherwise."""
        is_plain = self.filling.policy == NEVER and not self.is_small
        return self.handle if is_plain else None

    def why_due(self) -> str:
        """Return why to roll, or to check for bookies; empty if there is no reason."""
        return self.filling.why_full() or (SHORT if self._is_to_be_looked_at() else "")

    @property
    def is_short(self) -> bool:
        """Whether entries get fewer copies, or are in fewer stripes, than wanted."""
        return self.is_small or self.handle.is_short_of_bookies

    def _is_to_be_looked_at(self) -> bool:
        if not self.is_short:
            return False
        now = environment.monotonic()
        is_time = now - self.looked_at >= LOOK_SECONDS
        self.looked_at = now if is_time else self.looked_at
        return is_time


def size_of(entries: Entries) -> int:
    """Return the bytes that ``entries`` count for.

    Raises:
        InvalidRequestError: the number of entries is not known.
    """
    if isinstance(entries, pa.Table):
        return int(entries.nbytes)
    count_of(entries)
    return sum(len(value) for value in entries if isinstance(value, bytes))


# --- idle watch ----------------------------------------------------------------------------------
# A log writer checks for returned bookies even while no entry is appended.
#
# A member may fail after the last append, and no later append then triggers the check. The watch
# runs only while the writer is short of bookies. The watch does not keep the writer alive.


class IdleWatch:
    """Calls a writer every ``LOOK_SECONDS`` while the writer is short of bookies.

    Args:
        look: a method of the writer, which rolls if possible. Returns whether to call it again.
    """

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = WeakMethod(look)
        self._cancel: Callable[[], None] | None = None
        self._is_over = False

    def begin(self) -> None:
        """Start the timer, unless it is running. Takes no lock: callers may hold any lock."""
        if self._cancel is None and not self._is_over:
            self._cancel = environment.after(LOOK_SECONDS, self._wake, "look-for-bookies")

    def stop(self) -> None:
        """Stop for good."""
        self._is_over = True
        if self._cancel is not None:
            self._cancel()

    def _wake(self) -> None:
        self._cancel = None
        look = self._look()
        if look is not None and look():
            self.begin()


# --- beginning segments --------------------------------------------------------------------------


class Segments:
    """Begins the segments of one log writer.

    Attributes:
        wait_seconds_max: how long a caller of the writer waits for an answer.
        callbacks: knows the threads that run callbacks of the log's futures.

    Args:
        policy, settings: when to roll, and how to write.
        look: called repeatedly while the writer is short of bookies (``IdleWatch``).
        answers: returns what the callers of a ledger's writer are told.
    """

    def __init__(
        self,
        cluster: Cluster,
        password: Password,
        policy: RollPolicy,
        settings: WriterSettings,
        *,
        look: Callable[[], bool],
        answers: Callable[[int, CallbackGuard], Answers],
    ) -> None:
        self.watch = IdleWatch(look)
        self.callbacks = CallbackGuard()
        timed = settings.with_metadata_timeout(cluster.store.seconds)
        self.wait_seconds_max = timed.wait_seconds_max
        self._cluster = cluster
        self._password = password
        self._policy = policy
        self._settings = settings
        self._answers = answers

    def begin(
        self,
        seen: Versioned[LedgerMetadata],
        begun: Begun,
        first_offset: int,
        standing: ConfirmedEnd = FIRST,
        unjoined: Collection[str] = (),
    ) -> Segment:
        """Open a ledger of the tail for writing."""
        digester = make_digester(seen.value.settings.digest, self._password)
        handle = WriteHandle(
            self._cluster,
            seen,
            digester,
            begun=begun,
            settings=self._settings,
            standing=standing,
            unjoined=unjoined,
            answers=self._answers(first_offset, self.callbacks),
        )
        handle.on_failure(self.watch.begin)
        is_small = sizes.wanted(seen.value) != seen.value.quorum
        segment = Segment(handle, first_offset, Filling(self._policy), is_small=is_small)
        if segment.is_short:
            self.watch.begin()
        return segment
