"""Commands to run on a schedule."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from bkspark.admin import lease
from bkspark.admin import recovering as recovering
from bkspark.admin.auditing import audit as auditing
from bkspark.admin.collecting import collection as collecting
from bkspark.admin.maintenance import Facts, Report
from bkspark.admin.recovering import OPEN_GRACE_SECONDS, recover_and_repair
from bkspark.admin.repairing import repair_command as repairing
from bkspark.admin.scrubbing import scrub as scrubbing
from bkspark.admin.scrubbing.scrub import ScrubRequest
from bkspark.admin.survey import Survey
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.quantities import plural
from bkspark.verbs import shared
from bkspark.verbs.declaring import CommandRun, Option, ShellOutput, Table, no_progress, verb
from bkspark.verbs.shared import Ledgers, Logs, OpenGrace, Rate, time_option
from bkspark.verbs.tables import COPIES, DAMAGE, FREED, RECOVERED, STEPS


@verb("ledgers", ShellOutput(Table("copies", COPIES)))
def audit(cluster: Survey, run: CommandRun, *, logs: Logs = (), ledgers: Ledgers = ()) -> Report:
    """Find missing copies, and ledgers waiting for recovery.

    The report names ledgers, bookies and reasons. An audit reads records and examines files, but
    reads no rows. Exit status 1 if problems are found.

    Raises:
        NoSuchLedgerError: no such log or ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    return auditing.audit(cluster, logs=logs, ledgers=ledgers, **run.how)


@verb("ledgers", ShellOutput(Table("ledgers", FREED)), has_lease=True)
def collect(
    cluster: Cluster,
    run: CommandRun,
    *,
    abandoned_after: Annotated[
        float,
        time_option(
            "Count an unfinished write as abandoned after this many seconds; on a shell also "
            "7d. A longer write fails at commit."
        ),
    ] = collecting.ABANDONED_AFTER_SECONDS,
) -> Report:
    """Free the space of deleted and unneeded data.

    Frees deleted ledgers and logs; ledgers dropped by retention, truncation and overwriting;
    aborted and killed writes; and, of closed ledgers, copies on former members and files no record
    names. The command may be killed, repeated, and run beside any other work. Files on an absent
    bookie are freed once the bookie is back. Exit status 1 if files remain.

    Raises:
        OutcomeUnknownError: the metadata store or Spark gave no definite answer; repeat the
            command.
    """
    return collecting.collect(cluster, abandoned_after=abandoned_after, **run.how)


def _recovered_first(plan: Facts) -> list[str]:
    count = plan.get("recover", {}).get("ledgers", 0)
    return [f"repair: {plural(count, 'ledger')} would be recovered first"] if count else []


@verb(
    "copies",
    ShellOutput(Table("repaired", STEPS), (Table("steps", STEPS),), _recovered_first),
    has_lease=True,
    can_watch=True,
)
def repair(
    cluster: Survey,
    run: CommandRun,
    *,
    logs: Logs = (),
    ledgers: Ledgers = (),
    open_grace: OpenGrace = OPEN_GRACE_SECONDS,
    lost_after: Annotated[
        float | None,
        time_option(
            "Also replace bookies silent for this many seconds; on a shell also 1h. Default: "
            "never.",
            shared.some_seconds,
        ),
    ] = None,
    max_bytes_per_second: Rate = None,
    password: Password,
) -> Report:
    """Make missing copies of closed ledgers, worst first.

    A copy goes to the same bookie if it answers, otherwise to another bookie, which takes its
    place. A repair of all ledgers first closes ledgers without a writer, as `recover --all` does.
    With --watch the command repeats until stopped, with one line a round. Exit status 1 if problems
    remain; the report gives the reasons.

    Raises:
        NoSuchLedgerError: no such log or ledger.
        CorruptDataError: the record of a lost bookie cannot be read.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    wanted = repairing.RepairRequest(logs, ledgers, password, max_bytes_per_second, lost_after)
    with Cluster(cluster.uri, cluster_id=cluster.cluster_id) as strict:
        work = partial(repairing.repair, strict, cluster, wanted, **run.how)
        if not wanted.is_of_all:
            return work()
        gone = recovering.RecoverRequest(open_grace=open_grace, password=password)
        first = _recovery(cluster, gone, replace(run, progress=no_progress))
        recover = partial(lease.alone, cluster, recovering.VERB, first, is_wanted=run.takes_lease)
        return recover_and_repair(recover, work)


@verb("ledgers", ShellOutput(Table("damage", DAMAGE)), has_lease=True)
def scrub(
    cluster: Survey,
    run: CommandRun,
    *,
    logs: Logs = (),
    ledgers: Ledgers = (),
    sample: Annotated[
        float, Option("Read this fraction of the files, chosen at random.", "FRACTION")
    ] = 1.0,
    max_bytes_per_second: Rate = None,
    password: Password,
) -> Report:
    """Read every copy and check every byte.

    The report names damaged copies, and the scrub marks them: an audit counts a marked copy as
    missing until a repair replaces the copy. Without a ledger's password only checks without a
    password are made. Exit status 1 if a copy is damaged or unreadable.

    Raises:
        InvalidRequestError: a number is out of range, or the password cannot be read.
        NoSuchLedgerError: no such log or ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    wanted = ScrubRequest(password, sample, max_bytes_per_second)
    return scrubbing.scrub(cluster, wanted, logs=logs, ledgers=ledgers, **run.how)


@verb("ledgers", ShellOutput(Table("recovered", RECOVERED)), all_of="ledgers", has_lease=True)
def recover(
    cluster: Survey,
    run: CommandRun,
    *,
    ledgers: Annotated[
        Collection[int],
        Option(
            "Recover these ledgers, even if a writer is active.", "[ID]...", "", check=shared.ids
        ),
    ] = (),
    open_grace: OpenGrace = OPEN_GRACE_SECONDS,
    password: Password,
) -> Report:
    """Close many ledgers in one run.

    No acknowledged entry is lost. --all selects ledgers waiting for a recovery, and open ledgers
    seen unchanged for --open-grace; sightings are stored from run to run. An undecidable ledger is
    left, with the reason, and delays no other ledger. Exit status 1 if ledgers are left. The ledger
    at the end of an unbounded log is OPEN again afterwards; --all leaves such a ledger alone if no
    entry was written since the last recovery.

    Raises:
        InvalidRequestError: a number is out of range.
        NoSuchLedgerError: no such ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    return _recovery(cluster, recovering.RecoverRequest(ledgers, open_grace, password), run)()


def _recovery(
    cluster: Survey, wanted: recovering.RecoverRequest, run: CommandRun
) -> Callable[[], Report]:
    how: dict[str, Any] = {**run.how, "recover": None}
    if run.spark is not None:
        from bkspark.spark.actions import recover_ledgers

        how["recover"] = partial(recover_ledgers, run.spark.sparkContext)
    return partial(recovering.recover_many, cluster, wanted, **how)
