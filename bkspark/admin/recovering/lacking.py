"""Find tail ledgers of unbounded logs lacking copies that only a repair can make.

A living writer moves on to another ledger by itself. A dead writer's ledger stays OPEN, and only
closed ledgers are repaired or widened.
"""

from collections.abc import Collection

from bkspark.admin.auditing.audit_command import gaps_of
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.stepping_over import leave_out
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import LedgerMetadata


def lacking_copies(cluster: Cluster, ledgers: Collection[LedgerMetadata]) -> frozenset[int]:
    """Return ids of tail ledgers to be closed before a repair.

    Missing copies count only in fragments listed in ``ledgers``: the log may have dropped others.

    A copy on a silent bookie is not known to be missing and closes no ledger. A ledger created on
    too few bookies is not closed while too few bookies are available.
    """
    kept = {(x.ledger_id, f.first_entry_id) for x in ledgers for f in x.fragments}
    found = gaps_of(cluster, sorted({ledger_id for ledger_id, _ in kept}))
    certain = {
        gap.ledger_id
        for gap in found
        if not gap.is_unknown and (gap.ledger_id, gap.fragment_first_entry_id) in kept
    }
    small = {
        one.ledger_id
        for one in ledgers
        if sizes.is_short(one) and _has_bookies(cluster, sizes.wanted(one).ensemble_size)
    }
    return frozenset(certain | small)


def _has_bookies(cluster: Cluster, count: int) -> bool:
    found = cluster.probe(enough=count, needed=count, step_over=leave_out)
    lost = cluster.lost_members()
    return sum(one.may_join and one.member not in lost for one in found) >= count
