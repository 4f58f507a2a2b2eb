"""Only mutants put anything in place of what is simulated.

What they put there can be called as that one, so no crash is noticed for a broken rule.
"""

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

Change = tuple[type | ModuleType, str, object]
FOLDER = Path(__file__).parent
COUNT_MIN = 60
"""There are that many; fewer were found if it is not looked where they are."""
BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def changes_in(value: object) -> Iterator[Change]:
    """The changes that dicts, sequences and dataclasses hold, however deep."""
    match value:
        case (ModuleType() | type()) as owner, str() as name, new if hasattr(owner, name):
            yield owner, name, new
        case Mapping():
            yield from changes_in(tuple(value.values()))
        case tuple() | list():
            for one in value:
                yield from changes_in(one)
        case _ if is_dataclass(value) and not isinstance(value, type):
            yield from changes_in([getattr(value, field.name) for field in fields(value)])


def all_changes() -> Iterator[tuple[str, Change]]:
    """Each once, by a name of it."""
    seen = set[tuple[int, str, int]]()
    for path in sorted(FOLDER.rglob("*.py")):
        inside = path.relative_to(FOLDER).with_suffix("")
        if path.name.startswith("__"):
            continue
        module = import_module(".".join((__package__ or "", *inside.parts)))
        for owner, name, new in changes_in(list(vars(module).values())):
            key = (id(owner), name, id(new))
            if key not in seen:
                seen.add(key)
                yield f"{inside}: {owner.__name__}.{name}", (owner, name, new)


def called(owner: type | ModuleType, value: object) -> Callable[..., Any] | None:
    """What whoever uses an attribute of ``owner`` calls, if anything: a property's getter too."""
    if isinstance(value, property):
        return value.fget
    if isinstance(value, staticmethod | classmethod):
        value = value.__get__(None, cast(type, owner))
    return value if callable(value) else None


def calls_of(one: Signature) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Arguments that it takes: the required alone, and all; by position where it has one."""
    takes = list(one.parameters.values())
    for given in ([it for it in takes if it.default is Parameter.empty], takes):
        by_name = {it.name: it.name for it in given if it.kind is Parameter.KEYWORD_ONLY}
        yield [it.name for it in given if it.kind in BY_POSITION], by_name


def problems(original: Callable[..., Any], new: Callable[..., Any]) -> list[str]:
    taken, found = inspect.signature(new), list[str]()
    for by_position, by_name in calls_of(inspect.signature(original)):
        try:
            taken.bind(*by_position, **by_name)
        except TypeError as error:
            found.append(f"{taken} for {by_position}, {by_name}: {error}")
    return found


def test_replacements_take_what_the_replaced_take() -> None:
    found, count = list[str](), 0
    for said, (owner, name, new) in all_changes():
        original = called(owner, inspect.getattr_static(owner, name))
        replacing = called(owner, new)
        if original and replacing:
            count += 1
            found += [f"{said}: {one}" for one in problems(original, replacing)]
    assert not found, "\n".join(found)
    assert count > COUNT_MIN


def replacing(text: str) -> list[str]:
    """What in a program puts something in the place of an attribute of something else."""
    found, tree = list[str](), ast.parse(text)
    imports = (one for one in ast.walk(tree) if isinstance(one, ast.Import | ast.ImportFrom))
    imported = {alias.asname or alias.name.split(".")[0] for one in imports for alias in one.names}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(owner), ctx=ast.Store()) if owner in imported:
                found.append(ast.unparse(node))
            case ast.ImportFrom(module="unittest.mock"):
                found.append(ast.unparse(node))
            case ast.Call(func=ast.Name("setattr"), args=[ast.Name(owner), *_]) if owner != "self":
                found.append(ast.unparse(node))
            case ast.arg("monkeypatch"):
                found.append(node.arg)
    return found


def test_only_mutants_replace_anything() -> None:
    paths = [path for path in sorted(FOLDER.rglob("*.py")) if not path.name.startswith("test_")]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    found = {path.relative_to(FOLDER).as_posix() for path in paths if replacing(texts[path])}
    assert found == {"mutants.py"}


@pytest.mark.parametrize(
    "text",
    [
        "from unittest.mock import patch",
        "setattr(owner, name, value)",
        "def f(monkeypatch): ...",
        "from a.b import Store\nStore.ask = nothing",
        "import a.b as c\nc.limit = 1",
    ],
)
def test_who_replaces_is_noticed(text: str) -> None:
    assert replacing(text)


def replaced(_a: object, _b: object = 0, *, c: object = 0) -> None:
    """It takes one or two by position, and one by its name."""


@pytest.mark.parametrize(
    ("new", "count"),
    [
        (lambda *_, **__: None, 0),
        (lambda one, two=0, *, c=0: (one, two, c), 0),
        (lambda one, two, *, c=0: (one, two, c), 1),
        (lambda one, two=0, *, c: (one, two, c), 1),
        (lambda one, two=0: (one, two), 1),
        (lambda one, *, c=0: (one, c), 1),
        (lambda: None, 2),
    ],
)
def test_one_that_takes_less_is_noticed(new: Callable[..., Any], count: int) -> None:
    assert len(problems(replaced, new)) == count
