"""Keeps a recovery's lines for its report, passes each line to the caller, and logs each line."""

import logging
from collections.abc import Callable

from bkspark.cluster.log_messages import tell

logger = logging.getLogger(__name__)


class RecoveryNotes:
    """Takes notes.

    Attributes:
        lines: all notes, in order.
    """

    def __init__(self, ledger_id: int, tell: Callable[[str], None] | None = None) -> None:
        self.lines: list[str] = []
        self._ledger_id = ledger_id
        self._tell = tell

    def __call__(self, line: str) -> None:
        """Note a step."""
        self._note(logging.INFO, line)

    def warn(self, line: str) -> None:
        """Note a bookie that could not help, or a loss."""
        self._note(logging.WARNING, line)

    def _note(self, level: int, line: str) -> None:
        self.lines.append(line)
        number = self._ledger_id
        tell(logger, "recovery of ledger %d: %s", number, line, level=level, ledger_id=number)
        if self._tell is not None:
            self._tell(line)
