"""Letting go of the beginning of a ledger that goes on in later terms.

The metadata say so, by one compare-and-set beside whoever writes; what lies on the bookies is freed
by a collection (``admin.collecting``), as far as whole journals can go.
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
    """Let go of fragments that end in front of ``before_entry``; the ledger as it is then.

    Its first entry may lie in front of that: a fragment goes as a whole, and the last one with
    entries stays. Nothing is stored where nothing goes.

    Args:
        seen: the ledger, if it was read just now.

    Raises:
        NoSuchLedgerError: there is no such ledger.
        InvalidRequestError: it does not go on in later terms.
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
