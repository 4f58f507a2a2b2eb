"""The verbs that are about one log, as Python calls."""

from functools import partial
from typing import TYPE_CHECKING

from bkspark.admin import retaining
from bkspark.admin.compacting import run as compacting
from bkspark.admin.maintenance import Progress, Report
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError
from bkspark.format import layout
from bkspark.protocol.log.compaction import TARGET_BYTES
from bkspark.verbs.running import rate_of, runner_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compact(
    metadata_uri: str = "",
    *,
    log: str,
    target_bytes: int = TARGET_BYTES,
    dry_run: bool = False,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    max_bytes_per_second: float | None = None,
    spark: "SparkSession | None" = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Make large ledgers of a log's small ones; offsets, and what is at each, stay as they are.

    Args:
        log: its name.
        target_bytes: payload of a ledger that is large enough; those of up to half are small.
        dry_run: only plans: what would be rewritten, and how much is written for it.
        password, password_file, password_env: of the log, if it has one.
        The rest is that of all verbs: ``bkspark.verbs``.

    Raises:
        InvalidRequestError: a number is out of range.
        NoSuchLedgerError: there is no such log.
        UnauthorizedError: the log takes a password, which is missing or wrong.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer; run it again.
    """
    wanted = compacting.Wanted(
        arguments.whole_number("target_bytes", target_bytes, least=1),
        Password(file=password_file, env=password_env, literal=password),
        rate_of(max_bytes_per_second),
    )
    with Cluster(arguments.metadata_uri(metadata_uri)) as cluster:
        return compacting.compact(
            cluster,
            layout.log_name(log),
            wanted,
            dry_run=dry_run,
            compact_all=_side_by_side(spark),
            progress=progress,
        )


def retain(
    metadata_uri: str = "",
    *,
    log: str,
    max_bytes: int | None = None,
    max_seconds: float | None = None,
    forever: bool = False,
    ignore_cursors: bool = False,
    dry_run: bool = False,
) -> Report:
    """Delete the oldest entries of a log that its settings do not keep.

    Args:
        log: its name.
        max_bytes, max_seconds: settings from now on, as ``LogHandle.keep`` has them.
        forever: keeps everything from now on.
        ignore_cursors: deletes also what a cursor has yet to read.
        dry_run: only plans: which entries would go.

    Raises:
        InvalidRequestError: a limit is no number, or contradicts another.
        NoSuchLedgerError: there is no such log.
        OutcomeUnknownError: the metadata store gave no sure answer; run it again.
    """
    wanted = retaining.Wanted(
        layout.log_name(log), max_bytes, max_seconds, forever, not ignore_cursors
    )
    if forever and wanted.is_limited:
        raise InvalidRequestError(
            "forever contradicts max_bytes and max_seconds", hint="leave one of them out"
        )
    with Cluster(arguments.metadata_uri(metadata_uri)) as cluster:
        return retaining.retain(cluster, wanted, dry_run=dry_run)


def _side_by_side(spark: "SparkSession | None") -> compacting.SideBySide | None:
    if spark is None:
        return None
    from bkspark.spark.actions import compact_runs

    runner_of(spark, "compact")  # refuses a session whose driver is elsewhere
    return partial(compact_runs, spark.sparkContext)
