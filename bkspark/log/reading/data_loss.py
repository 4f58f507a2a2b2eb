"""Why a ledger is not there any more that a reader was on its way to.

A reader plans with one version of the log's record, and reads later, maybe in another process. In
between the log may drop ledgers. The record is looked at again then, and only it tells this from
a ledger whose metadata is lost, which stays the error it is.
"""

from bkspark.cluster.cluster import Cluster
from bkspark.errors import NoSuchEntryError
from bkspark.protocol.log.data_loss import LogGeneration, data_loss


def explain_data_loss(
    cluster: Cluster, wanted: LogGeneration | None, begin: int, end: int, ledger_id: int
) -> NoSuchEntryError | None:
    """What to tell a reader of the offsets ``[begin, end)``, all of ``ledger_id``, which is gone.

    None if the log has not dropped them, or if no log is read (``wanted`` is None).
    """
    if wanted is None:
        return None
    seen = cluster.logs.get(wanted.log_name)
    return None if seen is None else data_loss(wanted, seen.value, begin, end, ledger_id)
