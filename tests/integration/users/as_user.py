"""A process of another user: root starts it, so that it need not be able to read the interpreter.

    python as_user.py USER GROUPS CODE [WORD]...

GROUPS are numbers with commas between them. CODE is a script, or empty for the command.
"""

import importlib
import os
import pkgutil
import sys
import tempfile
import zoneinfo  # noqa: F401 - pyarrow loads it late
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pyarrow as pa

import bkspark
from bkspark.cli import main as command

LEFT_OUT = ("bkspark.spark", "bkspark.demo", "bkspark.testing", "bkspark.__main__")


def load() -> None:
    """Load what is loaded late otherwise, while it can be read."""
    for found in pkgutil.walk_packages(bkspark.__path__, "bkspark."):
        if not found.name.startswith(LEFT_OUT):
            importlib.import_module(found.name)
    pa.array([0], pa.timestamp("us", "UTC")).to_pylist()
    said = StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(said),
        redirect_stderr(said),
    ):
        uri = Path(folder, "meta").as_uri()
        command(["init", uri, *(f"--bookie={folder}/{number}" for number in range(3))])
        command(["--metadata", uri, "log", "delete", "none"])  # refused: there is no such log


def main(user: int, groups: list[int], code: str, words: list[str]) -> int:
    load()
    os.setgroups(groups)
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.umask(0o077)
    if not code:
        return command(words)
    sys.argv = ["code", *words]
    exec(code, {"__name__": "__main__"})
    return 0


if __name__ == "__main__":
    user, groups, code, *words = sys.argv[1:]
    sys.exit(main(int(user), [int(one) for one in groups.split(",") if one], code, words))
