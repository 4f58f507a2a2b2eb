"""The Spark half of an offload: writes a log's rows to a Delta table.

Rule. Timestamps are written as microseconds in the calendar of today. Other readers take Delta's
default form for other times beyond the years 1677 to 2262.

Files are compressed with zstd, unless the session says otherwise. With Spark's default, snappy,
they are larger for as much processor time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from bkspark.admin.offloading.copier import (
    FENCE_VERSION,
    PLACE_COLUMNS,
    CopyOrder,
)
from bkspark.errors import BookKeeperError, InvalidRequestError, OutcomeUnknownError
from bkspark.spark.delta import configure_delta, has_delta
from bkspark.spark.hadoop_s3 import for_spark, require_s3
from bkspark.spark.tiered import quoted
from bkspark.storage.address import shown_url
from bkspark.table.conversion import ArrayPlaces, Located, MapPlaces, Places, StructPlaces

_OF_TASKS = re.compile(r"^bkspark\.errors\.\w+: (.+)$", re.MULTILINE)
_REASON_LENGTH = 300
_CONF = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
_CODEC = "spark.sql.parquet.compression.codec"


def copier_of(spark: SparkSession | None, table_urls: Sequence[str]) -> "SparkCopier":
    """Return a copier with the session, or with a new one that can write the tables.

    Raises:
        InvalidRequestError: the session has no Delta, or no client of S3 for a table in a bucket.
    """
    if spark is None:
        builder = configure_delta(SparkSession.Builder().appName("bkspark offload"))
        for url in table_urls:
            configure_delta(builder, url)
        spark = builder.getOrCreate()
    require_delta(spark)
    for url in table_urls:
        require_s3(spark, url)
    return SparkCopier(spark)


def require_delta(spark: SparkSession) -> None:
    """Check that the session can write Delta tables.

    Raises:
        InvalidRequestError: it cannot.
    """
    if not has_delta(spark):
        raise InvalidRequestError(
            "this Spark session has no Delta",
            hint="make it with bkspark.configure_delta(SparkSession.builder).getOrCreate()",
        )


class SparkCopier:
    """Writes tables with Delta's own code: a ``Copier``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def create(self, order: CopyOrder, properties: dict[str, str]) -> None:
        with self._asking(order.table_url, "make"):
            ddl = _ddl(self._rows(order))
            self._spark.sql(
                f"CREATE TABLE IF NOT EXISTS {_named(order.table_url)} ({ddl}) USING delta "
                f"TBLPROPERTIES ({_texts(properties)})"
            )

    def claim(self, table_url: str, properties: dict[str, str]) -> None:
        with self._asking(table_url, "claim"):
            table = _named(table_url)
            self._spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({_texts(properties)})")

    def append(self, order: CopyOrder) -> None:
        rows = self._rows(order)
        with self._asking(order.table_url, "append to"):
            self._write(rows, order.table_url, order.app_id, order.end, order.note)

    def fence(self, table_url: str, app_id: str) -> None:
        with self._asking(table_url, "fence"):
            rows = self._spark.read.format("delta").load(for_spark(table_url)).limit(0)
            self._write(rows, table_url, app_id, FENCE_VERSION, "bkspark offload: fence")

    def _write(self, rows: DataFrame, url: str, app_id: str, version: int, note: str) -> None:
        codec = self._spark.conf.get(_CODEC, "zstd") or "zstd"
        with _settings(self._spark, {**_CONF, _CODEC: codec}):
            (
                rows.write.format("delta")
                .mode("append")
                .option("mergeSchema", "true")
                .option("txnAppId", app_id)
                .option("txnVersion", version)
                .option("userMetadata", note)
                .save(for_spark(url))
            )

    def _rows(self, order: CopyOrder) -> DataFrame:
        given = {
            "metadataServiceUri": order.metadata_uri,
            "includeMetadata": "true",
            "passwordFile": order.password.file,
            "passwordEnv": order.password.env,
            "password": order.password.literal,
        }
        if order.begin < order.end:
            given |= {"startingOffsets": str(order.begin), "endingOffsets": str(order.end)}
        options = {name: value for name, value in given.items() if value}
        rows = self._spark.read.format("bookkeeper").options(**options).load(order.log_name)
        own = [name for name in rows.columns if name not in PLACE_COLUMNS.names]
        names = [*PLACE_COLUMNS.names, *own]
        return rows.select(*(_as_in_table(rows, name, order.places.get(name)) for name in names))

    @contextmanager
    def _asking(self, url: str, what: str) -> Iterator[None]:
        try:
            yield
        except BookKeeperError:
            raise
        except (Py4JError, PySparkException) as error:
            raise OutcomeUnknownError(
                f"Spark could not {what} the table at {shown_url(url)}: {_reason(error)}",
                hint="run the command again; it goes on where this one ended",
            ) from error


def _reason(error: Exception) -> str:
    """Return what a task of ours, the first cause in Java, or Spark says, in this order."""
    text = str(error)
    own = _OF_TASKS.findall(text)
    if own:
        return str(own[-1])[:_REASON_LENGTH]
    if isinstance(error, Py4JJavaError):
        cause: Any = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.toString())
    return next((one for one in text.splitlines() if one.strip()), "")[:_REASON_LENGTH]


def _as_in_table(rows: DataFrame, name: str, place: Located | None) -> Column:
    """Return a column under the names that the table's owner gave it and its fields."""
    column = functions.col(quoted(name))
    if place is None:
        return column
    kind = rows.schema[name].dataType
    present = _renamed(kind, place.kind)
    return (column if present == kind else column.cast(present)).alias(place.name)


def _renamed(kind: DataType, place: Places) -> DataType:
    match kind, place:
        case StructType(), StructPlaces(known):
            fields = [(field, known.get(field.name)) for field in kind.fields]
            return StructType(
                [
                    field
                    if found is None
                    else StructField(
                        found.name, _renamed(field.dataType, found.kind), field.nullable
                    )
                    for field, found in fields
                ]
            )
        case ArrayType(), ArrayPlaces(element):
            return ArrayType(_renamed(kind.elementType, element), kind.containsNull)
        case MapType(), MapPlaces(key, value):
            key_type, value_type = _renamed(kind.keyType, key), _renamed(kind.valueType, value)
            return MapType(key_type, value_type, kind.valueContainsNull)
    return kind


def _ddl(rows: DataFrame) -> str:
    frame: Any = rows._jdf
    return str(frame.schema().toDDL())


def _named(url: str) -> str:
    return f"delta.`{for_spark(url).replace('`', '``')}`"


def _texts(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(key)} = {_text(value)}" for key, value in properties.items())


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@contextmanager
def _settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Set settings of the session for the block."""
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
