"""The data source ``format("bookkeeper")``: makes the readers and writers; no other logic."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from bkspark.cluster import arguments
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.quantities import shown
from bkspark.spark import options as options_module
from bkspark.spark.option_table import Use
from bkspark.spark.options import Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit  # Spark 4.1 has none

    from bkspark.spark.tiered import TablePart


# --- refused -------------------------------------------------------------------------------------
# A stream read that is refused at its first use.
#
# Spark 4.2 makes the reader in a separate process and always stops the reader at the end. If the
# constructor fails, the stop fails too, and users see only the error of the stop. So the refusal is
# raised at Spark's first call.


class RefusedStreamReader(DataSourceStreamReader):
    """Raises ``error`` in every method."""

    def __init__(self, error: BookKeeperError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:
        self._refuse()

    def getDefaultReadLimit(self) -> "ReadLimit":
        self._refuse()

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: "ReadLimit | None" = None
    ) -> dict[str, Any]:
        """Refuse; Spark 4.1 passes no arguments."""
        self._refuse(start, limit)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        self._refuse(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self._refuse(partition)

    def _refuse(self, *asked: object) -> NoReturn:
        del asked
        raise self._error


# --- source --------------------------------------------------------------------------------------


class BookKeeperDataSource(DataSource):
    """Logs and ledgers as DataFrames. Spark creates and pickles the instances, not users."""

    defaults: ClassVar[Mapping[str, str]] = {}
    """Options that a session sets for all reads and writes, see ``register``."""

    @classmethod
    def name(cls) -> str:
        return "bookkeeper"

    def schema(self) -> StructType:
        from bkspark.spark.reader import read_schema

        return read_schema(self._parsed())

    def reader(self, schema: StructType) -> DataSourceReader:
        from bkspark.spark.reader import BookKeeperReader

        return BookKeeperReader(self._parsed(Use.BATCH_READ), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from bkspark.spark.writer import BookKeeperWriter

        return BookKeeperWriter(self._parsed(Use.BATCH_WRITE), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from bkspark.spark.writer import BookKeeperStreamWriter

        return BookKeeperStreamWriter(self._parsed(Use.STREAM_WRITE), schema, overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        try:
            options = self._parsed(Use.STREAM_READ)
            _require_stream_reads()
            from bkspark.spark.stream_reader import BookKeeperStreamReader

            return BookKeeperStreamReader(options, schema)
        except BookKeeperError as error:
            return RefusedStreamReader(error)

    def _parsed(self, use: Use | None = None) -> Options:
        return options_module.parse(self.options, self.defaults, use)


def _require_stream_reads() -> None:
    """Check that this Spark passes a stream source the start and the size limit of a micro-batch.

    Raises:
        InvalidRequestError: Spark is older than 4.2.
    """
    if find_spec("pyspark.sql.streaming.datasource") is None:
        raise InvalidRequestError(
            f"reading a log as a stream needs Spark 4.2, and this is {pyspark.__version__}",
            hint="use Spark 4.2, or read ranges in batches with startingOffsets",
        )


# --- registration --------------------------------------------------------------------------------
# The registration of ``format("bookkeeper")`` in a Spark session.


CONF_PREFIX = "spark.bookkeeper."

_REGISTERED: "WeakKeyDictionary[SparkSession, Mapping[str, str]]" = WeakKeyDictionary()
"""The defaults of each session, for what is planned on the driver."""


def register(spark: "SparkSession", **defaults: object) -> None:
    """Register the data source for one session, with defaults for its options.

    A session needs this if the package reached the cluster by ``--py-files``. Spark finds an
    installed package by itself. Precedence: an option of the read or write, then ``defaults``, then
    the session's ``spark.bookkeeper.*`` settings, then the environment.

    Raises:
        InvalidRequestError: a default is a literal password.
    """

    conf = {
        key.removeprefix(CONF_PREFIX): value
        for key, value in spark.conf.getAll.items()
        if key.startswith(CONF_PREFIX)
    }
    known = {**conf, **{key: str(value) for key, value in defaults.items()}}
    if any(key.lower() == "password" for key in known):
        raise InvalidRequestError(
            "Spark's event log would show a password in the session's settings",
            hint="use passwordFile or passwordEnv",
        )
    made = type("BookKeeperDataSource", (BookKeeperDataSource,), {"defaults": known})
    with _places_of_files(spark):
        spark.dataSource.register(made)
    _REGISTERED[spark] = known


def read_log(
    spark: "SparkSession", name: str, columns: Sequence[str] | None, options: Mapping[str, object]
) -> "DataFrame":
    """Return the log as a DataFrame (see ``bkspark.read``)."""
    wanted = None if columns is None else _listed(columns)
    given = {
        option: json.dumps(value) if isinstance(value, Mapping) else str(value)
        for option, value in {**options, "columns": wanted}.items()
        if value is not None
    }
    frame = spark.read.format("bookkeeper").options(**given).load(name)
    part = _part_of_table(spark, name, given, frame)
    if part is None:
        return frame
    begin, end = part.rest.begin, part.rest.end
    if begin == end:
        return part.rows
    rest = {**_without_range(given), "startingOffsets": str(begin), "endingOffsets": str(end)}
    return part.rows.unionAll(spark.read.format("bookkeeper").options(**rest).load(name))


def _without_range(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options that do not say which offsets to read."""
    return {key: value for key, value in given.items() if not key.lower().startswith(_RANGE)}


_RANGE = ("starting", "ending", "versionasof", "timestampasof")
"""The beginnings of the options that say which offsets to read."""


def _part_of_table(
    spark: "SparkSession", name: str, given: Mapping[str, str], frame: "DataFrame"
) -> "TablePart | None":
    """Return the part of a log read that the log's table gives natively; None without any."""
    from bkspark.spark.tiered import table_part

    defaults = _REGISTERED.get(spark, {})
    try:
        options = options_module.parse({**given, "path": name}, defaults, Use.BATCH_READ)
    except InvalidRequestError:
        return None  # on this machine; the data source may know more, and names each problem
    return table_part(spark, options, frame.schema)


def _listed(columns: Sequence[str]) -> str:
    """Return the names of ``columns`` as the option ``columns`` takes them.

    Raises:
        InvalidRequestError: not a list of names, or an empty one.
    """
    names = arguments.several("columns", columns)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidRequestError(
            f"columns must be names, not {shown([*names])}",
            hint="name columns of the log, or leave columns out to read all",
        )
    return ", ".join("`" + name.replace("`", "``") + "`" for name in names)


@contextmanager
def _places_of_files(spark: "SparkSession") -> Iterator[None]:
    """Give Spark's workers the full paths of the driver's ``--py-files`` during the block.

    Spark gives its Python workers only the names of these files, and each worker looks in its own
    folder. The process that plans a stream read looks in a folder that Spark never makes. The
    planning process runs on the driver's host, where the full paths exist. On other hosts Python
    skips the missing paths.
    """
    context = getattr(spark, "sparkContext", None)  # a session of Spark Connect has none
    names: list[str] = [] if context is None else getattr(context, "_python_includes", None) or []
    places: list[str] = []
    if names:
        from pyspark import SparkFiles

        root = SparkFiles.getRootDirectory()
        places = [root, *(os.path.join(root, name) for name in names)]
    names.extend(places)
    try:
        yield
    finally:
        for place in places:
            names.remove(place)
