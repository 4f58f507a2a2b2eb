"""The verbs that give places of ledgers to other bookies, as Python calls."""

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from bkspark.admin import lease
from bkspark.admin.balancing import run as balancing
from bkspark.admin.draining import run as decommissioning
from bkspark.admin.maintenance import Progress, Report, Tell
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.protocol.upkeep.balancing import THRESHOLD
from bkspark.verbs.running import rate_of, runner_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def decommission(
    metadata_uri: str = "",
    *,
    bookies: Collection[str],
    force: bool = False,
    dry_run: bool = False,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    max_bytes_per_second: float | None = None,
    spark: "SparkSession | None" = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Empty bookies and remove them from the cluster, for ever; beside all that goes on.

    Args:
        bookies: their ids; one that was removed before is left alone.
        force: removes them though ledgers stand in the way, where others have all of these.
        The rest is that of all verbs: ``bkspark.verbs``.

    Raises:
        InvalidRequestError: no bookie is named, or one that there never was.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
    wanted = decommissioning.Wanted(
        bookies,
        Password(file=password_file, env=password_env, literal=password),
        rate_of(max_bytes_per_second),
        force,
    )
    with Cluster(arguments.metadata_uri(metadata_uri)) as cluster:
        return decommissioning.decommission(
            cluster,
            wanted,
            dry_run=dry_run,
            run=runner_of(spark, "decommission"),
            tell=tell,
            progress=progress,
        )


def rebalance(
    metadata_uri: str = "",
    *,
    threshold: float = THRESHOLD,
    dry_run: bool = False,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    max_bytes_per_second: float | None = None,
    no_lease: bool = False,
    spark: "SparkSession | None" = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Move copies of closed ledgers from bookies that have more than others to those with less.

    Args:
        threshold: how far a bookie may be from the mean, as a fraction of it.
        password, password_file, password_env: of ledgers that have one; others stay where they are.
        The rest is that of all verbs: ``bkspark.verbs``.

    Raises:
        InvalidRequestError: a number is out of range.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
    arguments.require_number(
        "threshold", threshold, hint="give a fraction of the mean, for example 0.1"
    )
    wanted = balancing.Wanted(
        threshold,
        Password(file=password_file, env=password_env, literal=password),
        rate_of(max_bytes_per_second),
    )
    with Cluster(arguments.metadata_uri(metadata_uri)) as cluster:
        work = partial(
            balancing.rebalance,
            cluster,
            wanted,
            dry_run=dry_run,
            run=runner_of(spark, "rebalance"),
            tell=tell,
            progress=progress,
        )
        is_wanted = not (no_lease or dry_run)
        return lease.alone(cluster, balancing.VERB, work, is_wanted=is_wanted, tell=tell)
