"""Where a rule stands in the source, by a name that stays when files are moved.

A place is a method, a function, a class or a module. It is named by as much of the end of its
dotted name as tells it apart: ``Membership.swap``, or ``handles.membership.Membership.swap``.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .change import Change, Text, apply

ROOT = Path(__file__).parents[2]
SOURCES = ("bkspark", "tests/simulation")

_Definition = ast.ClassDef | ast.FunctionDef


@dataclass(frozen=True)
class Place:
    """Lines of a file.

    Attributes:
        path: of the file, relative to the repository.
        first: the first line, decorators included, counted from 0.
        end: the line behind the last one.
    """

    path: str
    first: int
    end: int

    def changed(self, text: str, changes: Sequence[Change]) -> str:
        """What the file says after ``changes`` of what is here.

        Raises:
            AssertionError: what one of them changes is not here, or it is here several times.
        """
        match changes:
            case [Text(old, new)]:
                before, here, after = self._cut(text)
                assert here.count(old) == 1, f"{old!r} is not here once: update the catalogue"
                return before + here.replace(old, new) + after
        tree = ast.parse(text)
        apply(changes, self.find(tree))
        return ast.unparse(ast.fix_missing_locations(tree))

    def find(self, tree: ast.Module) -> ast.Module | _Definition:
        """What stands here in ``tree``, the tree of the file."""
        found = [node for _, node in _definitions(tree) if _first(node) == self.first]
        return found[0] if found else tree

    def _cut(self, text: str) -> tuple[str, str, str]:
        lines = text.splitlines(keepends=True)
        parts = lines[: self.first], lines[self.first : self.end], lines[self.end :]
        before, here, behind = ("".join(part) for part in parts)
        return before, here, behind


def place(name: str) -> Place:
    """The only place of that name.

    Raises:
        AssertionError: there is none, or there are several.
    """
    found = _places().get(name, [])
    paths = ", ".join(one.path for one in found) or "nowhere"
    assert len(found) == 1, f"{name} is in {paths}: a mutant must name one place"
    return found[0]


@cache
def _places() -> dict[str, list[Place]]:
    """By each end of their dotted names."""
    found = defaultdict(list)
    for source in SOURCES:
        for file in sorted((ROOT / source).rglob("*.py")):
            for name, one in _places_in(file.relative_to(ROOT)):
                for begin in range(len(name)):
                    found[".".join(name[begin:])].append(one)
    return dict(found)


def _places_in(path: Path) -> Iterator[tuple[tuple[str, ...], Place]]:
    text = (ROOT / path).read_text(encoding="utf-8")
    module = path.parent.parts if path.stem == "__init__" else path.with_suffix("").parts
    yield module, Place(str(path), 0, text.count("\n"))
    for name, node in _definitions(ast.parse(text)):
        first = _first(node)
        yield (*module, *name), Place(str(path), first, node.end_lineno or first)


def _first(node: _Definition) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1


def _definitions(
    within: ast.Module | ast.ClassDef,
) -> Iterator[tuple[tuple[str, ...], _Definition]]:
    for node in within.body:
        if isinstance(node, _Definition):
            yield (node.name,), node
            if isinstance(node, ast.ClassDef):
                yield from (((node.name, *name), one) for name, one in _definitions(node))
