"""Logs with an open tail, and looking at them as a reader does."""

import pyarrow as pa

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.format import arrow_schema
from bkspark.ledger.creating import CreatedLedger
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.log.log_writer import LogWriter
from bkspark.log.reading.log_view import LogView, look_at
from bkspark.log.reading.read_slices import plan_view
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.record import LogRecord

from .rig import LOG, SCHEMA, rows_from

NO_PASSWORD = Password()
SILENT = WriterSettings(explicit_lac_ms=0)
"""Says no LAC but in the next record, so that the last entry is never seen to be confirmed."""
PROMPT = WriterSettings(explicit_lac_ms=1)


def create_log(cluster: Cluster, quorum: tuple[int, int, int] = (3, 3, 2)) -> None:
    sizes = Quorum(*quorum)

    def created(record: LogRecord | None) -> LogRecord:
        log = record or LogRecord.tombstone(LOG, sizes)
        return log.created(LogSettings(sizes), arrow_schema.encode(SCHEMA))

    cluster.logs.update(LOG, created)


def table(first: int, count: int) -> pa.Table:
    return pa.Table.from_batches([rows_from(first, count)])


def look(cluster: Cluster) -> LogView:
    return look_at(cluster, LOG, NO_PASSWORD)


def numbers(cluster: Cluster, view: LogView, begin: int, end: int) -> list[int]:
    """``n`` of each row, which must be its offset."""
    wanted = pa.schema([("n", pa.int64()), ("_offset", pa.int64())])
    tasks = plan_view(cluster, view, OffsetRange(begin, end), NO_PASSWORD, None)
    reader = SliceReader(wanted)
    rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
    assert all(row["n"] == row["_offset"] for row in rows)
    return sorted(row["n"] for row in rows)


def opened(cluster: Cluster, settings: WriterSettings = SILENT) -> LogWriter:
    return LogWriter(cluster, LOG, NO_PASSWORD, settings=settings)


def by_hand(cluster: Cluster, created: CreatedLedger) -> WriteHandle:
    digester = make_digester(created.seen.value.settings.digest, NO_PASSWORD)
    return WriteHandle(cluster, created.seen, digester, begun=created.begun, settings=SILENT)
