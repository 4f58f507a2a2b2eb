"""Rules of ledgers that go on in later terms, broken in the real code."""

from dataclasses import replace

from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie
from bkspark.format import layout
from bkspark.ledger.recovery import opener
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.reopening_steps import Open, Prune
from tests.simulation.mutants import LOSSES, NO_METADATA_CHECK, Change


def fence_first(address: BookieAddress, ledger_id: int, prune: Prune) -> None:
    """Markers are pruned in the other order."""
    with open_bookie(address).open_root() as root:
        root.delete(layout.term_marker(ledger_id, prune.fence))
        root.delete(layout.permission(ledger_id, *prune.permission))


def owned_as_before(self: Open, ledger: LedgerMetadata) -> LedgerMetadata:
    after = REAL_OPEN(self, ledger)
    if after is ledger:
        return after
    *kept, last = after.fragments
    return replace(after, fragments=(*kept, replace(last, owner=ledger.last_fragment.owner)))


REAL_OPEN = Open.applied_to

MUTANTS: dict[str, tuple[tuple[Change, ...], int]] = {
    "a new fragment is the writer's before": (((Open, "applied_to", owned_as_before),), 0),
    "post-check and metadata check skipped": (
        LOSSES["post-check and metadata check skipped"],
        10,
    ),
    "a fence is pruned before the permission, metadata check skipped": (
        ((opener, "_prune", fence_first), *NO_METADATA_CHECK),
        190,
    ),
}
"""Each with a schedule that is soon noticed to break a promise."""
