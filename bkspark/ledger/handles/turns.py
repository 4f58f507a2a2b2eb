"""How far the runner of a writer's machine is."""

from collections import deque
from collections.abc import Callable

from bkspark.errors import BookKeeperError, NothingSentError, OutcomeUnknownError
from bkspark.ledger.handles.membership import News
from bkspark.protocol.ledger.metadata import LedgerMetadata

Slow = Callable[[], News]
"""An instruction that may take long to carry out."""


class Turns:
    """How far the machine's runner is.

    Attributes:
        events: that happened and were not taken, each with the metadata that it tells of.
        is_amid: whether somebody runs the machine.
        check: a metadata check that is to be made.
        is_over: whether everything is done.
    """

    def __init__(self) -> None:
        self.events: deque[News] = deque()
        self.is_amid = False
        self.check: Slow | None = None
        self.is_over = False


def nothing() -> None:
    """Look at the time anew."""


def known(ledger: LedgerMetadata, error: BaseException) -> BookKeeperError:
    """Why a writer ends. It has sent entries; a question it could not ask leaves them open."""
    if isinstance(error, NothingSentError):
        return error.in_doubt(f"ledger {ledger.ledger_id}")
    if isinstance(error, BookKeeperError):
        return error
    return OutcomeUnknownError(f"ledger {ledger.ledger_id}: {error!r}")
