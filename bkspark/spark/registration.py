"""The registration of ``format("bookkeeper")`` in a Spark session."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bkspark.errors import InvalidRequestError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF_PREFIX = "spark.bookkeeper."


def register(spark: "SparkSession", **defaults: object) -> None:
    """Register the data source for one session, with defaults for its options.

    A session needs this if the package reached the cluster by ``--py-files``. Spark finds an
    installed package by itself. Precedence: an option of the read or write, then ``defaults``, then
    the session's ``spark.bookkeeper.*`` settings, then the environment.

    Raises:
        InvalidRequestError: a default is a literal password.
    """
    from bkspark.spark.source import BookKeeperDataSource

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
