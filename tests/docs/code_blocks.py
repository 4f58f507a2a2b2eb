"""Run the code of one page, in order, in one process: ``python code_blocks.py PAGE FOLDER``.

Python blocks share one namespace and one Spark session. Shell blocks run in a shell whose exports
last to the end of the page. Blocks of other languages (``text``) are not run. Paths such as
``/data`` and ``/disk1`` lie below FOLDER.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"(?<![\w.])/(data|disk\d)\b")
SHELLS = ("bash", "sh")
NOT_RUN_HERE = ("pip install", "sphinx-build")
"""What is installed and built has tests of its own."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the code of each block of a page that is run."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [
        (language, code)
        for language, code in found
        if language in (*SHELLS, "python") and not any(word in code for word in NOT_RUN_HERE)
    ]


def make_places(folder: Path) -> Path:
    """Make ``folder``, with what stands for the disks and mounts of the pages."""
    for name in ("data", *(f"disk{number}" for number in range(1, 10))):
        (folder / name).mkdir(parents=True)
    return folder


def run(page: Path, folder: Path) -> None:
    """Run every block of a page; the first one that fails ends the process."""
    namespace: dict[str, object] = {"__name__": "page"}
    for number, (language, code) in enumerate(blocks(page), 1):
        placed = PLACE.sub(lambda match: f"{folder}/{match[1]}", code)
        print(f"block {number}: {language}", flush=True)
        if language == "python":
            exec(compile(placed, f"{page.name}, block {number}", "exec"), namespace)
        else:
            _run_in_shell(placed)


def _run_in_shell(code: str) -> None:
    """Run one block; what it exports is seen by the blocks after it."""
    script = f"set -euo pipefail\n{code}\nprintf '\\0'; env -0"
    done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    said, _, environment = done.stdout.partition("\0")
    print(said, flush=True)
    os.environ.update(line.split("=", 1) for line in environment.split("\0") if "=" in line)


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]))
