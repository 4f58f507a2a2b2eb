"""The post-check: what makes a durable record on a bookie countable (reliability R6).

A real bookie refuses a fenced writer before it stores anything. A directory cannot, so the writer
looks *after* its record is durable: had it looked before, a fence could have come in between, and a
recovery that saw no record would have closed the ledger under an acknowledged entry (RB-03).
"""

from bkspark.bookie.contract import BookieAddress, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.errors import LedgerFencedError
from bkspark.format import layout


def post_check(address: BookieAddress, journal: Journal, *, ledger_id: int, term: int) -> None:
    """Return if the records in ``journal`` count for a writer of ``term`` on this bookie.

    Four facts of one place that is found anew by its path: its cookie, the writer's own journal, no
    marker of a later term, and then the marker of its own. A missing own marker means that the
    directory was wiped, deleted or never joined: as good as a fence.

    Raises:
        LedgerFencedError: another client has fenced this bookie.
        BookieUnavailableError: it is not, or does not show, what was written to.
    """
    fence, permission = layout.term_marker(ledger_id, term + 1), layout.term_marker(ledger_id, term)
    if not open_bookie(address).has_kept(journal, absent=fence, present=permission):
        raise LedgerFencedError(
            f"ledger {ledger_id} is fenced on bookie {address.bookie_id}: "
            "another client took it over or deleted it",
            hint="recovery decides about what was not acknowledged",
        )
