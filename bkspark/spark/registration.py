"""Making ``format("bookkeeper")`` known to a Spark session."""

from typing import TYPE_CHECKING

from bkspark.errors import InvalidRequestError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF_PREFIX = "spark.bookkeeper."


def register(spark: "SparkSession", **defaults: object) -> None:
    """Register the data source for one session, with defaults for its options.

    Needed where the package reached the cluster by ``--py-files``; an installed package is found
    by Spark itself. Precedence: an option of the read or write, then ``defaults``, then the
    session's ``spark.bookkeeper.*`` settings, then the environment.

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
            "a literal password in the session's settings would be shown in its event log",
            hint="use passwordFile or passwordEnv",
        )
    made = type("BookKeeperDataSource", (BookKeeperDataSource,), {"defaults": known})
    spark.dataSource.register(made)
