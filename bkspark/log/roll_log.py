"""Log messages about the rolls of a log writer."""

import logging

from bkspark.cluster.log_messages import tell
from bkspark.errors import BookKeeperError

logger = logging.getLogger(__name__)


def rolled(log_name: str, old: int, new: int, end_offset: int, reason: str) -> None:
    """Log that ledger ``new`` follows ``old``; ``end_offset`` is the log's end now."""
    tell(
        logger,
        "log %s: rolled from ledger %d to %d at offset %d: %s",
        *(log_name, old, new, end_offset, reason),
        ledger_id=new,
    )


def fragment_begun(log_name: str, ledger_id: int, offset: int, reason: str) -> None:
    """Log the begin of a fragment in the ledger of an unbounded log."""
    line = "log %s: ledger %d has a new fragment from offset %d on: %s"
    tell(logger, line, log_name, ledger_id, offset, reason, ledger_id=ledger_id)


def failed(log_name: str, error: BookKeeperError) -> BookKeeperError:
    """Log ``error`` and return it. The log continues; the next roll repeats the failed step."""
    logger.warning("log %s: a roll failed: %s", log_name, error.args[0])
    return error
