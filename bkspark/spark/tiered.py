"""Read a log whose first rows are in a Delta table: the table natively, the rest as a log.

Spark tells a data source in Python nothing of filters, limits and counts. It tells Delta all of
them. So a query of a tiered log is as quick as a query of its table.

Rule 1. The rows are exactly those of a log read. The version of the table is pinned here, on the
driver, after the same checks as for a log read: it is the log's table, no verified row was changed
since, and each offset is there once.

Rule 2. What this module cannot do exactly, the data source does: a session without Delta, a column
of another nested type, a read that may leave rows out.
"""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from bkspark.cluster.cluster import Cluster
from bkspark.format.arrow_schema import METADATA_COLUMNS, OFFSET_COLUMN
from bkspark.log.reading.slices import OffsetRange
from bkspark.log.reading.tier_rows import TierRows
from bkspark.protocol.log.record import LogRecord
from bkspark.spark.delta import has_delta
from bkspark.spark.hadoop_s3 import for_spark, has_client
from bkspark.spark.options import Options
from bkspark.spark.reader import wanted_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from bkspark.table.snapshot import Snapshot

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TablePart:
    """The rows of a log that its table gives.

    Attributes:
        rows: with the columns of the log read.
        rest: the offsets that are read as a log; empty if the table has all.
    """

    rows: "DataFrame"
    rest: OffsetRange


def table_part(spark: "SparkSession", options: Options, schema: StructType) -> TablePart | None:
    """Return what the table of a log gives of a read; None if the data source reads all (rule 2).

    Args:
        options: of the read.
        schema: the columns of the read.

    Raises:
        As a log read: ``TierRows.slices`` and ``reader.wanted_of``; TableChangedError: an offset
            is missing or there twice.
    """
    if not options.read.fails_on_loss or options.view or options.ledger_id is not None:
        return None
    with Cluster(options.metadata_uri) as cluster:
        record = cluster.log(options.log_name).value
        if record.tier is None or not record.freed:
            return None
        _, wanted = wanted_of(cluster, record, options)
    end = min(wanted.end, record.freed)
    if wanted.begin >= end:
        return None
    if not has_delta(spark) or not has_client(spark, record.tier.table_url):
        logger.info(
            "log %s is read without Delta, which takes longer: see bkspark.configure_delta",
            record.name,
        )
        return None
    rows = _rows(spark, record, OffsetRange(wanted.begin, end), schema)
    return None if rows is None else TablePart(rows, OffsetRange(end, wanted.end))


def _rows(
    spark: "SparkSession", record: LogRecord, offsets: OffsetRange, schema: StructType
) -> "DataFrame | None":
    tier = TierRows(record)
    slices = tier.slices(offsets.begin, offsets.end)
    snapshot = tier.snapshot
    names = _present_names(record, snapshot)
    known = {one.name for one in record.tier.columns} if record.tier else set()
    frame = (
        spark.read.format("delta").option("versionAsOf", snapshot.version).load(for_spark(tier.url))
    )
    found = [
        _column(frame, field.name, field.dataType, names)
        if field.name in names or field.name in known | set(METADATA_COLUMNS)
        else functions.lit(None).cast(field.dataType).alias(field.name)
        for field in schema.fields
    ]
    columns = [column for column in found if column is not None]
    if len(columns) < len(found):
        return None
    is_dense = tier.is_looked_through and snapshot.is_dense(offsets.begin, offsets.end)
    if not is_dense:
        tier.require_each_once(slices)
    if not is_dense or not _is_within(snapshot, offsets):
        offset = functions.col(quoted(names[OFFSET_COLUMN]))
        frame = frame.where((offset >= offsets.begin) & (offset < offsets.end))
    return frame.select(*columns)


def _present_names(record: LogRecord, snapshot: "Snapshot") -> dict[str, str]:
    """The present names of the log's columns in the table, whose owner may have renamed them."""
    assert record.tier is not None
    now = {column.physical_name: column.name for column in snapshot.columns.values()}
    own = {one.name: one.physical_name for one in record.tier.columns}
    known = {name: name for name in METADATA_COLUMNS if name in snapshot.columns} | own
    return {name: now[physical] for name, physical in known.items() if physical in now}


def _column(
    frame: "DataFrame", name: str, kind: DataType, names: dict[str, str]
) -> "Column | None":
    """Return a column of the log in the table's frame; None if it cannot be given exactly."""
    if name not in names:
        return None
    column = functions.col(quoted(names[name]))
    there = frame.schema[names[name]].dataType
    if there == kind:
        return column.alias(name)
    if isinstance(there, ArrayType | MapType | StructType):
        return None
    return column.cast(kind).alias(name)


def _is_within(snapshot: "Snapshot", offsets: OffsetRange) -> bool:
    """Whether statistics show that no file has a row without one of these offsets."""
    return all(
        file.first_offset is not None
        and file.last_offset is not None
        and file.row_count == file.last_offset - file.first_offset + 1
        and offsets.begin <= file.first_offset
        and file.last_offset < offsets.end
        for file in snapshot.files
    )


def quoted(name: str) -> str:
    """Return a column's name as Spark takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
