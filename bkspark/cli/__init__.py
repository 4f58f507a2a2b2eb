"""The command ``bkspark``. Data goes to stdout, everything else to stderr."""

import sys
from collections.abc import Sequence

INTERRUPTED = 130
"""Exit status of a command ended by Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status.

    Loading the commands takes as long as most commands run, so Ctrl-C may come during loading.
    """
    try:
        from bkspark.cli.program import main as run
    except KeyboardInterrupt:
        print("bkspark: stopped", file=sys.stderr)
        return INTERRUPTED
    return run(arguments)


__all__ = ["INTERRUPTED", "main"]
