"""Logs each skipped copy once, instead of at every read.

A reader that follows a log meets the same bad copy at every look, and so does the next task of the
process. Repeated messages would hide new ones. So a copy is logged at the first meeting, and again
only after a long time, if still bad.
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
