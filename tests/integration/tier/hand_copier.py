"""The Spark half of an offload, without Spark: it writes tables by hand."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from bkspark.admin.offloading.copier import FENCE_VERSION, PLACE_COLUMNS, CopyOrder
from bkspark.cluster.cluster import Cluster
from bkspark.format import arrow_schema
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from tests.kit.delta import HandTable

TYPES = {
    pa.int64(): "long",
    pa.string(): "string",
    pa.float64(): "double",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}


class KilledError(Exception):
    """The driver ends here."""


class HandCopier:
    """A copier whose tables are in folders of this host.

    Attributes:
        tables: by URL.
        before, after: called with the name of each call, before and after it.
        calls: the names of all calls.
    """

    def __init__(self) -> None:
        self.tables: dict[str, HandTable] = {}
        self.calls: list[str] = []
        self.before: Callable[[str], None] = lambda _name: None
        self.after: Callable[[str], None] = lambda _name: None

    def create(self, order: CopyOrder, properties: dict[str, str]) -> None:
        self._called("create")
        with Cluster(order.metadata_uri) as cluster:
            own = arrow_schema.decode(cluster.log(order.log_name).value.schema)
        if order.table_url not in self.tables:
            table = HandTable(Path(unquote(urlsplit(order.table_url).path)))
            columns = {field.name: TYPES[field.type] for field in [*PLACE_COLUMNS, *own]}
            table.create(columns, properties=properties)
            self.tables[order.table_url] = table
        self.after("create")

    def claim(self, table_url: str, properties: dict[str, str]) -> None:
        self._called("claim")
        table = self.tables[table_url]
        action = {**table.settings["metaData"], "configuration": properties}
        table.commit({"metaData": action})
        self.after("claim")

    def append(self, order: CopyOrder) -> None:
        self._called("append")
        table = self.tables[order.table_url]
        rows = None if _has(table, order) else rows_of(order)
        if rows is not None and not _has(table, order):  # a commit looks once more
            add = table.write(rows)
            table.commit(transaction(order.app_id, order.end), add, userMetadata=order.note)
        self.after("append")

    def fence(self, table_url: str, app_id: str) -> None:
        self._called("fence")
        self.tables[table_url].commit(transaction(app_id, FENCE_VERSION))
        self.after("fence")

    def _called(self, name: str) -> None:
        self.calls.append(name)
        self.before(name)


def _has(table: HandTable, order: CopyOrder) -> bool:
    version = table.transactions.get(order.app_id, {"version": -1})["version"]
    return bool(version >= order.end)


def transaction(app_id: str, version: int) -> dict[str, object]:
    return {"txn": {"appId": app_id, "version": version, "lastUpdated": 1}}


def rows_of(order: CopyOrder) -> pa.Table:
    """The rows to copy, as Spark reads them from the log."""
    with Cluster(order.metadata_uri) as cluster:
        log = cluster.log(order.log_name).value
        schema = pa.schema([*PLACE_COLUMNS, *arrow_schema.decode(log.schema)])
        offsets = OffsetRange(order.begin, order.end)
        tasks = plan_log(cluster, log, offsets, order.password, None)
        reader = SliceReader(schema, order.password)
        batches = [batch for task in tasks for batch in reader.read(task)]
    return pa.Table.from_batches(batches, schema)
