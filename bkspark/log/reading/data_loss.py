"""Explain why a ledger that a reader planned to read is gone.

A reader plans with one version of the log's record, and reads later, maybe in another process. The
log may drop ledgers in between. Then the record is read again: only the record distinguishes a
dropped ledger from lost metadata. Lost metadata remains the original error, unless an operator set
the ledger's record aside.
"""

from bkspark.cluster.cluster import Cluster
from bkspark.errors import NoSuchEntryError
from bkspark.format import layout
from bkspark.protocol.log.data_loss import LogGeneration, data_loss, lost


def explain_data_loss(
    cluster: Cluster, wanted: LogGeneration | None, begin: int, end: int, ledger_id: int
) -> NoSuchEntryError | None:
    """Return the error for a reader of the offsets ``[begin, end)`` of the missing ``ledger_id``.

    None if the log has not dropped the offsets and no operator set aside the ledger's record, or if
    no log is read (``wanted`` is None).
    """
    if wanted is None:
        return None
    seen = cluster.logs.get(wanted.log_name)
    if seen is None:
        return None
    gone = data_loss(wanted, seen.value, begin, end, ledger_id)
    if gone is not None or not was_set_aside(cluster, ledger_id):
        return gone
    places = [one for one in seen.value.ledgers_in(begin, end) if one.ledger_id == ledger_id]
    return lost(wanted.log_name, begin, end, places[0]) if places else None


def was_set_aside(cluster: Cluster, ledger_id: int) -> bool:
    """Whether an operator set aside the record of the ledger, which is absent now."""
    key = layout.ledger_key(ledger_id)
    return bool(cluster.store.list(f"{layout.ASIDE_PREFIX}/{key}"))
