"""Telling the log of copies that were stepped over: of each once, not again and again.

A reader that follows a log meets the same bad copy at every look, and so does the next task of
the same process. A log that repeats itself hides what is new. So a copy is told of when it is met
first, and again only after a long time, should it still be bad then.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import NamedTuple

from bkspark import environment
from bkspark.errors import BookKeeperError, CorruptDataError

logger = logging.getLogger(__name__)

TELL_AGAIN_SECONDS = 3_600.0
"""A process may run for months, and a copy be made good and turn bad again."""

COPIES_MAX = 10_000
"""What is remembered; behind so many others a copy is told of again."""


class BadCopy(NamedTuple):
    """What one bookie cannot give.

    Attributes:
        what: ``ledger 7`` or a file's name; empty if it is the bookie as a whole.
    """

    cluster_id: str
    bookie_id: str
    what: str = ""

    def __str__(self) -> str:
        name = f"bookie {self.bookie_id}"
        return f"{self.what} on {name}" if self.what else name


def step_over(logger: logging.Logger, copy: BadCopy, reason: str) -> None:
    """Log that ``copy`` was stepped over, unless that was told of lately."""
    if environment.the_one(_Told).is_news(copy):
        logger.warning("stepped over %s: %s", copy, reason)


def leave_out(key: str, error: BookKeeperError) -> None:
    """Go on without a metadata record that is damaged; whatever else is wrong stays an error.

    For readers and placement: they take a bookie that is missing for one that does not answer.
    """
    if not isinstance(error, CorruptDataError):
        raise error
    step_over(logger, BadCopy("", key.rpartition("/")[2]), str(error.args[0]))


def leave_out_unless(named: Collection[str]) -> Callable[[str, BookKeeperError], None]:
    """The same, but the record of a bookie that is ``named`` stays an error.

    For recoveries and repairs of ledgers: a member that is left out would count as lost.
    """

    def step_over(key: str, error: BookKeeperError) -> None:
        if key.rpartition("/")[2] in named:
            raise error
        leave_out(key, error)

    return step_over


class _Told:
    """When each copy was told of, the latest last."""

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
