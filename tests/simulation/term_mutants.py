"""Rules of ledgers that go on in later terms, broken in the real code."""

from dataclasses import replace

from bkspark.format import layout
from bkspark.ledger.recovery import recoverer
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.recovery import reopening
from bkspark.protocol.recovery.conclusions import Evidence
from bkspark.protocol.recovery.steps import Open
from tests.simulation.mutants import LOSSES, NO_METADATA_CHECK, Change


def fence_first(self: recoverer._Place, term: int, token: str, *, with_journal: bool) -> None:
    """Markers are pruned in the other order."""
    ledger_id = self.ledger.ledger_id
    if with_journal:
        self.root.forget_journal(layout.journal(ledger_id, term, token))
    self.root.delete(layout.term_marker(ledger_id, term + 1))
    self.root.delete(layout.permission(ledger_id, term, token))


def all_of_the_term(self: recoverer._Place, term: int, token: str, *, with_journal: bool) -> None:
    """Journals go by their term, those too that a recovery of it has made."""
    folder = layout.journal_folder(self.ledger.ledger_id)
    for name in self.root.list(folder) if with_journal else ():
        if layout.journal_term(name) == term:
            self.root.forget_journal(f"{folder}/{name}")
    REAL_FORGET(self, term, token, with_journal=False)


def owned_as_before(self: Open, ledger: LedgerMetadata) -> LedgerMetadata:
    after = REAL_OPEN(self, ledger)
    if after is ledger:
        return after
    *kept, last = after.fragments
    return replace(after, fragments=(*kept, replace(last, owner=ledger.last_fragment.owner)))


REAL_OPEN = Open.applied_to
REAL_FORGET = recoverer._Place.forget

MUTANTS: dict[str, tuple[tuple[Change, ...], int]] = {
    "a new fragment is the writer's before": (((Open, "applied_to", owned_as_before),), 0),
    "post-check and metadata check skipped": (
        LOSSES["post-check and metadata check skipped"],
        10,
    ),
    "a fence is pruned before the permission, metadata check skipped": (
        ((recoverer._Place, "forget", fence_first), *NO_METADATA_CHECK),
        190,
    ),
    "what recoveries have copied goes with the journal of their term": (
        ((recoverer._Place, "forget", all_of_the_term),),
        80,
    ),
    "nothing is left of any older writer": (
        ((recoverer._Place, "is_blank", lambda *_: True),),
        0,
    ),
    "a loss is believed with metadata that is not the newest": (
        ((Evidence, "shows_loss", property(lambda _: False)),),
        0,
    ),
    "a journal goes whose records count": (((reopening, "is_owner", lambda *_: False),), 0),
}
"""Each with a schedule that is soon noticed to break a promise."""
