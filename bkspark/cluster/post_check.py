"""The post-check: makes a durable record on a bookie countable (R6).

A server would refuse a fenced writer before storing data. A directory cannot, so the writer looks
*after* its record is durable. If the writer looked before, a fence could come in between: a
recovery that saw no record would close the ledger without an acknowledged entry (RB-03, H15).

Only the writer's own journal counts: a copy made there by a recovery is no acknowledgement for the
writer (RB-33).
"""

import logging
from contextlib import suppress

from bkspark.bookie.contract import BookieAddress, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.decisions import tell
from bkspark.errors import BookieUnavailableError, InvalidTermError, LedgerFencedError
from bkspark.format import layout

logger = logging.getLogger(__name__)

_HINT = "a recovery decides about unacknowledged entries"


def post_check(
    address: BookieAddress, journal: Journal, *, ledger_id: int, term: int, token: str
) -> None:
    """Return if the records in ``journal`` count for the writer ``token`` of ``term`` there.

    Checks four facts of one place, found anew by its path: its cookie, the writer's own journal, no
    fence of its term, and then its permission. A missing permission means that the directory was
    wiped, deleted or never joined, and counts as a fence (RB-46). No code recreates a permission
    (R18).

    Raises:
        InvalidTermError: another client has fenced this bookie: the next term has begun.
        LedgerFencedError: the permission is gone, so the writer may be fenced or not.
        BookieUnavailableError: the place is unavailable, or not the place written to.
    """
    fence = layout.term_marker(ledger_id, term + 1)
    permission = layout.permission(ledger_id, term, token)
    if not open_bookie(address).post_check(journal, fence=fence, permission=permission):
        bookie_name = address.bookie_id
        said = "ledger %d: the writer of term %d is fenced on bookie %s"
        tell(logger, said, ledger_id, term, bookie_name, ledger_id=ledger_id, bookie_id=bookie_name)
        line = (
            f"ledger {ledger_id} is fenced on bookie {bookie_name}: another client took over or "
            "deleted the ledger"
        )
        if _is_there(address, fence):
            raise InvalidTermError(line, hint=_HINT, term=term, newer_term=term + 1)
        raise LedgerFencedError(line, hint=_HINT)


def _is_there(address: BookieAddress, fence: str) -> bool:
    """Whether the fence is visible; False if unknown, as the write is refused in any case."""
    with suppress(BookieUnavailableError), open_bookie(address).open_root() as root:
        return root.size(fence) is not None
    return False
