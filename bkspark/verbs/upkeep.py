"""The verbs that a schedule runs, as Python calls."""

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from bkspark.admin import lease
from bkspark.admin.auditing import run as auditing
from bkspark.admin.collecting import run as collecting
from bkspark.admin.maintenance import Progress, Report, Tell
from bkspark.admin.recovering import run as recovering
from bkspark.admin.recovering.plan import OPEN_GRACE_SECONDS
from bkspark.admin.repairing import run as repairing
from bkspark.admin.repairing.recovering_first import recover_and_repair
from bkspark.admin.scrubbing import run as scrubbing
from bkspark.admin.scrubbing.findings import VERB as SCRUB
from bkspark.admin.scrubbing.plan import Wanted
from bkspark.admin.survey import Survey
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.verbs.running import ids_of, rate_of, runner_of

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
        The rest is that of all verbs: ``bkspark.verbs``.

    Raises:
        NoSuchLedgerError: there is no such log or ledger.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
    with Survey(arguments.metadata_uri(metadata_uri)) as cluster:
        return auditing.audit(
            cluster,
            logs=logs,
            ledgers=ids_of(ledgers),
            dry_run=dry_run,
            run=runner_of(spark, "audit"),
            tell=tell,
            progress=progress,
        )


def collect(
    metadata_uri: str = "",
    *,
    abandoned_after: float = collecting.ABANDONED_AFTER_SECONDS,
    dry_run: bool = False,
    no_lease: bool = False,
    spark: "SparkSession | None" = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Free what deleted ledgers, truncations, overwrites and aborted writes have left on bookies.

    And killed drivers: ledgers that were made for a log, and that the log does not name.

    Args:
        abandoned_after: seconds before an unfinished write counts as abandoned; a longer write
            fails at commit.
        dry_run: only plans, which looks at what is there and changes nothing.
        The rest is that of all verbs: ``bkspark.verbs``.

    Raises:
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer; run it again.
    """
    seconds = arguments.duration(
        "abandoned_after", abandoned_after, hint="give seconds, 0 for none", may_be_0=True
    )
    with Cluster(arguments.metadata_uri(metadata_uri)) as cluster:
        work = partial(
            collecting.collect,
            cluster,
            abandoned_after=seconds,
            dry_run=dry_run,
            run=runner_of(spark, "collect"),
            tell=tell,
            progress=progress,
        )
        is_wanted = not (no_lease or dry_run)
        return lease.alone(cluster, collecting.VERB, work, is_wanted=is_wanted, tell=tell)


def repair(
    metadata_uri: str = "",
    *,
    logs: Collection[str] = (),
    ledgers: Collection[int] = (),
    dry_run: bool = False,
    open_grace: float = OPEN_GRACE_SECONDS,
    lost_after: float | None = None,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    max_bytes_per_second: float | None = None,
    no_lease: bool = False,
    spark: "SparkSession | None" = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Make the copies that are missing of closed ledgers, the worst first.

    A repair of all first recovers what has lost its writer, as ``recover`` does.

    Args:
        logs, ledgers: repairs these only, and recovers none.
        open_grace: as ``recover`` has it.
        lost_after: seconds after which a bookie that stays silent is replaced too, where all that
            it should have is found elsewhere; None for never.
        The rest is that of all verbs: ``bkspark.verbs``.

    Raises:
        NoSuchLedgerError: there is no such log or ledger.
        CorruptDataError: a bookie's record cannot be read.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
    grace = arguments.duration("open_grace", open_grace, hint="give seconds", may_be_0=True)
    password_ = Password(file=password_file, env=password_env, literal=password)
    rate = rate_of(max_bytes_per_second)
    wanted = repairing.Wanted(logs, ids_of(ledgers), password_, rate, lost_after)
    how: dict[str, Any] = {"dry_run": dry_run, "run": runner_of(spark, "repair"), "tell": tell}
    uri = arguments.metadata_uri(metadata_uri)
    with Cluster(uri) as cluster, Survey(uri) as survey:
        work = partial(repairing.repair, cluster, survey, wanted, progress=progress, **how)
        if not wanted.is_of_all:
            return work()
        gone = recovering.Wanted(open_grace=grace, password=wanted.password)
        first = _recovery(survey, gone, spark, **how)
        is_wanted = not (no_lease or dry_run)
        recover = partial(lease.alone, cluster, recovering.VERB, first, is_wanted=is_wanted)
        both = partial(recover_and_repair, recover, work)
        return lease.alone(cluster, repairing.VERB, both, is_wanted=is_wanted, tell=tell)


def scrub(
    metadata_uri: str = "",
    *,
    logs: Collection[str] = (),
    ledgers: Collection[int] = (),
    sample: float = 1.0,
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
    """Read every copy and check every byte; what is damaged is marked, and an audit counts it.

    Args:
        logs, ledgers: reads these only.
        sample: so much of the files is read, drawn by chance.
        password, password_file, password_env: of ledgers that have one. Without it what needs
            none is checked of them.
        The rest is that of all verbs: ``bkspark.verbs``.

    Raises:
        InvalidRequestError: a number is out of range, or the password cannot be read.
        NoSuchLedgerError: there is no such log or ledger.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
    password_ = Password(file=password_file, env=password_env, literal=password)
    wanted = Wanted(password_, sample, max_bytes_per_second)
    with Survey(arguments.metadata_uri(metadata_uri)) as cluster:
        work = partial(
            scrubbing.scrub,
            cluster,
            wanted,
            logs=logs,
            ledgers=ids_of(ledgers),
            dry_run=dry_run,
            run=runner_of(spark, "scrub"),
            tell=tell,
            progress=progress,
        )
        is_wanted = not (logs or ledgers or no_lease or dry_run)
        return lease.alone(cluster, SCRUB, work, is_wanted=is_wanted, tell=tell)


def recover(
    metadata_uri: str = "",
    *,
    ledgers: Collection[int] = (),
    open_grace: float = OPEN_GRACE_SECONDS,
    dry_run: bool = False,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    no_lease: bool = False,
    spark: "SparkSession | None" = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Close every ledger whose writer is gone, without losing an acknowledged entry.

    Args:
        ledgers: these, whoever may write to them; all whose writers are gone if none is named.
        open_grace: the writer of an open ledger is taken for gone once the ledger was seen
            unchanged for so many seconds, by this verb; the first time it is only remembered.
        dry_run: only plans, and remembers nothing.
        password, password_file, password_env: of ledgers that have one; those with others are left.
        The rest is that of all verbs: ``bkspark.verbs``.

    Raises:
        InvalidRequestError: a number is out of range.
        NoSuchLedgerError: there is no such ledger.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
    grace = arguments.duration("open_grace", open_grace, hint="give seconds", may_be_0=True)
    wanted = recovering.Wanted(
        ids_of(ledgers),
        grace,
        Password(file=password_file, env=password_env, literal=password),
    )
    run = runner_of(spark, "recover")
    with Survey(arguments.metadata_uri(metadata_uri)) as cluster:
        work = _recovery(
            cluster, wanted, spark, dry_run=dry_run, run=run, tell=tell, progress=progress
        )
        is_wanted = not (ledgers or no_lease or dry_run)
        return lease.alone(cluster, recovering.VERB, work, is_wanted=is_wanted, tell=tell)


def _recovery(
    cluster: Survey,
    wanted: recovering.Wanted,
    spark: "SparkSession | None",
    **options: Any,
) -> Callable[[], Report]:
    side_by_side: recovering.SideBySide | None = None
    if spark is not None:
        from bkspark.spark.actions import recover_ledgers

        side_by_side = partial(recover_ledgers, spark.sparkContext)
    return partial(recovering.recover_many, cluster, wanted, recover=side_by_side, **options)
