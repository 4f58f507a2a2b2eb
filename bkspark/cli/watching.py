"""Doing a verb again and again: a line a round, until somebody ends it.

Rule 1. What goes wrong in a round is told once and ends nothing: the next round looks anew. Only a
call that has to be changed ends it, and only in the first round: later it is the cluster that is
another one, such as a metadata store that is not mounted.

Rule 2. SIGTERM and SIGINT end it wherever it is, as every verb may be killed anywhere. It ends with
the status of the last round that was over, which is 1 if that went wrong or there was none.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bkspark import environment
from bkspark.admin.maintenance import Report
from bkspark.admin.views.sharing import timestamp
from bkspark.cli.output import json_line, visible
from bkspark.cli.reports import outcome
from bkspark.cluster.arguments import duration
from bkspark.errors import USERS_MISTAKES, BookKeeperError, InvalidRequestError

WATCH = "--watch"
SECONDS = 600.0
RETRY_SECONDS = 30.0
"""After a round that failed the next one comes so soon."""


def spelled_out(words: Sequence[str]) -> list[str]:
    """``--watch`` with the seconds that it stands for, if no time follows it."""
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
    """Let ``once`` begin once in so many seconds; the exit status when somebody has ended it.

    Args:
        tell: told a line about what goes wrong.
        as_json: whether a round is shown as JSON, in one line.
        dry_run: whether nothing would be done, which is refused.

    Raises:
        InvalidRequestError: the seconds are none, or the first round says that of the call.
    """
    if dry_run:
        raise InvalidRequestError(
            "--watch and --dry-run do not go together", hint="leave one of them out"
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
    """Rounds, and how the last of them ended."""

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
        """Do it once; whether it came to its end.

        Raises:
            BookKeeperError: the first call has to be changed.
        """
        try:
            report = self._once()
        except BookKeeperError as error:
            if self._is_first and isinstance(error, USERS_MISTAKES):
                raise
            self._is_first, self.status = False, 1
            if type(error).__name__ != self._problem:
                self._tell(f"bkspark: {error}; it is tried again until it goes")
            self._problem = type(error).__name__
            return False
        if self._problem:
            self._tell("bkspark: it goes on")
        self._is_first, self._problem = False, ""
        self.status = report.exit_status
        print(json_line(report.document) if self._as_json else _line(report), flush=True)
        return True


def _line(report: Report) -> str:
    """When, what was done, and the first of what is left."""
    said = [outcome(report)] if report.done else []
    said += [f"{left.subject}: {left.reason}" for left in report.left[:1]]
    return visible(f"{timestamp(environment.now_ms()):%Y-%m-%d %H:%M:%S}Z {'; '.join(said)}")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM does what SIGINT does, in the thread that gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
