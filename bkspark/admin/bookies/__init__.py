"""Operations on an existing bookie: close to new ledgers, label, move, initialise anew, remove.

Each call is a verb of ``bkspark bookie``. With ``dry_run`` the call makes the same checks and
refusals, returns its plan, and changes nothing.
"""

from collections.abc import Collection, Mapping

from bkspark.admin.bookies import moving, reinitialising, removing
from bkspark.admin.bookies.closing import set_labels, set_marks, set_read_only
from bkspark.admin.maintenance import Report
from bkspark.cluster.cluster import Cluster


def readonly(uri: str, bookie_id: str, *, off: bool = False, dry_run: bool = False) -> Report:
    """See ``closing.set_read_only``."""
    with Cluster(uri) as cluster:
        return set_read_only(cluster, bookie_id, off=off, dry_run=dry_run)


def marks(
    uri: str,
    bookie_id: str,
    *,
    high: float | None = None,
    low: float | None = None,
    dry_run: bool = False,
) -> Report:
    """See ``closing.set_marks``."""
    with Cluster(uri) as cluster:
        return set_marks(cluster, bookie_id, high=high, low=low, dry_run=dry_run)


def label(
    uri: str,
    bookie_id: str,
    *,
    labels: Mapping[str, str] | Collection[str] = (),
    remove: Collection[str] = (),
    dry_run: bool = False,
) -> Report:
    """See ``closing.set_labels``."""
    with Cluster(uri) as cluster:
        return set_labels(cluster, bookie_id, labels=labels, remove=remove, dry_run=dry_run)


def move(
    uri: str,
    bookie_id: str,
    url: str,
    *,
    accepts_risk: bool = False,
    dry_run: bool = False,
    store: str = "",
) -> Report:
    """See ``moving.move``."""
    how = {"accepts_risk": accepts_risk, "dry_run": dry_run}
    with Cluster(uri) as cluster:
        return moving.move(cluster, bookie_id, url, **how, store=store)


def reinit(
    uri: str,
    bookie_id: str,
    *,
    accepts_risk: bool = False,
    makes_folder: bool = False,
    dry_run: bool = False,
) -> Report:
    """See ``reinitialising.reinit``."""
    accepted = {"accepts_risk": accepts_risk, "makes_folder": makes_folder}
    with Cluster(uri) as cluster:
        return reinitialising.reinit(cluster, bookie_id, **accepted, dry_run=dry_run)


def remove(uri: str, bookie_id: str, *, force: bool = False, dry_run: bool = False) -> Report:
    """See ``removing.remove``."""
    with Cluster(uri) as cluster:
        return removing.remove(cluster, bookie_id, force=force, dry_run=dry_run)
