"""Every branch of the protocol is taken by its own tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.thorough  # it runs the tests of the protocol once more
def test_every_branch_of_the_protocol_is_taken(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider"]
    command += [f"--basetemp={tmp_path / 'tests'}", "--cov=bkspark.protocol", "--cov-branch"]
    command += [f"--cov-report=json:{report}", "tests/unit/protocol", "tests/protocol"]
    environment = os.environ | {"COVERAGE_FILE": str(tmp_path / "data"), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    files = json.loads(report.read_text())["files"]
    left = {
        name: [*found["missing_lines"], *found["missing_branches"]]
        for name, found in files.items()
        if found["missing_lines"] or found["missing_branches"]
    }
    assert files
    assert not left
