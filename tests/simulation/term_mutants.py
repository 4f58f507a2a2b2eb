"""Rules of ledgers that go on in later terms, broken in the real code."""

from dataclasses import replace

from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie
from bkspark.format import layout
from bkspark.ledger.recovery import opener
from bkspark.protocol.ledger import reopening
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.reopening_steps import Open, Prune
from tests.simulation.mutants import LOSSES, NO_METADATA_CHECK, Change


def fence_first(address: BookieAddress, ledger_id: int, prune: Prune) -> None:
    """Markers are pruned in the other order."""
    with open_bookie(address).open_root() as root:
        if prune.is_empty:
            root.forget_journal(layout.journal(ledger_id, *prune.permission))
        root.delete(layout.term_marker(ledger_id, prune.fence))
        root.delete(layout.permission(ledger_id, *prune.permission))


def all_of_the_term(address: BookieAddress, ledger_id: int, prune: Prune) -> None:
    """Journals go by their term, those too that a recovery of it has made."""
    folder = layout.journal_folder(ledger_id)
    with open_bookie(address).open_root() as root:
        for name in root.list(folder) if prune.is_empty else ():
            if layout.journal_term(name) == prune.permission[0]:
                root.forget_journal(f"{folder}/{name}")
    REAL_PRUNE(address, ledger_id, replace(prune, is_empty=False))


def owned_as_before(self: Open, ledger: LedgerMetadata) -> LedgerMetadata:
    after = REAL_OPEN(self, ledger)
    if after is ledger:
        return after
    *kept, last = after.fragments
    return replace(after, fragments=(*kept, replace(last, owner=ledger.last_fragment.owner)))


REAL_OPEN = Open.applied_to
REAL_PRUNE = opener._prune

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
    "what recoveries have copied goes with the journal of their term": (
        ((opener, "_prune", all_of_the_term),),
        80,
    ),
    "a journal goes whose records count": (((reopening, "is_owner", lambda *_: False),), 0),
}
"""Each with a schedule that is soon noticed to break a promise."""
