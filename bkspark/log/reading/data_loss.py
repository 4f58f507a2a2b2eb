"""Explain why a ledger that a reader planned to read is gone.

A reader plans with one version of the log's record, and reads later, maybe in another process. The
log may drop ledgers in between. Then the record is read again: only the record distinguishes a
dropped ledger from lost metadata. Lost metadata remains the original error.
"""

from bkspark.cluster.cluster import Cluster
from bkspark.errors import NoSuchEntryError
from bkspark.protocol.log.data_loss import LogGeneration, data_loss


def explain_data_loss(
    cluster: Cluster, wanted: LogGeneration | None, begin: int, end: int, ledger_id: int
) -> NoSuchEntryError | None:
    """Return the error for a reader of the offsets ``[begin, end)`` of the missing ``ledger_id``.

    None if the log has not dropped the offsets, or if no log is read (``wanted`` is None).
    """
    if wanted is None:
        return None
    seen = cluster.logs.get(wanted.log_name)
    return None if seen is None else data_loss(wanted, seen.value, begin, end, ledger_id)
