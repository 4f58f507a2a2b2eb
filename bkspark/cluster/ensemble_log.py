"""What writers tell the log of the bookies of a ledger, each in the same words for all of them.

Args:
    logger: of the writer that tells.
    reason: in one line.
"""

from collections.abc import Mapping
from logging import Logger

from bkspark.protocol.ledger.metadata import LedgerMetadata


def given_up(logger: Logger, ledger_id: int, bookie_id: str, reason: str) -> None:
    """A writer uses a bookie no more."""
    logger.warning("ledger %d: bookie %s is given up: %s", ledger_id, bookie_id, reason)


def replaced(
    logger: Logger, ledger_id: int, old: str, new: str, first_entry_id: int, reason: str
) -> None:
    """The metadata names another bookie from an entry on."""
    logger.info(
        "ledger %d: bookie %s takes the place of %s from entry %d on: %s",
        ledger_id,
        new,
        old,
        first_entry_id,
        reason,
    )


def fewer_copies(
    logger: Logger, ledger: LedgerMetadata, first_entry_id: int, lacking: Mapping[str, str]
) -> None:
    """A write goes on, and ``lacking``, bookie id -> reason, get no copies; nothing if none."""
    if lacking:
        logger.warning(
            "ledger %d: entries from %d on get fewer than %d copies: %s",
            ledger.ledger_id,
            first_entry_id,
            ledger.quorum.write_quorum_size,
            "; ".join(f"none on {bookie_id} ({reason})" for bookie_id, reason in lacking.items()),
        )
