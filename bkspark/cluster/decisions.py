"""Log records of decisions: one each, which says what it is about in attributes of its own.

A handler that writes JSON, or a filter, finds ``ledger_id``, ``entry_id`` and ``bookie_id`` there:
None where the decision is not about one. So nobody has to take them out of the words.
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
        entry_id: the first that it is about.
        bookie_id: of several, the one that is used from now on, or is not any more.
    """
    about = {"ledger_id": ledger_id, "entry_id": entry_id, "bookie_id": bookie_id}
    logger.log(level, message, *args, extra=about, stacklevel=2)
