"""State of the thread that runs a writer's machine."""

from collections import deque
from collections.abc import Callable

from bkspark.errors import BookKeeperError, NothingSentError, OutcomeUnknownError
from bkspark.ledger.handles.membership import News
from bkspark.protocol.ledger.metadata import LedgerMetadata

Slow = Callable[[], News]
"""An instruction that may take long to carry out."""


class Turns:
    """State of the machine's runner.

    Attributes:
        events: not taken yet, each with the version of the metadata it reports.
        is_amid: whether a turn is running.
        check: a metadata check to be made.
        is_over: whether all work is done.
    """

    def __init__(self) -> None:
        self.events: deque[News] = deque()
        self.is_amid = False
        self.check: Slow | None = None
        self.is_over = False


def nothing() -> None:
    """Do nothing; wakes the writer's task, so that it looks at the time."""


def known(ledger: LedgerMetadata, error: BaseException) -> BookKeeperError:
    """Return why a writer ends. It has sent entries, so an unsent question leaves their outcome
    unknown.
    """
    if isinstance(error, NothingSentError):
        return error.in_doubt(f"ledger {ledger.ledger_id}")
    if isinstance(error, BookKeeperError):
        return error
    return OutcomeUnknownError(f"ledger {ledger.ledger_id}: {error!r}")
