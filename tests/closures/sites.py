"""Where the package changes records by compare-and-set, found in its source."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "bkspark"
CHANGES = {"update", "replace", "create", "write_over", "note", "try_to_note"}
"""Methods of ``Records`` and ``Notes`` that store a record."""

RECORDS = re.compile(
    r"(^|\.|_)(logs|ledgers|registrations|records|pages|counters|upkeep\.\w+|reports)(\(.*\))?$"
)
"""What they are called where they are used."""

NOT_CLIENTS = ("testing", "cluster/records.py")
"""Doubles for tests, and the loop itself."""


@dataclass(frozen=True, order=True)
class Site:
    """A call, with the function around it."""

    path: str
    first: int
    last: int
    function: str

    @property
    def shown(self) -> str:
        return f"{self.path}:{self.function}"


@cache
def sites() -> tuple[Site, ...]:
    """All of the package, in order."""
    found = list[Site]()
    for file in sorted(PACKAGE.rglob("*.py")):
        path = str(file.relative_to(PACKAGE))
        if not path.startswith(NOT_CLIENTS):
            found += _sites_in(f"bkspark/{path}", ast.parse(file.read_text(encoding="utf-8")), "")
    return tuple(sorted(found))


def _sites_in(path: str, node: ast.AST, function: str) -> Iterator[Site]:
    for child in ast.iter_child_nodes(node):
        name = function
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{function}.{child.name}".lstrip(".")
        if isinstance(child, ast.Call) and _is_change(child.func):
            yield Site(path, child.lineno, child.end_lineno or child.lineno, function)
        elif isinstance(child, ast.Assign) and any(map(_is_change, _named(child.value))):
            end = node.end_lineno if isinstance(node, ast.FunctionDef) else None
            yield Site(path, child.lineno, end or child.lineno, function)  # called below
        yield from _sites_in(path, child, name)


def _named(value: ast.expr) -> list[ast.expr]:
    """What an assignment gives names to."""
    return value.elts if isinstance(value, ast.Tuple) else [value]


def _is_change(made: ast.AST) -> bool:
    if not isinstance(made, ast.Attribute) or made.attr not in CHANGES:
        return False
    return RECORDS.search(ast.unparse(made.value)) is not None
