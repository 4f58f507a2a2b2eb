"""A log whose first ledgers were offloaded to a table that a test wrote by hand."""

import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from bkspark.cluster.cluster import Cluster
from bkspark.format import layout
from bkspark.format.arrow_schema import (
    ENTRY_COLUMN,
    LEDGER_COLUMN,
    OFFSET_COLUMN,
    TIMESTAMP,
    TIMESTAMP_COLUMN,
)
from bkspark.log.reading.log_view import LogView
from bkspark.log.reading.read_slices import plan_view
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from bkspark.protocol.log import offloading
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import Intent, TableVersion, TierColumn
from bkspark.table.table import open_table
from tests.integration.rig import SCHEMA, Rig
from tests.kit.delta import HandTable

DELTA_TYPES = {"n": "long", "s": "string"}
WITH_PLACE = pa.schema(
    [(OFFSET_COLUMN, pa.int64()), (LEDGER_COLUMN, pa.int64()), (ENTRY_COLUMN, pa.int64()), *SCHEMA]
)
STORED = pa.schema([*WITH_PLACE, (TIMESTAMP_COLUMN, TIMESTAMP)])


@dataclass
class Offloaded:
    """Offloads the log of a rig, without any check: the checks of readers are what is tested.

    Attributes:
        files: names of the table's files, one for each copied ledger.
        parts: their rows.
    """

    rig: Rig
    folder: Path
    table: HandTable = field(init=False)
    files: list[str] = field(default_factory=list)
    parts: list[pa.Table] = field(default_factory=list)

    @property
    def rows(self) -> pa.Table:
        """All rows that were copied, in the order of their offsets."""
        return pa.concat_tables(self.parts)

    def __post_init__(self) -> None:
        self.table = HandTable(self.folder)
        places = dict.fromkeys((OFFSET_COLUMN, LEDGER_COLUMN, ENTRY_COLUMN), "long")
        places[TIMESTAMP_COLUMN] = "timestamp"
        self.table.create({**places, **DELTA_TYPES})

    def copy(self, ledger_count: int) -> None:
        """Copy the log's next ledgers, and free them."""
        log = self._log()
        begin, places = offloading.next_begin(log), list(log.every_ledger())[:ledger_count]
        parts = [self._rows(place.first_offset, place.end_offset) for place in places]
        self.files += [self.table.append(part) for part in parts]
        self.parts += parts
        self._record(begin, places[-1].end_offset)

    def _record(self, begin: int, end: int) -> None:
        epoch, attempt = secrets.token_hex(16), secrets.token_hex(16)
        version = self.table.version
        seen = TableVersion(version, open_table(self.folder.as_uri()).commit_digest(version))
        columns = tuple(TierColumn(name, name, kind) for name, kind in DELTA_TYPES.items())

        def offloaded(log: LogRecord) -> LogRecord:
            own = log.tier.epoch if log.tier else epoch
            intent = Intent(begin, end, attempt, version)
            digests = layout.log_page_name(log.generation, secrets.token_hex(16))
            if log.tier is None:
                url = self.folder.as_uri()
                log = offloading.attached(log, url, self.table.table_id, own, intent)
            else:
                log = offloading.with_intent(log, own, intent)
            segment = offloading.segment_of(log, begin, end, digests, 1)
            found = replace(offloading.tier_of(log, own).table, verified=seen, columns=columns)
            log = offloading.finished(log, own, attempt, segment, found)
            log = offloading.freed(log, own, end, seen, 1)
            return offloading.released(log, own, end, seen)

        with Cluster(self.rig.uri) as cluster:
            cluster.logs.update(self.rig.log_name, offloaded)

    def _log(self) -> LogRecord:
        log = self.rig.log()
        assert log is not None
        return log

    def _rows(self, begin: int, end: int) -> pa.Table:
        view, reader = LogView(self._log()), SliceReader(STORED)
        with Cluster(self.rig.uri) as cluster:
            wanted = (cluster, view, OffsetRange(begin, end), reader.password, 2**30)
            tasks = plan_view(*wanted, with_times=True)
        found = [batch for task in tasks for batch in reader.read(task)]
        return pa.Table.from_batches(found, STORED).sort_by(OFFSET_COLUMN)
