"""Log messages of writers about the bookies of a ledger, in the same words for all writers.

Args:
    logger: of the writer.
    reason: in one line.
"""

from logging import WARNING, Logger

from bkspark import environment
from bkspark.bookie.messages import about
from bkspark.cluster.client_counts import ClientCounts
from bkspark.cluster.decisions import tell
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.writer.steps import WarnOfGaps


def given_up(logger: Logger, ledger_id: int, bookie_id: str, reason: str) -> None:
    """Log that a writer stops using a bookie."""
    tell(
        logger,
        "ledger %d: bookie %s is given up: %s",
        *(ledger_id, bookie_id, about(f"bookie {bookie_id}", reason)),
        level=WARNING,
        ledger_id=ledger_id,
        bookie_id=bookie_id,
    )


def replaced(
    logger: Logger, ledger_id: int, old: str, new: str, first_entry_id: int, reason: str
) -> None:
    """Log and count that the metadata names another bookie from an entry on."""
    environment.the_one(ClientCounts).changed()
    tell(
        logger,
        "ledger %d: bookie %s replaces %s from entry %d on: %s",
        *(ledger_id, new, old, first_entry_id, reason),
        ledger_id=ledger_id,
        entry_id=first_entry_id,
        bookie_id=new,
    )


def rolled(logger: Logger, ledger: LedgerMetadata) -> None:
    """Log that a requested new fragment has begun."""
    fragment = ledger.last_fragment
    tell(
        logger,
        "ledger %d: a new fragment begins at entry %d, on %s",
        *(ledger.ledger_id, fragment.first_entry_id),
        ", ".join(member.bookie_id for member in fragment.ensemble),
        ledger_id=ledger.ledger_id,
        entry_id=fragment.first_entry_id,
    )


def fewer_copies(logger: Logger, ledger: LedgerMetadata, gap: WarnOfGaps) -> None:
    """Log that a write goes on, or went on for a while, without a copy on one bookie."""
    is_closed = gap.last_entry_id is not None
    tell(
        logger,
        "ledger %d: entries from %d %s fewer than %d copies: none on %s (%s)",
        ledger.ledger_id,
        gap.first_entry_id,
        f"to {gap.last_entry_id} have, until they are repaired," if is_closed else "on get",
        ledger.quorum.write_quorum_size,
        gap.bookie_id,
        about(f"bookie {gap.bookie_id}", gap.reason),
        level=WARNING,
        ledger_id=ledger.ledger_id,
        entry_id=gap.first_entry_id,
        bookie_id=gap.bookie_id,
    )
