"""The post-check: what makes a durable record on a bookie countable (R6).

A real bookie refuses a fenced writer before it stores anything. A directory cannot, so the writer
looks *after* its record is durable: had it looked before, a fence could have come in between, and a
recovery that saw no record would have closed the ledger under an acknowledged entry (RB-03, H15).
Only its own journal counts: what a recovery copied there is no ack for the writer (RB-33).
"""

import logging

from bkspark.bookie.contract import BookieAddress, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.errors import LedgerFencedError
from bkspark.format import layout

logger = logging.getLogger(__name__)


def post_check(
    address: BookieAddress, journal: Journal, *, ledger_id: int, term: int, token: str
) -> None:
    """Return if the records in ``journal`` count for the writer ``token`` of ``term`` there.

    Four facts of one place that is found anew by its path: its cookie, the writer's own journal, no
    fence of its term, and then its permission. A missing permission means that the directory was
    wiped, deleted or never joined: as good as a fence (RB-46). Nobody makes it again (R18).

    Raises:
        LedgerFencedError: another client has fenced this bookie.
        BookieUnavailableError: it is not, or does not show, what was written to.
    """
    fence = layout.term_marker(ledger_id, term + 1)
    permission = layout.permission(ledger_id, term, token)
    if not open_bookie(address).post_check(journal, fence=fence, permission=permission):
        who = address.bookie_id
        logger.info("ledger %d: the writer of term %d is fenced on bookie %s", ledger_id, term, who)
        raise LedgerFencedError(
            f"ledger {ledger_id} is fenced on bookie {address.bookie_id}: "
            "another client took it over or deleted it",
            hint="recovery decides about what was not acknowledged",
        )
