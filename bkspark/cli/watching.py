"""Repeat a verb, with one line a round, until an operator stops it.

Rule 1. A failed round is reported once and the rounds go on: the next round looks again. Only a
wrong call ends the watch, and only in the first round: in a later round the cluster has changed,
for example an unmounted metadata store.

Rule 2. SIGTERM and SIGINT end the watch at any point, as every verb may be killed anywhere. Its
exit status is the status of the last finished round: 1 if the round failed or no round has
finished.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bkspark import environment
from bkspark.admin.maintenance import Report
from bkspark.admin.views import timestamp
from bkspark.cli.output import json_line, visible
from bkspark.cli.reports import outcome
from bkspark.cluster.arguments import duration
from bkspark.errors import USERS_MISTAKES, BookKeeperError, InvalidRequestError

WATCH = "--watch"
SECONDS = 600.0
RETRY_SECONDS = 30.0
"""Time between the beginnings of a failed round and the next round."""


def spelled_out(words: Sequence[str]) -> list[str]:
    """Insert the default seconds after ``--watch`` if no time follows."""
    found = list(words)
    if WATCH not in found:
        return found
    after = found.index(WATCH) + 1
    if not (found[after:] and found[after][:1].isdecimal()):
        found.insert(after, f"{SECONDS:g}")
    return found


def watch(
    once: Callable[[], Report],
    seconds: float,
    tell: Callable[[str], None],
    *,
    as_json: bool,
    dry_run: bool = False,
) -> int:
    """Run ``once`` every ``seconds``; return the exit status when stopped.

    Args:
        tell: receives a line about each new failure.
        as_json: whether a round is shown as one line of JSON.
        dry_run: whether the verb would only plan, which is refused.

    Raises:
        InvalidRequestError: the seconds are invalid, or the first round finds the call wrong.
    """
    if dry_run:
        raise InvalidRequestError(
            "--watch and --dry-run contradict each other", hint="leave one of them out"
        )
    seconds = duration("watch", seconds, hint="give seconds, for example 600")
    watch = _Watch(once, tell, as_json=as_json)
    with _ended_by_signals():
        try:
            while True:
                began = environment.monotonic()
                pause = seconds if watch.round() else min(seconds, RETRY_SECONDS)
                environment.sleep(max(0.0, began + pause - environment.monotonic()))
        except KeyboardInterrupt:
            tell("bkspark: stopped")
    return watch.status


class _Watch:
    """Runs rounds, and keeps the status of the last round."""

    def __init__(
        self, once: Callable[[], Report], tell: Callable[[str], None], *, as_json: bool
    ) -> None:
        self.status = 1
        self._once = once
        self._tell = tell
        self._as_json = as_json
        self._is_first = True
        self._problem = ""

    def round(self) -> bool:
        """Run a round; return whether the round finished.

        Raises:
            BookKeeperError: the call is wrong, in the first round.
        """
        try:
            report = self._once()
        except BookKeeperError as error:
            if self._is_first and isinstance(error, USERS_MISTAKES):
                raise
            self._is_first, self.status = False, 1
            if type(error).__name__ != self._problem:
                self._tell(f"bkspark: {error}; trying again until it works")
            self._problem = type(error).__name__
            return False
        if self._problem:
            self._tell("bkspark: continuing")
        self._is_first, self._problem = False, ""
        self.status = report.exit_status
        print(json_line(report.document) if self._as_json else _line(report), flush=True)
        return True


def _line(report: Report) -> str:
    """Return the time, the work done, and the first remaining problem."""
    said = [outcome(report)] if report.done else []
    said += [f"{left.subject}: {left.reason}" for left in report.left[:1]]
    return visible(f"{timestamp(environment.now_ms()):%Y-%m-%d %H:%M:%S}Z {'; '.join(said)}")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Make SIGTERM act like SIGINT, if run in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
