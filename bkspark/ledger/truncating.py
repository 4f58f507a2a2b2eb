"""Truncates the beginning of a ledger that continues in later terms.

One compare-and-set in the metadata, beside the running writer, truncates the ledger. A collection
frees the data on the bookies (``admin.collecting``), but only whole journals.
"""

from functools import partial

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Versioned
from bkspark.errors import NoSuchLedgerError
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.truncating import without_front


def truncate_ledger(
    cluster: Cluster,
    ledger_id: int,
    before_entry: int,
    seen: Versioned[LedgerMetadata] | None = None,
) -> LedgerMetadata:
    """Truncate fragments that end before ``before_entry``.

    The ledger may still begin before ``before_entry``: only whole fragments go, and the last
    fragment with entries stays. Without a fragment to drop, no record is stored.

    Args:
        seen: the ledger, if it was read just now.

    Returns:
        The ledger's metadata afterwards.

    Raises:
        NoSuchLedgerError: there is no such ledger.
        InvalidRequestError: the ledger does not continue in later terms.
    """
    found = seen or cluster.ledger(ledger_id)
    if without_front(found.value, before_entry) == found.value:
        return found.value
    return cluster.ledgers.update(
        str(ledger_id), partial(_truncated, ledger_id, before_entry), seen=found
    ).value


def _truncated(ledger_id: int, before_entry: int, ledger: LedgerMetadata | None) -> LedgerMetadata:
    if ledger is None:
        raise NoSuchLedgerError(f"there is no ledger {ledger_id}")
    return without_front(ledger, before_entry)
