"""The command ``bkspark``. Data goes to stdout, everything else to stderr."""

import sys
from collections.abc import Sequence

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C has ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status.

    Loading the commands takes as long as most of them run, so Ctrl-C may come then.
    """
    try:
        from bkspark.cli.program import main as run
    except KeyboardInterrupt:
        print("bkspark: stopped", file=sys.stderr)
        return INTERRUPTED
    return run(arguments)


__all__ = ["INTERRUPTED", "main"]
