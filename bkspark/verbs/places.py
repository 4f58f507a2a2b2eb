"""Commands moving places of ledgers to other bookies."""

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any

from bkspark.admin import balancing as balancing
from bkspark.admin import draining as decommissioning
from bkspark.admin.maintenance import Facts, Left, Report
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.protocol.upkeep.balancing import THRESHOLD
from bkspark.quantities import plural
from bkspark.verbs.declaring import CommandRun, Option, ShellOutput, Table, verb
from bkspark.verbs.shared import Rate
from bkspark.verbs.tables import LEVELS, MOVED, STEPS

_SHOWN_MAX = 5


def _fraction(name: str, given: float) -> Any:
    hint = "give a fraction of the mean, for example 0.1"
    arguments.require_number(name, given, hint=hint)
    return given


@verb(
    "places",
    ShellOutput(Table("moved", MOVED), (Table("bookies", LEVELS), Table("steps", MOVED))),
    has_lease=True,
)
def rebalance(
    cluster: Cluster,
    run: CommandRun,
    *,
    threshold: Annotated[
        float,
        Option(
            "Allow bookies this distance from the mean, as a fraction of the mean.",
            "FRACTION",
            check=_fraction,
        ),
    ] = THRESHOLD,
    max_bytes_per_second: Rate = None,
    password: Password,
) -> Report:
    """Even out the data on the bookies.

    Useful after adding bookies. Copies of closed ledgers move, from the fullest bookie first, until
    no bookie is farther from the mean than the threshold, or no move helps. The measure is bytes of
    ledgers as reported by bookies, relative to disk size if all disk sizes are known. Exit status 1
    if problems remain.

    Raises:
        InvalidRequestError: a number is out of range.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    wanted = balancing.RebalanceRequest(threshold, password, max_bytes_per_second)
    return balancing.rebalance(cluster, wanted, **run.how)


def _in_the_way(plan: Facts) -> Iterator[str]:
    for left in plan["blocked"]:
        yield f"obstacle: {left['subject']}: {left['reason']} ({left['hint']})"


@verb(
    "places",
    ShellOutput(Table("moved", STEPS), (Table("steps", STEPS),), _in_the_way),
    group="bookie",
    destroys="bookies are removed for ever",
)
def decommission(
    cluster: Cluster,
    run: CommandRun,
    *,
    bookies: Annotated[Collection[str], Option("Empty and remove these bookies.", "ID...", "")],
    force: Annotated[
        bool, Option("Remove a bookie even if ledgers name it, if other bookies have all copies.")
    ] = False,
    max_bytes_per_second: Rate = None,
    password: Password,
) -> Report:
    """Empty bookies, and remove them from the cluster.

    Nothing new is placed on the bookies, and their copies of closed ledgers move to other bookies.
    A bookie no ledger names any more is removed, for ever. The report names obstacles, and a
    repeated command continues; `bkspark bookie readonly ID --off` cancels before the removal. Exit
    status 1 if obstacles remain.

    Raises:
        InvalidRequestError: no bookie is named, or a named bookie never existed.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """

    def work(*, force: bool, **how: Any) -> Report:
        wanted = decommissioning.DecommissionRequest(bookies, password, max_bytes_per_second, force)
        return decommissioning.decommission(cluster, wanted, **(run.how | how))

    if run.ask is None or run.dry_run:
        return work(force=force)
    plan = work(force=False, dry_run=True).plan
    names, places = ", ".join(plan["bookies"]), plural(plan["places"], "place")
    if names:
        run.ask(f"Move {places} of {names} to other bookies, and remove them for ever?")
    report = work(force=False)
    if not (report.left and force):
        return report
    run.ask(f"Remove {names} although this is left: {_named(report.left)}?")
    return work(force=True)


def _named(left: Sequence[Left]) -> str:
    more = f" and {len(left) - _SHOWN_MAX:,} more" if len(left) > _SHOWN_MAX else ""
    return ", ".join(item.subject for item in left[:_SHOWN_MAX]) + more
