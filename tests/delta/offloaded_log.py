"""A log in Spark, and its offload to a real Delta table without the verb's checks."""

import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import bkspark
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.format import layout
from bkspark.format.arrow_schema import METADATA_COLUMNS
from bkspark.protocol.log import offloading
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import Intent, TableVersion, TierColumn
from bkspark.table.table import DeltaTable, open_table

LOG = "events"


@dataclass
class OffloadedLog:
    """A log whose first rows move to a table."""

    spark: SparkSession
    folder: Path

    def __post_init__(self) -> None:
        self.uri = (self.folder / "metadata").as_uri()
        self.place = str(self.folder / "table")
        disks = [self.folder / f"disk{n}" for n in range(3)]
        init_cluster(self.uri, [disk.as_uri() for disk in disks], accepts_risk=True)
        bkspark.register(self.spark, metadataServiceUri=self.uri)

    @property
    def table(self) -> DeltaTable:
        return open_table(self.place)

    def append(self, first: int, count: int, partitions: int = 2) -> None:
        """Write the rows with these numbers as one ledger."""
        rows = self.spark.range(first, first + count, numPartitions=partitions)
        rows = rows.selectExpr(
            "id AS n",
            "IF(id % 5 = 4, NULL, concat('row ', id)) AS s",
            "timestamp_micros(id) AS t",
            "struct(id AS a, array(CAST(id AS INT), NULL) AS l) AS parts",
        )
        rows.write.format("bookkeeper").mode("append").save(LOG)

    def log(self) -> LogRecord:
        with Cluster(self.uri) as cluster:
            return cluster.log(LOG).value

    def rows(self, **options: object) -> DataFrame:
        """A read by the data source."""
        given = {name: str(value) for name, value in options.items()}
        return self.spark.read.format("bookkeeper").options(**given).load(LOG)

    def offload(self, ledger_count: int) -> None:
        """Copy the next ledgers to the table, and free them."""
        log = self.log()
        begin = offloading.next_begin(log)
        end = list(log.every_ledger())[ledger_count - 1].end_offset
        part = self.rows(includeMetadata=True, startingOffsets=begin, endingOffsets=end)
        own = [name for name in part.columns if name not in METADATA_COLUMNS]
        moved = part.select(*METADATA_COLUMNS, *own)
        moved.write.format("delta").mode("append").option("mergeSchema", "true").save(self.place)
        with Cluster(self.uri) as cluster:
            cluster.logs.update(LOG, lambda seen: self._moved(seen, begin, end))

    def undo(self) -> None:
        """Take the last change of the table back, and count that as verified."""
        sound = self.table.snapshot().version - 1
        self.spark.sql(f"RESTORE delta.`{self.place}` TO VERSION AS OF {sound}")
        version = self.table.snapshot().version

        def changed(log: LogRecord) -> LogRecord:
            assert log.tier is not None
            table = replace(log.tier.table, verified=TableVersion(version))
            return log.with_tier(replace(log.tier, table=table))

        with Cluster(self.uri) as cluster:
            cluster.logs.update(LOG, changed)

    def _moved(self, log: LogRecord, begin: int, end: int) -> LogRecord:
        found, attempt = self.table.snapshot(), secrets.token_hex(16)
        intent = Intent(begin, end, attempt, found.version)
        seen = TableVersion(found.version, found.commit)
        if log.tier is None:
            epoch = secrets.token_hex(16)
            log = offloading.attached(log, self.table.url, found.table_id, epoch, intent)
        else:
            epoch = log.tier.epoch
            log = offloading.with_intent(log, epoch, intent)
        name = layout.log_page_name(log.generation, secrets.token_hex(16))
        segment = offloading.segment_of(log, begin, end, name, 1)
        columns = tuple(
            TierColumn(one.name, one.physical_name, one.type_text)
            for one in found.columns.values()
            if one.name not in METADATA_COLUMNS
        )
        own = offloading.tier_of(log, epoch).table
        table = replace(own, verified=seen, columns=columns)
        log = offloading.finished(log, epoch, attempt, segment, table)
        log = offloading.freed(log, epoch, end, seen, 1)
        return offloading.released(log, epoch, end, seen)
