"""Random and mutated files end in a clear error: no crash, no hang, no huge allocation."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.thorough
def test_files_of_any_bytes_end_in_a_clear_error() -> None:
    paths = [os.environ.get("PYTHONPATH", ""), str(ROOT)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    process = subprocess.run(
        [sys.executable, "-P", "-m", "tests.unit.format.random_files", "4"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    found = json.loads(process.stdout)
    print(found)
    assert found["refused"] > 500, found
    assert found["longest"] < 2, found
    assert found["grown_kb"] < 300 * 1024, found
