"""The catalogue of mutants as a whole: it is sound, and its tests pass on the package as it is."""

import ast
import pickle
from functools import cache
from typing import Any

import pytest

from ..thorough import always  # noqa: TID252
from .catalog import MUTANTS
from .change import Text, apply
from .mutant import Mutant
from .places import ROOT, Place, place
from .required import ALWAYS
from .running import UNMUTATED_MAX, Copy

SUITES = ROOT / "bkspark/testing"
REQUIRED = tuple(mutant for mutant in MUTANTS if mutant.name in ALWAYS["mutant"])


@pytest.mark.parametrize("mutants", always([REQUIRED], [REQUIRED, MUTANTS]), ids=len)
def test_without_a_mutation_every_listed_test_passes(
    mutants: tuple[Mutant, ...], package: Copy
) -> None:
    killers = sorted({killer for mutant in mutants for killer in mutant.killers})
    result = package.run(killers, seconds_max=UNMUTATED_MAX)
    assert result.status == 0, result.output


def test_the_copy_hides_the_package(package: Copy) -> None:
    with package.changed("bkspark/__init__.py", "raise SystemExit('this is the copy')\n"):
        result = package.run([MUTANTS[0].killers[0]])
    assert "this is the copy" in result.output


def test_every_rule_is_in_its_place_once() -> None:
    wrong = {}
    for mutant in MUTANTS:
        try:
            require_change(mutant)
        except AssertionError as error:
            wrong[mutant.name] = str(error)
    assert wrong == {}


def require_change(mutant: Mutant) -> None:
    where = place(mutant.place)
    match mutant.changes:
        case [Text()]:
            where.changed(text_of(where.path), mutant.changes)
        case changes:
            original, stored = node_at(where)
            changed = pickle.loads(stored)
            apply(changes, changed)
            assert not is_equal(changed, original), "nothing changes"


@cache
def node_at(where: Place) -> tuple[ast.AST, bytes]:
    """What stands there, also to be copied: pickles are copied sooner than trees."""
    node = where.find(tree_of(where.path))
    return node, pickle.dumps(node)


def is_equal(one: Any, other: Any) -> bool:
    """Whether two trees are, without a look behind the first difference."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_equal, one, other))
    if isinstance(one, ast.AST):
        fields = ((getattr(one, name, None), getattr(other, name, None)) for name in one._fields)
        return all(is_equal(*pair) for pair in fields)
    return bool(one == other)


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree_of(path: str) -> ast.Module:
    return ast.parse(text_of(path))


def test_every_listed_test_is_there() -> None:
    """In its file, or in a suite of the package that the file takes over."""
    suites = "".join(path.read_text(encoding="utf-8") for path in SUITES.glob("*_*.py"))
    killers = {killer.partition("[")[0] for mutant in MUTANTS for killer in mutant.killers}
    missing = []
    for killer in sorted(killers):
        file, *_, name = killer.split("::")
        if f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8") + suites:
            missing.append(killer)
    assert missing == []


def test_names_are_unique() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
