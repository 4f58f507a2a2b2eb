"""What ``pytest`` alone runs shows some of everything: no folder and no rule is left to CI."""

import re
from pathlib import Path

import pytest

from tests.mutants.required import ALWAYS, REQUIRED
from tests.thorough import COLLECTED, FOLDERS

from .sources import ROOT, own_python_files

TABLE = ROOT / "bkspark/protocol/README.md"


def files_of_tests() -> list[Path]:
    return [path for path in own_python_files("tests") if path.name.startswith("test_")]


@pytest.fixture
def always(request: pytest.FixtureRequest) -> set[str]:
    """The tests that run always, by file and function."""
    found = request.config.stash[COLLECTED]
    files = {name.partition("::")[0] for name in found}
    if missing := {str(path.relative_to(ROOT)) for path in files_of_tests()} - files:
        pytest.skip(f"only where all tests are collected; {len(missing)} files were not")
    parts = (name.split("::") for name, is_always in found.items() if is_always)
    return {f"{file}::{function}" for file, *_, function in parts}


def test_every_folder_has_tests_that_run_always(always: set[str]) -> None:
    folders = {path.parent for path in files_of_tests()} - set(FOLDERS)
    shown = {(ROOT / name.partition("::")[0]).parent for name in always}
    assert not folders - shown


def test_every_rule_that_must_be_noticed_is_broken_or_tested_always(always: set[str]) -> None:
    shown = set().union(always, *ALWAYS.values())
    shipped = {name.rpartition("::")[2] for name in always}  # where a suite is used, by function
    for number, (rule, killers) in REQUIRED.items():
        names = [name for where, name in killers if where != "none"]
        found = [
            name
            for name in names
            if name in shown
            or (name.startswith("bkspark/testing/") and name.rpartition("::")[2] in shipped)
        ]
        assert found or not names, f"{number}: {rule}"


def test_every_test_file_that_keeps_something_off_runs_in_part(always: set[str]) -> None:
    """Those that the table of hazards, bugs and invariants names."""
    named = set(re.findall(r"tests/[\w/]+/test_\w+\.py", TABLE.read_text(encoding="utf-8")))
    assert named
    assert not named - {name.partition("::")[0] for name in always}
