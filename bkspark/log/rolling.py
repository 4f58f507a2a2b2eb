"""When a log writer closes its ledger and continues in a new ledger."""

from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

import pyarrow as pa

from bkspark import environment
from bkspark.cluster import arguments
from bkspark.ledger.handles.entries import count_of
from bkspark.ledger.handles.group_bounds import Entries
from bkspark.ledger.handles.write_handle import WriteHandle

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

    def add(self, add: Add) -> None:
        self.entry_count += len(add.entries)
        self.byte_count += add.byte_count

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
        for count, most, what in (
            (self.record_count, self.policy.max_records, "records"),
            (self.entry_count, self.policy.max_entries, "entries"),
            (self.byte_count, self.policy.max_bytes, "bytes"),
        ):
            if most is not None and count >= most:
                return f"it has {count} {what}"
        return ""

    def _age(self) -> float:
        return environment.monotonic() - self.began


@dataclass(slots=True)
class WaitingAdds:
    """The adds that wait while a ledger closes, in order."""

    adds: deque[Add] = field(default_factory=deque)
    byte_count: int = 0

    def add(self, add: Add) -> None:
        self.adds.append(add)
        self.byte_count += add.weight


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
