"""Clusters with garbage in them, and what is left of a ledger."""

from bkspark import verbs
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.format import layout
from tests.integration.log_scenes import SILENT
from tests.integration.rig import Rig


def files_of(rig: Rig, ledger_id: int) -> list[str]:
    folder = f"{layout.ledger_folder(ledger_id)}/"
    return [name for who in rig.urls for name in rig.names(who) if name.startswith(folder)]


def ids_in_metadata(rig: Rig) -> list[int]:
    with Cluster(rig.uri) as cluster:
        return cluster.ledger_ids()


def gone(rig: Rig) -> set[int]:
    with Cluster(rig.uri) as cluster:
        return GoneLedgers(cluster.store, cluster.cluster_id).all()


def collected(rig: Rig) -> Report:
    report = verbs.collect(rig.uri, no_lease=True)
    assert report.left == []
    return report


def raw_ledger(rig: Rig, *, is_closed: bool = True) -> int:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(settings=SILENT)
        handle.append(b"a user's own")
        if is_closed:
            handle.close()
        else:
            handle.release()
        return handle.ledger_id


def deleted_ledger(rig: Rig) -> int:
    ledger_id = raw_ledger(rig)
    with BookKeeper(rig.uri) as keeper:
        keeper.delete_ledger(ledger_id)
    return ledger_id
