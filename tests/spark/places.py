"""A BookKeeper cluster in a folder, and what tests do with it through Spark."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import BookKeeperError
from bkspark.protocol.log.record import LogRecord
from bkspark.spark.source import BookKeeperDataSource

LOG = "events"


@dataclass(frozen=True)
class Place:
    """A cluster that nothing else uses, and a session to reach it with.

    Attributes:
        bookies: the directories of ``bookie-1``, ``bookie-2`` and so on.
    """

    spark: SparkSession
    uri: str
    bookies: list[Path]

    def write(
        self, rows: DataFrame, name: str = LOG, *, mode: str = "append", **options: object
    ) -> None:
        writer = rows.write.format("bookkeeper").option("metadataServiceUri", self.uri)
        writer.options(**_texts(options)).mode(mode).save(name)

    def read(
        self, name: str | None = LOG, *, schema: str | None = None, **options: object
    ) -> DataFrame:
        reader = self.spark.read.format("bookkeeper").option("metadataServiceUri", self.uri)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.options(**_texts(options)).load(name)

    def follow(
        self, name: str | None = LOG, *, schema: str | None = None, **options: object
    ) -> DataFrame:
        """The log as a stream."""
        reader = self.spark.readStream.format("bookkeeper").option("metadataServiceUri", self.uri)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.options(**_texts(options)).load(name)

    def plan_read(
        self, name: str | None = LOG, *, schema: str | None = None, **options: object
    ) -> None:
        """What Spark asks of the data source on the driver, asked here: much quicker."""
        source = self._source(name, options)
        columns = source.schema() if schema is None else StructType.fromDDL(schema)
        source.reader(columns).partitions()

    def plan_write(self, rows: DataFrame, name: str | None = LOG, **options: object) -> None:
        """As ``plan_read``; for writes that are refused."""
        self._source(name, options).writer(rows.schema, overwrite=False)

    def _source(self, name: str | None, options: dict[str, object]) -> BookKeeperDataSource:
        path = {} if name is None else {"path": name}
        return BookKeeperDataSource({"metadataServiceUri": self.uri, **path, **_texts(options)})

    def ids(self, name: str = LOG, **options: object) -> list[int]:
        """The column ``id`` in the order of the log."""
        rows = self.read(name, schema="id bigint, _offset bigint", **options).collect()
        return [row.id for row in sorted(rows, key=lambda row: row._offset)]

    def log(self, name: str = LOG) -> LogRecord:
        with Cluster(self.uri) as cluster:
            return cluster.log(name).value

    def has_log(self, name: str = LOG) -> bool:
        with Cluster(self.uri) as cluster:
            seen = cluster.logs.get(name)
            return seen is not None and not seen.value.is_tombstone

    def entry_logs(self, bookie: int) -> list[Path]:
        """The files with rows on the bookie with this index."""
        return sorted(self.bookies[bookie].glob("ledgers/*/*/entries/*.arrow"))


def make_place(
    spark: SparkSession, folder: Path, *, bookie_count: int = 3, bookies: list[Path] | None = None
) -> Place:
    """A new cluster below ``folder``, or with the given directories as bookies."""
    places = bookies or [folder / f"bookie-{number + 1}" for number in range(bookie_count)]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
    uri = f"file://{folder}/metadata"
    init_cluster(uri, [f"file://{place}" for place in places])
    return Place(spark, uri, places)


def refusal(error: type[BookKeeperError], action: Callable[[], Any]) -> str:
    """The message of the ``error`` with which ``action`` ends, in Spark or outside of it."""
    with pytest.raises((PySparkException, BookKeeperError)) as caught:
        action()
    text = str(caught.value)
    if isinstance(caught.value, BookKeeperError):
        assert type(caught.value) is error
        return text
    found = re.findall(r"bkspark\.errors\.(\w+): (.*)", text)
    assert found, text
    assert found[-1][0] == error.__name__, text
    return str(found[-1][1])


def on_row(trigger: int, action: Callable[[], object]) -> Callable[..., Iterator[pa.RecordBatch]]:
    """For ``mapInArrow``: passes rows with a column ``id`` on, and acts before row ``trigger``.

    The rows go one batch at a time, so that those in front of ``trigger`` have been given to the
    writer when ``action`` runs.
    """

    def passed_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if trigger in batch.column("id").to_pylist():
                action()
            yield batch

    return passed_on


def _texts(options: dict[str, object]) -> dict[str, str]:
    words = {True: "true", False: "false"}
    return {
        name: words[value] if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
