"""Log records of decisions: one each, with the ids of the objects as attributes.

A JSON handler or a filter finds ``ledger_id``, ``entry_id`` and ``bookie_id`` in the record, each
None if not concerned. So no tool has to parse the message.
"""

import logging
from typing import Any


def tell(
    logger: logging.Logger,
    message: str,
    *args: Any,
    level: int = logging.INFO,
    ledger_id: int | None = None,
    entry_id: int | None = None,
    bookie_id: str | None = None,
) -> None:
    """Log a decision.

    Args:
        entry_id: the first entry concerned.
        bookie_id: of several, the bookie that is used from now on, or no longer used.
    """
    about = {"ledger_id": ledger_id, "entry_id": entry_id, "bookie_id": bookie_id}
    logger.log(level, message, *args, extra=about, stacklevel=2)
