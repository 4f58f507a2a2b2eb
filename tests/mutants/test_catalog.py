"""The catalogue of mutants as a whole: it is sound, and its tests pass on the package as it is."""

from pathlib import Path

from .catalog import MUTANTS
from .running import copy_of_package, run_tests

ALL_TIMEOUT_SECONDS = 280


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
