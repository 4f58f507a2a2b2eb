"""The maintenance verbs as Python calls: the same options and the same report as on a shell."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from bkspark.admin.auditing import run as auditing
from bkspark.admin.maintenance import Progress, Report, Tell
from bkspark.admin.survey import Survey
from bkspark.cluster import arguments
from bkspark.ledger.recovery.running import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def audit(
    metadata_uri: str = "",
    *,
    logs: Collection[str] = (),
    ledgers: Collection[int] = (),
    dry_run: bool = False,
    spark: "SparkSession | None" = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Which copies are missing, and which ledgers wait for recovery and for what.

    Reads records and looks at files, and no rows: what is in them is not checked.

    Args:
        logs, ledgers: looks at these only.
        dry_run: only plans.
        spark: looks at bookies by tasks of this session, not by threads of this process.
        tell: told a line about bookies that are waited for.
        progress: told how many of how many ledgers were looked at.

    Raises:
        NoSuchLedgerError: there is no such log or ledger.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
    with Survey(arguments.metadata_uri(metadata_uri)) as cluster:
        return auditing.audit(
            cluster,
            logs=logs,
            ledgers=[arguments.whole_number("a ledger id", number) for number in ledgers],
            dry_run=dry_run,
            run=_runner(spark, "audit"),
            tell=tell,
            progress=progress,
        )


def _runner(spark: "SparkSession | None", verb: str) -> Runner | None:
    if spark is None:
        return None
    # Imported here: who runs without a session need not have Spark.
    from bkspark.spark.actions import SparkRunner
    from bkspark.spark.connect import require_own_driver

    instead = f"use `bkspark {verb}` where the bookies are mounted, or spark-submit jobs/{verb}.py"
    require_own_driver(spark, f"an {verb}" if verb[0] in "aeiou" else f"a {verb}", instead)
    return SparkRunner(spark.sparkContext)
