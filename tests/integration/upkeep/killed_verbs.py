"""Maintenance verbs as processes of their own: forks of one that has imported everything.

They run what the command line runs, by clocks that may be hours off, until they end or are
killed.
"""

import multiprocessing
import os
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from bkspark import environment
from bkspark.cli import main

HOUR_MS = 3_600_000
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])


class Verb:
    """One command under way; what it says is kept."""

    def __init__(
        self, folder: Path, uri: str, words: Sequence[str], skew_hours: int = 0, name: str = "verb"
    ) -> None:
        self._said = folder / f"{name}.out"
        arguments = ["--metadata", uri, *words]
        self.process: ForkServerProcess = _FORKS.Process(
            target=_run, args=(str(self._said), arguments, skew_hours * HOUR_MS)
        )
        self.process.start()

    def status(self) -> int | None:
        """Its exit status, once it has ended; negative if a signal has ended it."""
        self.process.join(120)
        return self.process.exitcode

    def kill(self) -> bool:
        """Whether that was what ended it."""
        self.process.kill()
        return self.status() == -9

    def said(self) -> str:
        return self._said.read_text(errors="replace") if self._said.exists() else ""


def _run(said: str, arguments: list[str], skew_ms: int) -> None:
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    clock = environment.THE_REAL_ONE.now_ms
    environment.THE_REAL_ONE.now_ms = lambda: clock() + skew_ms  # type: ignore[method-assign]
    status = main(arguments)
    sys.stdout.flush()
    os._exit(status)  # threads that hang at a bookie hold up no command either
