"""The metadata check (R4): the last step before an ack, with nothing between it and the ack."""

import logging

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Seen
from bkspark.errors import LedgerFencedError
from bkspark.protocol.ledger.metadata import LedgerMetadata

logger = logging.getLogger(__name__)


def still_current(
    cluster: Cluster, seen: Seen[LedgerMetadata], *, hint: str, is_waited_for: bool = False
) -> Seen[LedgerMetadata]:
    """The newest version of the record, if it leaves the writer and the ensemble of ``seen`` alone.

    That somebody else has changed the record is no takeover by itself (RB-32).

    Args:
        hint: what to do if somebody has taken the ledger over.
        is_waited_for: whether others wait for the caller, with a time of their own.

    Raises:
        LedgerFencedError: somebody has.
    """
    mine = seen.value
    name = str(mine.ledger_id)
    ledgers = cluster.untimed_ledgers if is_waited_for else cluster.ledgers
    while not ledgers.is_current(name, seen):
        newest = cluster.ledger(mine.ledger_id)
        is_mine = newest.value.is_writable_by(term=mine.term, token=mine.token)
        if not is_mine or newest.value.last_fragment != mine.last_fragment:
            by_whom = f"({newest.value.state.value}, term {newest.value.term})"
            logger.info("ledger %s: the writer of term %d is fenced %s", name, mine.term, by_whom)
            raise LedgerFencedError(
                f"ledger {name} was taken over by another client {by_whom}", hint=hint
            )
        seen = newest
    return seen
