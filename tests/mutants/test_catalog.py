"""The catalogue of mutants as a whole: it is sound, and its tests pass on the package as it is."""

from .catalog import MUTANTS
from .running import Copy


def test_without_a_mutation_every_listed_test_passes(package: Copy) -> None:
    killers = sorted({killer for mutant in MUTANTS for killer in mutant.killers})
    result = package.run(killers, seconds_max=60)
    assert result.status == 0, result.output


def test_the_copy_hides_the_package(package: Copy) -> None:
    with package.changed("__init__.py", "raise SystemExit('this is the copy')\n"):
        result = package.run([MUTANTS[0].killers[0]])
    assert "this is the copy" in result.output


def test_names_are_unique() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
