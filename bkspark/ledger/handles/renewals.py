"""Waits for a writer as long as the writer renews its own time limits.

A writer ends by its own limits, so a caller gains nothing by waiting longer. The writer renews its
limits while a slow bookie makes progress, and its callers then wait on.
"""

from collections.abc import Callable
from concurrent.futures import Future

from bkspark import environment
from bkspark.ledger.handles.backlog import Backlog
from bkspark.progress import overslept


def is_there_within(
    has_come_within: Callable[[float], bool], seconds: float, backlog: Backlog
) -> bool:
    """Return whether the awaited event comes within ``seconds``, which begin anew with each
    renewal.
    """
    while True:
        renewals, until = backlog.renewals, environment.monotonic() + seconds
        if has_come_within(seconds):
            return True
        if backlog.renewals == renewals and not overslept(until):
            return False


def result_within(future: "Future[int]", seconds: float, backlog: Backlog) -> int:
    """Return ``future.result``; ``seconds`` begin anew with each renewal."""

    def has_come_within(limit: float) -> bool:
        try:
            future.exception(limit)
        except TimeoutError:
            return False
        return True

    if not future.done() and not is_there_within(has_come_within, seconds, backlog):
        raise TimeoutError
    return future.result()
