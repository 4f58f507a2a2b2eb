"""Group commit: submissions made while the last record is in flight become one record."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from bkspark import environment
from bkspark.format import journal
from bkspark.ledger.handles.promise import Promise
from bkspark.protocol.writer.adding import PendingAdd

GROUP_ENTRIES_MAX = 10_000
GROUP_BYTES_MAX = 4 * 2**20

GATHERED_BYTES_MAX = GROUP_BYTES_MAX
"""Submissions of so many bytes are sent although an earlier record is in flight."""

PAUSE_SECONDS = 0.0005
PAUSES_LEFT_OUT_MAX = 64
"""The longest pause for callers to come back, and how many are left out where callers do not."""

QUICK_CHECK_SECONDS = 0.001
"""Entries gather during a metadata check that takes less than this."""

HELD_BYTES_MAX = 32 * 2**20
HELD_SUBMISSIONS_MAX = 50_000
"""Limits of a writer with deferred sync; beyond them it writes unasked. The bytes are half of those
that may be unacknowledged, so that no caller waits for room that only ``force`` would make.
"""


@dataclass(slots=True)  # not frozen: each append makes one, and frozen ones cost five times as much
class Submission:
    """Rows that get neighbouring ids in one record; ``promise`` gets the last id.

    One entry of bytes stands for itself: a list around it would be one more object of many for
    the garbage collector to look at.
    """

    rows: bytes | Sequence[bytes] | pa.RecordBatch
    row_count: int
    byte_count: int
    promise: Promise


@dataclass(slots=True)
class Group:
    """A record in flight and its submissions.

    Attributes:
        deadline: for the acknowledgement, in monotonic seconds.
        seconds: the time limit; it begins anew with each sign of a bookie's progress.
        sent_at: in monotonic seconds.
        record: None until it is sent.
    """

    add: PendingAdd
    submitted: list[Submission]
    deadline: float
    seconds: float
    record: journal.EncodedRecord | None = None
    sent_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.sent_at = self.deadline - self.seconds

    @property
    def entry_count(self) -> int:
        return self.add.last_entry_id - self.add.first_entry_id + 1

    @property
    def byte_count(self) -> int:
        return sum(submitted.byte_count for submitted in self.submitted)

    def last_numbers(self, first: int) -> Iterator[tuple[Promise, int]]:
        """Yield each submission's promise and last entry's number, in entry order.

        Args:
            first: the number of the ledger's entry 0.
        """
        number = first + self.add.first_entry_id - 1
        for submitted in self.submitted:
            number += submitted.row_count
            yield submitted.promise, number


class OpenGroup:
    """Submissions that are not in a record yet, in entry order.

    Args:
        is_held: hold them until ``let_go``, or until there are too many (deferred sync).

    Attributes:
        is_due: whether the last submission may be sent at once: it is the first to be sent, or it
            fills a record.
    """

    def __init__(self, *, is_held: bool) -> None:
        self._is_held = is_held
        self._waiting: deque[Submission] = deque()
        self._byte_count = 0
        self._free_count = 0
        self.is_due = False

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Submission]:
        return iter(self._waiting)

    @property
    def has_next(self) -> bool:
        """Whether a submission may be sent."""
        return self._free_count > 0

    @property
    def fills_a_record(self) -> bool:
        """Whether the next record can take no further submissions; only if ``has_next``.

        Rows of a table always have a record of their own.
        """
        return self.is_long or isinstance(self._waiting[0].rows, pa.RecordBatch)

    @property
    def is_long(self) -> bool:
        """Whether there are as many submissions as a record takes."""
        return self._byte_count >= GATHERED_BYTES_MAX or len(self._waiting) >= GROUP_ENTRIES_MAX

    def add(self, submitted: Submission) -> None:
        before = self._byte_count
        self._waiting.append(submitted)
        self._byte_count = size = before + submitted.byte_count
        self.is_due = (
            not self._free_count
            or before < GATHERED_BYTES_MAX <= size
            or len(self._waiting) == GROUP_ENTRIES_MAX
        )
        if not self._is_held:
            self._free_count += 1  # none is held
        elif self._byte_count >= HELD_BYTES_MAX or len(self._waiting) >= HELD_SUBMISSIONS_MAX:
            self.let_go()

    def let_go(self) -> None:
        """Allow all present submissions to be sent."""
        self._free_count = len(self._waiting)

    def hold_no_more(self) -> None:
        """Allow all present and future submissions to be sent."""
        self._is_held = False
        self.let_go()

    def take(self) -> list[Submission]:
        """Remove the next group, of at least one submission; only if ``has_next``."""
        first = self._remove_first()
        taken, rows, size = [first], first.row_count, first.byte_count
        while self._free_count and _fits(first, self._waiting[0], rows, size):
            taken.append(self._remove_first())
            rows, size = rows + taken[-1].row_count, size + taken[-1].byte_count
        return taken

    def _remove_first(self) -> Submission:
        submitted = self._waiting.popleft()
        self._byte_count -= submitted.byte_count
        self._free_count -= 1
        return submitted


def rows_of(taken: Sequence[Submission]) -> pa.RecordBatch | Sequence[bytes]:
    """Return the rows of a group."""
    first = taken[0].rows
    if len(taken) == 1 and not isinstance(first, bytes):  # always with a batch
        return first
    found: list[bytes] = []
    for submitted in taken:
        rows = submitted.rows
        if isinstance(rows, bytes):
            found.append(rows)
        else:
            found += rows
    return found


def _fits(first: Submission, following: Submission, rows: int, size: int) -> bool:
    """Return whether ``following`` fits into the group; rows of tables are never merged."""
    return (
        not isinstance(first.rows, pa.RecordBatch)
        and not isinstance(following.rows, pa.RecordBatch)
        and rows + following.row_count <= GROUP_ENTRIES_MAX
        and size + following.byte_count <= GROUP_BYTES_MAX
    )


class Pauses:
    """Decides when to send a little later, so that callers share a record again.

    Callers of one record are told at once. The first to append again would have a record of its
    own, and the others would share the next: twice as many records as with a pause.

    Attributes:
        is_on: whether small groups wait for the callers that were told.
    """

    def __init__(self) -> None:
        self.is_on = False
        self._all_came: environment.Inbox[bool] = environment.inbox()
        self._told = 0
        self._waited = 0
        self._left_out = 0
        self._to_leave_out = 0

    def told(self, count: int, gathered: OpenGroup) -> None:
        """Begin a pause, perhaps: ``count`` callers were told, and no record is in flight."""
        waiting = len(gathered)
        if self.is_on or count + waiting < 2 or gathered.is_long:
            return
        if self._to_leave_out:
            self._to_leave_out -= 1
        else:
            self.is_on, self._told, self._waited = True, count, waiting
            self._all_came = environment.inbox()

    def holds(self, gathered: OpenGroup) -> bool:
        """Return whether ``gathered`` waits for further callers."""
        return self.is_on and len(gathered) < self._told + self._waited

    def all_come_within(self, seconds: float) -> bool:
        """Wait for the end of the pause; return whether it came within ``seconds``."""
        try:
            return self._all_came.get(timeout=seconds)
        except environment.Empty:
            return False

    def end(self, count: int) -> None:
        """End the pause, if there is one; ``count`` entries wait now.

        The next pauses are left out if few callers have come meanwhile.
        """
        if not self.is_on:
            return
        if 2 * (count - self._waited) >= self._told:
            self._left_out = 0
        else:
            self._left_out = min(2 * self._left_out + 1, PAUSES_LEFT_OUT_MAX)
        self.is_on, self._to_leave_out = False, self._left_out
        self._all_came.put(True)
