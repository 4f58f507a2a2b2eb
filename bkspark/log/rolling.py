"""When a log writer closes its ledger and goes on in a new one."""

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
"""For the entries of the ledger before, for its closing, and for one's own."""

LOOK_SECONDS = 10.0
"""A writer with too few bookies looks so often whether there are enough again."""

SHORT = "bookies are back"
"""Why a ledger is rolled whose entries get fewer copies."""

ADD_BYTES = 100
"""What an add weighs by itself."""


@dataclass(frozen=True, slots=True)
class Add:
    """Entries on their way; ``future`` gets the offset of the last one."""

    entries: Entries
    future: "Future[int]"
    byte_count: int

    @property
    def weight(self) -> int:
        """What it takes while it waits, in bytes."""
        return self.byte_count + ADD_BYTES


@dataclass(frozen=True, slots=True)
class RollPolicy:
    """Limits of one ledger; None for no limit. Nothing depends on them but how ledgers are cut.

    Of an unbounded log they are limits of a fragment.

    A ledger that has reached one is added to while the next is made, but not beyond as much again:
    then whoever adds waits.

    Attributes:
        max_bytes, max_entries: added to the ledger.
        max_seconds: since the writer began it; looked at when something is added.
        max_records: so that journals, which a reader goes through, stay short.

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
    """How full a ledger is, as far as its policy asks."""

    policy: RollPolicy
    byte_count: int = 0
    entry_count: int = 0
    record_count: int = 0
    began: float = field(default_factory=environment.monotonic)

    def add(self, add: Add) -> None:
        self.entry_count += len(add.entries)
        self.byte_count += add.byte_count

    def anew(self) -> "Filling":
        """Empty, and begun now."""
        return Filling(self.policy)

    def why_full(self) -> str:
        """Why it is time to roll, in one line; empty if it is not."""
        seconds = self.policy.max_seconds
        is_aged = seconds is not None and self._age() >= seconds
        return self.reached() or (f"it is {seconds:g} s old" if is_aged else "")

    def reached(self) -> str:
        """The count that is as high as the policy takes, in one line; empty if none is."""
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
class Waiting:
    """What is added while a ledger closes, in order."""

    adds: deque[Add] = field(default_factory=deque)
    byte_count: int = 0

    def add(self, add: Add) -> None:
        self.adds.append(add)
        self.byte_count += add.weight


@dataclass(slots=True)
class Segment:
    """The ledger that is added to now.

    Attributes:
        first_offset: of its entry 0.
        faults_before: of the ledgers before it.
        looked_at: when it was last seen whether the log can move on from it.
        is_small: whether it was made on fewer bookies than were wanted.
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
        """Why it is time to roll, or to see if bookies are back; empty if it is not."""
        return self.filling.why_full() or (SHORT if self._is_to_be_looked_at() else "")

    @property
    def is_short(self) -> bool:
        """Whether its entries get fewer copies, or are in fewer stripes, than are wanted."""
        return self.is_small or self.handle.is_short_of_bookies

    def _is_to_be_looked_at(self) -> bool:
        if not self.is_short:
            return False
        now = environment.monotonic()
        is_time = now - self.looked_at >= LOOK_SECONDS
        self.looked_at = now if is_time else self.looked_at
        return is_time


def size_of(entries: Entries) -> int:
    """How many bytes ``entries`` count as.

    Raises:
        InvalidRequestError: it is not known how many entries there are.
    """
    if isinstance(entries, pa.Table):
        return int(entries.nbytes)
    count_of(entries)
    return sum(len(value) for value in entries if isinstance(value, bytes))
