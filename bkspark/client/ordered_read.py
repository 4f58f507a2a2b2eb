"""Reading in order, for clients without Spark.

Rows lie striped over files, so a file is not in order with its neighbours. The range asked for is
read in windows, each sorted before it is given out; memory holds one window.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from bkspark.client.cluster import Cluster
from bkspark.client.password import Password
from bkspark.client.read_plan import OffsetRange, ReadTask, plan_ledger, plan_log
from bkspark.client.slice_reader import ENTRY_COLUMN, OFFSET_COLUMN, ReplicaFault, SliceReader
from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema
from bkspark.protocol.ledger import LedgerMetadata, LedgerState
from bkspark.protocol.log import LogRecord

WINDOW_ROWS = 65_536
"""As many rows as a full block has by default, so that a block is read about once per stripe."""

# A window is one task, however many bytes it has.
_TASK_BYTES = 2**62


@dataclass
class OrderedRead:
    """The rows of ``range_``, in order; iterate once.

    Attributes:
        position_column: added in front of the others: the offset or entry id of each row.
        faults: replicas stepped over so far.
    """

    range_: OffsetRange
    position_column: str
    schema: pa.Schema
    password: Password
    plan: Callable[[OffsetRange], list[ReadTask]]
    faults: list[ReplicaFault] = field(default_factory=list)

    def __iter__(self) -> Iterator[pa.Table]:
        """Tables of up to ``WINDOW_ROWS`` rows.

        Raises:
            CorruptDataError: no replica can give some rows.
        """
        wanted = pa.schema([(self.position_column, pa.int64()), *self.schema])
        for begin in range(self.range_.begin, self.range_.end, WINDOW_ROWS):
            window = OffsetRange(begin, min(self.range_.end, begin + WINDOW_ROWS))
            reader = SliceReader(wanted, self.password)
            batches = [batch for task in self.plan(window) for batch in reader.read(task)]
            self.faults += [fault for fault in reader.faults if fault not in self.faults]
            yield pa.Table.from_batches(batches, wanted).sort_by(self.position_column)


def read_log_in_order(
    cluster: Cluster, log: LogRecord, begin: int | None, end: int | None, password: Password
) -> OrderedRead:
    """Offsets ``[begin, end)`` of this version of ``log``; None for its first and its end.

    Raises (also later):
        NoSuchEntryError: ``begin`` is truncated, or ``end`` is past the end.
    """
    offsets = OffsetRange(
        log.first_offset if begin is None else begin, log.end_offset if end is None else end
    )
    return OrderedRead(
        _checked(offsets),
        OFFSET_COLUMN,
        arrow_schema.decode(log.schema),
        password,
        lambda window: plan_log(cluster, log, window, password, _TASK_BYTES),
    )


def read_ledger_in_order(
    cluster: Cluster, ledger: LedgerMetadata, begin: int | None, end: int | None, password: Password
) -> OrderedRead:
    """Entries ``[begin, end)`` of a closed ledger, as far as there are any.

    Raises:
        InvalidRequestError: it is not closed.
    """
    if ledger.state is not LedgerState.CLOSED or ledger.last_entry_id is None:
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id} is {ledger.state.value}, and entries are read once it is "
            "CLOSED",
            hint="wait for its writer to finish",
        )
    last = ledger.last_entry_id + 1
    entries = OffsetRange(begin or 0, last if end is None else min(end, last))
    return OrderedRead(
        _checked(entries),
        ENTRY_COLUMN,
        arrow_schema.decode(ledger.schema),
        password,
        lambda window: plan_ledger(cluster, ledger, window, password, _TASK_BYTES),
    )


def _checked(range_: OffsetRange) -> OffsetRange:
    if range_.begin < 0 or range_.end < range_.begin:
        raise InvalidRequestError(
            f"the range from {range_.begin} to {range_.end} is not one",
            hint="the start is at least 0 and not behind the end",
        )
    return range_
