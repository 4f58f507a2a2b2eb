"""What all verbs make of their options."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bkspark.cluster import arguments
from bkspark.ledger.recovery.running import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ids_of(ledgers: Iterable[int]) -> list[int]:
    return [arguments.whole_number("a ledger id", number) for number in ledgers]


def rate_of(bytes_per_second: float | None) -> float | None:
    if bytes_per_second is not None:
        arguments.require_number(
            "max_bytes_per_second", bytes_per_second, hint="give bytes, for example 50000000"
        )
    return bytes_per_second


def runner_of(spark: "SparkSession | None", verb: str) -> Runner | None:
    if spark is None:
        return None
    # Imported here: who runs without a session need not have Spark.
    from bkspark.spark.actions import SparkRunner
    from bkspark.spark.connect import require_own_driver

    instead = f"use `bkspark {verb}` where the bookies are mounted, or spark-submit jobs/{verb}.py"
    require_own_driver(spark, f"an {verb}" if verb[0] in "aeiou" else f"a {verb}", instead)
    return SparkRunner(spark.sparkContext)
