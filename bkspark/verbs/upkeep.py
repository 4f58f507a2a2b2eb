"""The commands that a schedule runs."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from bkspark.admin import lease
from bkspark.admin.auditing import run as auditing
from bkspark.admin.collecting import run as collecting
from bkspark.admin.maintenance import Facts, Report
from bkspark.admin.recovering import run as recovering
from bkspark.admin.recovering.plan import OPEN_GRACE_SECONDS
from bkspark.admin.repairing import run as repairing
from bkspark.admin.repairing.recovering_first import recover_and_repair
from bkspark.admin.scrubbing import run as scrubbing
from bkspark.admin.scrubbing.plan import Wanted
from bkspark.admin.survey import Survey
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.quantities import plural
from bkspark.verbs import shared
from bkspark.verbs.declaring import Option, Run, Shown, Table, no_progress, verb
from bkspark.verbs.shared import Ledgers, Logs, OpenGrace, Rate, time_option
from bkspark.verbs.tables import COPIES, DAMAGE, FREED, RECOVERED, STEPS


@verb("ledgers", Shown(Table("copies", COPIES)))
def audit(cluster: Survey, run: Run, *, logs: Logs = (), ledgers: Ledgers = ()) -> Report:
    """Missing copies, and ledgers that wait for recovery.

    Says which, on which bookies, and why. Reads records and looks at files, and no rows. Exit
    status 1 if something is not well.

    Raises:
        NoSuchLedgerError: there is no such log or ledger.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
    return auditing.audit(cluster, logs=logs, ledgers=ledgers, **run.how)


@verb("ledgers", Shown(Table("ledgers", FREED)), has_lease=True)
def collect(
    cluster: Cluster,
    run: Run,
    *,
    abandoned_after: Annotated[
        float,
        time_option(
            "Time before an unfinished write counts as abandoned; a longer write fails at commit."
        ),
    ] = collecting.ABANDONED_AFTER_SECONDS,
) -> Report:
    """Free the space of what was deleted, and of what nobody wants.

    Of deleted ledgers and logs, of what retention, truncation and overwriting let go of, of
    writes that were aborted or killed, and of closed ledgers where they have no place any more, or
    no record names a file. Can be killed at any point and run again, beside anything
    else. A bookie that is away is owed it until it is back. Exit status 1 if something is left.

    Raises:
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer; run it again.
    """
    return collecting.collect(cluster, abandoned_after=abandoned_after, **run.how)


def _recovered_first(plan: Facts) -> list[str]:
    count = plan.get("recover", {}).get("ledgers", 0)
    return [f"repair: {plural(count, 'ledger')} would be recovered first"] if count else []


@verb(
    "copies",
    Shown(Table("repaired", STEPS), (Table("steps", STEPS),), _recovered_first),
    has_lease=True,
    can_watch=True,
)
def repair(
    cluster: Survey,
    run: Run,
    *,
    logs: Logs = (),
    ledgers: Ledgers = (),
    open_grace: OpenGrace = OPEN_GRACE_SECONDS,
    lost_after: Annotated[
        float | None,
        time_option("Replace also bookies that are silent for so long.", shared.some_seconds),
    ] = None,
    max_bytes_per_second: Rate = None,
    password: Password,
) -> Report:
    """Make missing copies of closed ledgers again, the worst first.

    On the same bookie where it answers, else on another one, which takes its place. A repair of
    all closes first what has lost its writer, as `recover --all` does. With --watch it goes on
    until it is stopped, one line a round. Exit status 1 if something is left; it says what and why.

    Raises:
        NoSuchLedgerError: there is no such log or ledger.
        CorruptDataError: a bookie's record cannot be read.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
    wanted = repairing.Wanted(logs, ledgers, password, max_bytes_per_second, lost_after)
    with Cluster(cluster.uri) as strict:
        work = partial(repairing.repair, strict, cluster, wanted, **run.how)
        if not wanted.is_of_all:
            return work()
        gone = recovering.Wanted(open_grace=open_grace, password=password)
        first = _recovery(cluster, gone, replace(run, progress=no_progress))
        recover = partial(lease.alone, cluster, recovering.VERB, first, is_wanted=run.takes_lease)
        return recover_and_repair(recover, work)


@verb("ledgers", Shown(Table("damage", DAMAGE)), has_lease=True)
def scrub(
    cluster: Survey,
    run: Run,
    *,
    logs: Logs = (),
    ledgers: Ledgers = (),
    sample: Annotated[float, Option("So much of the files, drawn by chance.", "FRACTION")] = 1.0,
    max_bytes_per_second: Rate = None,
    password: Password,
) -> Report:
    """Read every copy and check every byte.

    What is damaged is named and marked: an audit counts it as missing until it was made again.
    Without a ledger's password only what needs none is checked of it. Exit status 1 if something
    is damaged or could not be read.

    Raises:
        InvalidRequestError: a number is out of range, or the password cannot be read.
        NoSuchLedgerError: there is no such log or ledger.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
    wanted = Wanted(password, sample, max_bytes_per_second)
    return scrubbing.scrub(cluster, wanted, logs=logs, ledgers=ledgers, **run.how)


@verb("ledgers", Shown(Table("recovered", RECOVERED)), all_of="ledgers", has_lease=True)
def recover(
    cluster: Survey,
    run: Run,
    *,
    ledgers: Annotated[
        Collection[int], Option("These, whoever writes to them.", "[ID]...", "", check=shared.ids)
    ] = (),
    open_grace: OpenGrace = OPEN_GRACE_SECONDS,
    password: Password,
) -> Report:
    """Close many ledgers in one run.

    No acknowledged entry is lost. With --all those that wait for a recovery, and open ones that
    were seen unchanged for --open-grace; what is seen is remembered from run to run. What cannot
    be decided yet is left with the reason, and holds up no other. Exit status 1 if something is.
    The ledger that an unbounded log goes on in is OPEN again then; --all leaves it alone if
    nothing was written since it was the last time.

    Raises:
        InvalidRequestError: a number is out of range.
        NoSuchLedgerError: there is no such ledger.
        OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
    """
    return _recovery(cluster, recovering.Wanted(ledgers, open_grace, password), run)()


def _recovery(cluster: Survey, wanted: recovering.Wanted, run: Run) -> Callable[[], Report]:
    how: dict[str, Any] = {**run.how, "recover": None}
    if run.spark is not None:
        from bkspark.spark.actions import recover_ledgers

        how["recover"] = partial(recover_ledgers, run.spark.sparkContext)
    return partial(recovering.recover_many, cluster, wanted, **how)
