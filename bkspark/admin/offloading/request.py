"""One call of ``offload``: it copies, moves the table, ends, or accepts what is in the table."""

from collections.abc import Callable, Sequence

from bkspark.admin.maintenance import Execution, Report
from bkspark.admin.offloading import ending, moving
from bkspark.admin.offloading.copier import Copier
from bkspark.admin.offloading.ending import Ending
from bkspark.admin.offloading.offload import OffloadRequest, offload, require_possible
from bkspark.cluster.cluster import Cluster


def carry_out(
    cluster: Cluster,
    log_name: str,
    wanted: OffloadRequest,
    end: Ending,
    copier_of: Callable[[Sequence[str]], Copier],
    how: Execution,
) -> Report:
    """Do what ``end`` says, and then copy if it says so; or only move the table.

    Args:
        copier_of: makes what writes tables at some URLs; not called for a dry run.

    Raises:
        As ``offload``, ``moving.move``, ``ending.stop`` and ``ending.accept_changes``.
    """
    if end is Ending.NONE and moving.is_move(cluster, log_name, wanted):
        return moving.move(cluster, log_name, wanted, dry_run=how.dry_run)
    if end is Ending.ACCEPT:
        return ending.accept_changes(cluster, log_name, dry_run=how.dry_run)
    if how.dry_run:
        return offload(cluster, log_name, wanted, None, how)
    log = cluster.log(log_name).value
    tier = log.tier
    if end is not Ending.STOP:  # before Spark starts, and before a tier is ended
        require_possible(log, wanted, tier if end is Ending.NONE else None)
    own = "" if tier is None else tier.table_url
    copier = copier_of([url for url in (own, wanted.table) if url])
    if end is not Ending.NONE:
        stopped = ending.stop(cluster, log_name, copier, may_keep=end is Ending.STOP)
        if end is Ending.STOP:
            return stopped
    return offload(cluster, log_name, wanted, copier, how)
