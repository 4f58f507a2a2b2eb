"""Gives a Spark session what it needs to write and read Delta tables."""

from typing import TypeVar

import pyspark
from pyspark.sql import SparkSession

from bkspark.errors import InvalidRequestError
from bkspark.spark.connect import require_own_driver
from bkspark.spark.hadoop_s3 import is_in_bucket, s3_packages, s3_settings

DELTA_VERSION = "4.4.0"
_SPARKS = ("4.1", "4.2")
"""The releases of Spark for which this release of Delta has jars.

On Spark 4.3 the jars for 4.2 start, and an append to a table fails (``NoSuchMethodError``).
"""
_SHIPPED = (
    "com.fasterxml.jackson*:*",
    "org.apache.hadoop:hadoop-client*",
    "org.apache.hadoop:hadoop-common",
    "org.apache.logging.log4j:*",
    "org.apache.parquet:*",
    "org.slf4j:*",
)
"""Spark has these already. A half copy of one in ``~/.m2`` would end the start of the session."""

_PACKAGES, _EXCLUDES = "spark.jars.packages", "spark.jars.excludes"
_EXTENSIONS, _CATALOG = "spark.sql.extensions", "spark.sql.catalog.spark_catalog"
_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG_CLASS = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

Builder = TypeVar("Builder", bound=SparkSession.Builder)


def configure_delta(builder: Builder, table: str = "") -> Builder:
    """Add the jars of Delta, its SQL extension and its catalog to the builder of a session.

    See ``bkspark.configure_delta``.
    """
    require_own_driver(
        builder, "configure_delta", "start the server of Spark Connect with the jars of Delta"
    )
    _require_no_other_session()
    given: dict[str, str] = getattr(builder, "_options", {})
    packages = [coordinate(pyspark.__version__)]
    if is_in_bucket(table):
        packages += s3_packages()
        for name, value in s3_settings(table).items():
            builder.config(name, given.get(name, value))
    builder.config(_PACKAGES, _joined(given.get(_PACKAGES), *packages))
    builder.config(_EXCLUDES, _joined(given.get(_EXCLUDES), *_SHIPPED))
    builder.config(_EXTENSIONS, _joined(given.get(_EXTENSIONS), _EXTENSION))
    builder.config(_CATALOG, _CATALOG_CLASS)
    return builder


def has_delta(spark: SparkSession) -> bool:
    """Whether the session writes and reads Delta tables."""
    given = str(spark.conf.get(_EXTENSIONS, "")).split(",")
    return _EXTENSION in map(str.strip, given)


def coordinate(spark_version: str) -> str:
    """The Maven coordinate of Delta for a version of Spark.

    Raises:
        InvalidRequestError: there is none.
    """
    release = ".".join(spark_version.split(".")[:2])
    if release not in _SPARKS:
        raise InvalidRequestError(
            f"Delta {DELTA_VERSION} has no jars for Spark {spark_version}",
            hint=f"use Spark {' or '.join(_SPARKS)}",
        )
    return f"io.delta:delta-spark_{release}_2.13:{DELTA_VERSION}"


def _require_no_other_session() -> None:
    """Refuse if a session without Delta runs: jars are added only when the driver starts."""
    running = SparkSession.getActiveSession()
    if running is not None and not has_delta(running):
        raise InvalidRequestError(
            "a session without Delta is running, and jars are added only at the start",
            hint="stop it (spark.stop()), restart the interpreter, and configure the builder first",
        )


def _joined(given: str | None, *added: str) -> str:
    values = [value.strip() for value in (given or "").split(",")]
    return ",".join(dict.fromkeys([*filter(None, values), *added]))
