"""What runs the tasks of a command."""

from typing import TYPE_CHECKING

from bkspark.ledger.recovery.running import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def runner_of(spark: "SparkSession | None", verb: str) -> Runner | None:
    """Tasks of ``spark``; None for threads of this process.

    Raises:
        InvalidRequestError: the driver of ``spark`` is elsewhere.
    """
    if spark is None:
        return None
    # Imported here: a caller without a session need not have Spark.
    from bkspark.spark.actions import SparkRunner
    from bkspark.spark.connect import require_own_driver

    instead = f"use `bkspark {verb}` where the bookies are mounted, or spark-submit jobs/{verb}.py"
    require_own_driver(spark, f"an {verb}" if verb[0] in "aeiou" else f"a {verb}", instead)
    return SparkRunner(spark.sparkContext)
