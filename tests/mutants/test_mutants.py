"""Every rule that the catalogue breaks is noticed by the tests that say it.

Each mutant is a copy of the package with one text replaced; its tests run in a process of their
own, in which the copy hides the package.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bkspark

from .catalog import MUTANTS
from .mutant import Mutant

ROOT = Path(__file__).parents[2]
PACKAGE = Path(bkspark.__file__).parent
TESTS_FAILED = 1
TIMEOUT_SECONDS = 120
ALL_TIMEOUT_SECONDS = 280


def run_tests(
    where: Path, node_ids: list[str], timeout: float = TIMEOUT_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run tests against the package in folder ``where``; names the failed ones in its output."""
    command = [sys.executable, "-P", "-B", "-m", "pytest", "-q", "--tb=no", "-rf"]
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
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGE, where / PACKAGE.name, ignore=ignored))


def survived(mutant: Mutant, output: str) -> list[str]:
    """The tests that should have failed and did not."""
    failed = [line.split()[1] for line in output.splitlines() if line.startswith("FAILED ")]
    names = {node_id.split("[")[0] for node_id in failed} | set(failed)
    return [killer for killer in mutant.killers if killer not in names]


def test_without_a_mutation_every_listed_test_passes(tmp_path: Path) -> None:
    copy_of_package(tmp_path)
    killers = sorted({killer for mutant in MUTANTS for killer in mutant.killers})
    result = run_tests(tmp_path, killers, ALL_TIMEOUT_SECONDS)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_copy_hides_the_package(tmp_path: Path) -> None:
    copied = copy_of_package(tmp_path)
    (copied / "__init__.py").write_text("raise SystemExit('this is the copy')\n")
    result = run_tests(tmp_path, [MUTANTS[0].killers[0]])
    assert "this is the copy" in result.stdout + result.stderr


def test_names_are_unique() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_the_mutant_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    source = copy_of_package(tmp_path) / mutant.file
    text = source.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.file} has changed: update the catalogue"
    source.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    result = run_tests(tmp_path, list(mutant.killers))
    assert result.returncode == TESTS_FAILED, result.stdout + result.stderr
    assert survived(mutant, result.stdout) == []
