"""Find ledgers listed by logs but without a metadata record."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from bkspark.cluster.cluster import Cluster
from bkspark.log.reading.data_loss import was_set_aside
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.quantities import plural

_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Gone:
    """Ledgers that a log lists, and that have no metadata record.

    Attributes:
        reasons: reasons and next steps: of ledgers set aside by an operator, and of others.
    """

    log: str
    ledger_ids: list[int]
    reasons: list[tuple[str, str]]


def gone_from_lists(
    cluster: Cluster, log_names: Collection[str], known: Collection[int]
) -> Iterator[Gone]:
    """Yield the logs listing ledgers without a record, or with a tombstone only.

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
            yield Gone(name, gone, list(_reasons(cluster, name, gone)))


def _reasons(cluster: Cluster, name: str, gone: Collection[int]) -> Iterator[tuple[str, str]]:
    aside = [ledger_id for ledger_id in gone if was_set_aside(cluster, ledger_id)]
    missing = [ledger_id for ledger_id in gone if ledger_id not in aside]
    if aside:
        yield (
            f"the metadata records of these ledgers were set aside, so their rows are lost: "
            f"{_shown(aside)}",
            f"`bkspark log show {name}` names the offsets; give up these and all "
            f"before them: `bkspark log truncate {name} --before OFFSET`",
        )
    if missing:
        yield (
            f"{plural(len(missing), 'ledger')} on its list cannot be read, because of missing "
            f"metadata records: {_shown(missing)}",
            "bring the metadata store back as it was",
        )


def _shown(ids: Sequence[int]) -> str:
    more = " …" if len(ids) > _SHOWN_MAX else ""
    return ", ".join(map(str, ids[:_SHOWN_MAX])) + more


def _is_gone(cluster: Cluster, ledger_id: int) -> bool:
    seen = cluster.ledgers.get(str(ledger_id))
    return seen is None or seen.value.state is LedgerState.DELETING


def _listed(cluster: Cluster, log_name: str) -> tuple[int, ...]:
    seen = cluster.logs.get(log_name)
    return () if seen is None else seen.value.listed_ids
