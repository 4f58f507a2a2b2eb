"""Common parts of the jobs for spark-submit: arguments, output and exit status."""

import argparse
import os
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stderr
from io import TextIOBase
from typing import Any

from pyspark import SparkContext
from pyspark.errors import PySparkException

from bkspark import errors
from bkspark.cluster.arguments import METADATA_URI_VARIABLE
from bkspark.errors import USERS_MISTAKES, BookKeeperError


def add_metadata(parser: argparse.ArgumentParser) -> None:
    """Add the option for the cluster's URI to a command line."""
    around = os.environ.get(METADATA_URI_VARIABLE, "")
    told = f"Metadata URI of the cluster; default: {METADATA_URI_VARIABLE}."
    parser.add_argument("--metadata", default=around, required=not around, help=told)


def run_job(
    work: Callable[[Sequence[str]], int | None],
    arguments: Sequence[str],
    tell: Callable[[str], None],
) -> int:
    """Run ``work``, with stdout for its data only.

    A deliberate error, on the driver or in a task, is reported in one line, by ``tell``.

    Returns:
        The exit status of ``work``, or 0 if it returns none.
    """
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    with redirect_stderr(_SparksStderr()) if is_submitted else nullcontext():
        try:
            return work(arguments) or 0
        except (BookKeeperError, PySparkException) as error:
            return _failed(error, tell)


def _failed(error: BookKeeperError | PySparkException, tell: Callable[[str], None]) -> int:
    """Report the error and return the exit status; raise an error that is not bkspark's."""
    ours = error if isinstance(error, BookKeeperError) else _behind(error)
    if ours is None:
        raise error
    tell(f"bkspark: {ours}")
    return 2 if isinstance(ours, USERS_MISTAKES) else 1


def _behind(error: PySparkException) -> BookKeeperError | None:
    """Return the bkspark error that Spark's error message contains, or None."""
    found = re.findall(r"bkspark\.errors\.(\w+): (.*)", str(error))
    return getattr(errors, found[-1][0])(found[-1][1]) if found else None


class _SparksStderr(TextIOBase):
    """The stderr of spark-submit.

    spark-submit runs Python with both outputs redirected to stdout, so only its JVM still has
    stderr.
    """

    def __init__(self) -> None:
        SparkContext._ensure_initialized()
        jvm: Any = SparkContext._jvm
        self._stream = jvm.System.err

    def write(self, text: str) -> int:
        self._stream.print(text)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()
