"""Group commit: what was submitted while the last record was on its way becomes one record."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import pyarrow as pa

from bkspark.format import journal
from bkspark.protocol.adding import PendingAdd

GROUP_ENTRIES_MAX = 10_000
GROUP_BYTES_MAX = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Submitted:
    """Rows that get neighbouring ids in one record; ``future`` gets the last one."""

    rows: Sequence[bytes] | pa.RecordBatch
    row_count: int
    byte_count: int
    future: "Future[int]"


@dataclass(frozen=True, slots=True)
class Group:
    """A record on its way and the submissions it holds.

    Attributes:
        deadline: when it must be acknowledged, in monotonic seconds.
    """

    add: PendingAdd
    record: journal.EncodedRecord
    submitted: list[Submitted]
    deadline: float

    @property
    def byte_count(self) -> int:
        return sum(submitted.byte_count for submitted in self.submitted)

    def complete(self) -> None:
        """Tell everybody the id of his last entry, in entry order."""
        entry_id = self.add.first_entry_id - 1
        for submitted in self.submitted:
            entry_id += submitted.row_count
            submitted.future.set_result(entry_id)


def take(gathered: "deque[Submitted]") -> list[Submitted]:
    """Take the next group, of at least one submission, from the left of ``gathered``."""
    taken = [gathered.popleft()]
    rows, size = taken[0].row_count, taken[0].byte_count
    while gathered and _fits(taken[0], gathered[0], rows, size):
        taken.append(gathered.popleft())
        rows, size = rows + taken[-1].row_count, size + taken[-1].byte_count
    return taken


def batch_of(taken: Sequence[Submitted], schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a group."""
    first = taken[0].rows
    if isinstance(first, pa.RecordBatch):
        return first
    values = [value for submitted in taken for value in submitted.rows]
    return pa.record_batch([pa.array(values, pa.binary())], schema=schema)


def _fits(first: Submitted, following: Submitted, rows: int, size: int) -> bool:
    """Rows of tables are not put together with others."""
    return (
        not isinstance(first.rows, pa.RecordBatch)
        and not isinstance(following.rows, pa.RecordBatch)
        and rows + following.row_count <= GROUP_ENTRIES_MAX
        and size + following.byte_count <= GROUP_BYTES_MAX
    )
