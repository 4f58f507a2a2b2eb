"""A copy of the package with one rule broken, and the tests that must notice.

The tests run in a process of their own, in which the copy hides the package.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import bkspark

from .mutant import Mutant

ROOT = Path(__file__).parents[2]
PACKAGE = Path(bkspark.__file__).parent
TESTS_FAILED = 1
TIMEOUT_SECONDS = 120
TRIES = 3
"""A mutant that opens a race is not caught by each run of it."""

Noticing = Callable[[Mutant, Path], None]


def run_tests(
    where: Path, node_ids: list[str], timeout: float = TIMEOUT_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run tests against the package in folder ``where``; names the failed ones in its output."""
    command = [sys.executable, "-P", "-m", "pytest", "-q", "--tb=no", "-rf"]
    command += ["-p", "no:cacheprovider", "-p", "pytest_timeout", "-o", "addopts="]
    command += ["--import-mode=importlib", "--strict-config", *node_ids]
    environment = os.environ | {
        "PYTHONPATH": str(where),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "",
        "COLUMNS": "400",
    }
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def copy_of_package(where: Path) -> Path:
    """With the compiled modules, which stay valid: a copy keeps the time of each file."""
    return Path(shutil.copytree(PACKAGE, where / PACKAGE.name))


def noticing(mutants: tuple[Mutant, ...]) -> Noticing:
    """The test that each of ``mutants`` is noticed by every test listed for it."""

    @pytest.mark.parametrize("mutant", mutants, ids=lambda mutant: mutant.name.replace(" ", "-"))
    def test_the_mutant_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
        source = copy_of_package(tmp_path) / mutant.file
        text = source.read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, f"{mutant.file} has changed: update the catalogue"
        source.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        left = set(mutant.killers)
        for _ in range(TRIES):
            result = run_tests(tmp_path, sorted(left))
            assert result.returncode in (0, TESTS_FAILED), result.stdout + result.stderr
            left -= _failed(result.stdout)
            if not left:
                return
        pytest.fail(f"not noticed by {sorted(left)}:\n{result.stdout}")

    return test_the_mutant_is_noticed


def _failed(output: str) -> set[str]:
    """The tests that failed, each with and without its parameters."""
    failed = {line.split()[1] for line in output.splitlines() if line.startswith("FAILED ")}
    return failed | {node_id.split("[")[0] for node_id in failed}
