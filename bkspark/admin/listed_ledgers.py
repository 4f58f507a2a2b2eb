"""Find ledgers listed by logs but without a metadata record."""

from collections.abc import Collection, Iterator

from bkspark.cluster.cluster import Cluster
from bkspark.protocol.ledger.metadata import LedgerState


def gone_from_lists(
    cluster: Cluster, log_names: Collection[str], known: Collection[int]
) -> Iterator[tuple[str, list[int]]]:
    """Yield (log, ids) of logs listing ledgers without a record, or with a tombstone only.

    Args:
        known: ids of ledgers seen before. Records of other ledgers, and the lists naming them, are
            read once more, since a log may have dropped them meanwhile.
    """
    for name in log_names:
        unknown = [ledger_id for ledger_id in _listed(cluster, name) if ledger_id not in known]
        gone = [ledger_id for ledger_id in unknown if _is_gone(cluster, ledger_id)]
        if gone:  # unless the log has dropped them meanwhile
            gone = [ledger_id for ledger_id in _listed(cluster, name) if ledger_id in gone]
        if gone:
            yield name, gone


def _is_gone(cluster: Cluster, ledger_id: int) -> bool:
    seen = cluster.ledgers.get(str(ledger_id))
    return seen is None or seen.value.state is LedgerState.DELETING


def _listed(cluster: Cluster, log_name: str) -> tuple[int, ...]:
    seen = cluster.logs.get(log_name)
    return () if seen is None else seen.value.listed_ids
