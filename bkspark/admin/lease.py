"""Run a maintenance verb once at a time, to avoid duplicate work.

Two concurrent runs of a verb do no harm, but the second run repeats the work of the first. So a run
over everything takes the verb's lease (``cluster.lease``) and renews it while working. A run that
cannot get a lease record stored continues without a lease.

Verbs do not exclude each other. A run of named logs or ledgers takes and needs no lease: the
operator wants the result now. A verb that always works on one log has a lease for each log.
"""

import logging
from collections.abc import Callable

from bkspark.admin.maintenance import Left, Report, Tell
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.lease import Keeping, Leases
from bkspark.errors import BookKeeperError
from bkspark.format.upkeep_records import Lease
from bkspark.quantities import timestamp

logger = logging.getLogger(__name__)


def alone(
    cluster: Cluster,
    verb: str,
    work: Callable[[], Report],
    *,
    of_log: str = "",
    is_wanted: bool = True,
    tell: Tell | None = None,
) -> Report:
    """Run ``work`` under the verb's lease; report a running holder instead.

    Args:
        of_log: the log whose lease is taken, for a verb that works on one log.
        is_wanted: whether to take a lease.
        tell: receives a line before a wait for another run's lease, or if no lease can be had.
    """
    if not is_wanted:
        return work()
    claim = Leases(cluster, f"{verb}.{of_log}" if of_log else verb)
    try:
        other = claim.take(tell)
    except BookKeeperError as error:
        logger.warning("%s runs without a lease: %s", verb, error.args[0])
        if tell is not None:
            tell(f"{verb}: no lease could be taken, so another run may be active")
        return work()
    if other is not None:
        return _busy(verb, other)
    keeping = Keeping(claim, lost=lambda: None)
    try:
        return work()
    finally:
        keeping.end()


def _busy(verb: str, other: Lease) -> Report:
    holder, since = other.holder, timestamp(other.began_ms)
    when = "an unknown time" if since is None else f"{since:%Y-%m-%d %H:%M:%S}Z"
    reason = f"another run is active on {holder.host}, process {holder.pid}, since {when}"
    logger.info("%s: %s", other.verb, reason)
    hint = "wait until that run has ended, or give --no-lease to run beside it"
    return Report(verb, {}, left=[Left(verb, reason, hint)], summary="nothing was done")
