"""Log messages about decisions, the bookies of a ledger, and skipped copies."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from logging import WARNING, Logger
from typing import TYPE_CHECKING, Any, NamedTuple

from bkspark import environment
from bkspark.bookie.contract import about
from bkspark.cluster.client_metrics import ClientCounts
from bkspark.errors import BookKeeperError, CorruptDataError
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata

if TYPE_CHECKING:
    from bkspark.protocol.writer.steps import WarnOfGaps

# --- decisions -----------------------------------------------------------------------------------
# Log records of decisions: one each, with the ids of the objects as attributes.
#
# A JSON handler or a filter finds ``ledger_id``, ``entry_id`` and ``bookie_id`` in the record, each
# None if not concerned. So no tool has to parse the message.


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


# --- ensemble log --------------------------------------------------------------------------------
# Log messages of writers about the bookies of a ledger, in the same words for all writers.
#
# Args:
#     logger: of the writer.
#     reason: in one line.


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
    location = Locations(ledger).last
    tell(
        logger,
        "ledger %d: a new fragment begins at entry %d, on %s",
        *(ledger.ledger_id, location.first_entry_id),
        ", ".join(location.bookie_ids),
        ledger_id=ledger.ledger_id,
        entry_id=location.first_entry_id,
    )


def fewer_copies(logger: Logger, ledger: LedgerMetadata, gap: "WarnOfGaps") -> None:
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


# --- stepping over -------------------------------------------------------------------------------
# Logs each skipped copy once, instead of at every read.
#
# A reader that follows a log meets the same bad copy at every look, and so does the next task of
# the process. Repeated messages would hide new ones. So a copy is logged at the first meeting, and
# again only after a long time, if still bad.


logger = logging.getLogger(__name__)

TELL_AGAIN_SECONDS = 3_600.0
"""A process may run for months, in which a copy may be repaired and turn bad again."""

COPIES_MAX = 10_000
"""Number of copies remembered; after so many others, a copy is logged again."""


class BadCopy(NamedTuple):
    """A bad copy on a bookie.

    Attributes:
        what: ``ledger 7`` or a file's name; empty for the bookie as a whole.
    """

    cluster_id: str
    bookie_id: str
    what: str = ""

    def __str__(self) -> str:
        name = f"bookie {self.bookie_id}"
        return f"{self.what} on {name}" if self.what else name


def step_over(logger: logging.Logger, copy: BadCopy, reason: str) -> None:
    """Log that ``copy`` was skipped, unless logged lately."""
    if environment.the_one(_Told).is_news(copy):
        logger.warning("skipped a copy: %s: %s", copy, reason)


def leave_out(key: str, error: BookKeeperError) -> None:
    """Skip a damaged metadata record; raise any other error.

    For readers and placement: for both a missing bookie is like a silent bookie.
    """
    if not isinstance(error, CorruptDataError):
        raise error
    step_over(logger, BadCopy("", key.rpartition("/")[2]), str(error.args[0]))


def leave_out_into(names: set[str]) -> Callable[[str, BookKeeperError], None]:
    """Return ``leave_out``, which adds the last part of each skipped record's key to ``names``."""

    def step_over(key: str, error: BookKeeperError) -> None:
        leave_out(key, error)
        names.add(key.rpartition("/")[2])

    return step_over


def leave_out_unless(named: Collection[str]) -> Callable[[str, BookKeeperError], None]:
    """Return ``leave_out``, except that an error at a ``named`` bookie's record is raised.

    For recoveries and repairs of ledgers, where a skipped member would count as lost.
    """

    def step_over(key: str, error: BookKeeperError) -> None:
        if key.rpartition("/")[2] in named:
            raise error
        leave_out(key, error)

    return step_over


class _Told:
    """When each copy was last logged, latest last."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._at: OrderedDict[BadCopy, float] = OrderedDict()

    def is_news(self, copy: BadCopy) -> bool:
        now = environment.monotonic()
        with self._guard:
            told = self._at.get(copy)
            if told is not None and now - told < TELL_AGAIN_SECONDS:
                return False
            self._at[copy] = now
            self._at.move_to_end(copy)
            if len(self._at) > COPIES_MAX:
                self._at.popitem(last=False)
            return True
