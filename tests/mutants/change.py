"""Changes of code that are found in its syntax tree.

Comments, docstrings, layout, moved lines and moved files do not matter to them. A pattern is code:
an expression, statements, or the head of a statement, a case or a handler, whatever its body:
``if x is None: ...``, ``case [404, _]: ...``, ``except OSError: ...``. ``f(...)`` is any call of f.
"""

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Site = tuple[ast.AST, str, int | None]
"""A node, its field, and where in that field if it is a list."""

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_IGNORED = ("ctx", "kind", "type_comment")


class Change(ABC):
    """One change of a place."""

    @abstractmethod
    def apply(self, within: ast.AST) -> None:
        """Changes what is below ``within``.

        Raises:
            AssertionError: the pattern is not there, or it is there several times.
        """


@dataclass(frozen=True)
class Text(Change):
    """The text ``old``, which occurs once, becomes ``new``; for what has no pattern."""

    old: str
    new: str

    def apply(self, within: ast.AST) -> None:
        raise AssertionError("a text is changed alone")


@dataclass(frozen=True)
class Replace(Change):
    """The code ``old`` becomes ``new``.

    Attributes:
        at: which of several that are equal, counted from 0. Without it there must be only one.
    """

    old: str
    new: str
    at: int | None = None

    def apply(self, within: ast.AST) -> None:
        old, new = _expression(self.old), _expression(self.new)
        if old is not None and new is not None:
            _replace_expression(within, self.old, new, self.at)
        else:
            _replace_statements(within, self.old, _statements(self.new), self.at)


@dataclass(frozen=True)
class Drop(Change):
    """Statements go: those that ``code`` shows, or the one that calls what ``code`` names."""

    code: str
    at: int | None = None

    def apply(self, within: ast.AST) -> None:
        is_name = isinstance(_expression(self.code), ast.Name | ast.Attribute)
        pattern = f"{self.code}(...)" if is_name else self.code
        _replace_statements(within, pattern, [], self.at)


@dataclass(frozen=True)
class DropArgument(Change):
    """The argument ``name`` of the only call that has it goes."""

    name: str

    def apply(self, within: ast.AST) -> None:
        calls = [node for node in ast.walk(within) if isinstance(node, ast.Call)]
        sites: list[Site] = [
            (call, "keywords", index)
            for call in calls
            for index, keyword in enumerate(call.keywords)
            if keyword.arg == self.name
        ]
        call, _, index = _chosen(sites, f"{self.name}=", None)
        assert isinstance(call, ast.Call)
        del call.keywords[index or 0]


def apply(changes: Iterable[Change], within: ast.AST) -> None:
    for change in changes:
        change.apply(within)


def is_same(node: Any, pattern: Any) -> bool:
    """Whether ``node`` is what ``pattern`` shows."""
    if isinstance(pattern, list):
        return len(node) == len(pattern) and all(map(is_same, node, pattern))
    if not isinstance(pattern, ast.AST):
        return type(node) is type(pattern) and node == pattern
    if type(node) is not type(pattern):
        return False
    left_out = (*_IGNORED, *(_BODIES if _is_head(pattern) else ()))
    if _is_any_call(pattern):
        left_out = (*left_out, "args", "keywords")
    fields = [name for name in pattern._fields if name not in left_out]
    return all(is_same(getattr(node, name, None), getattr(pattern, name, None)) for name in fields)


def _is_head(node: ast.AST) -> bool:
    """Whether it is a statement with ``...`` in the place of its body."""
    match getattr(node, "body", None):
        case [ast.Expr(ast.Constant(value))]:
            return value is ...
    return False


def _is_any_call(node: ast.AST) -> bool:
    """Whether it is a call with ``...`` in the place of its arguments."""
    match node:
        case ast.Call(args=[ast.Constant(value)], keywords=[]):
            return value is ...
    return False


def _expression(code: str) -> ast.expr | None:
    try:
        return ast.parse(code, mode="eval").body
    except SyntaxError:
        return None


def _statements(code: str) -> list[Any]:
    if code.startswith("case "):
        return ast.parse(f"match _:\n {code}").body[0].cases  # type: ignore[attr-defined]
    if code.startswith("except "):
        return ast.parse(f"try: ...\n{code}").body[0].handlers  # type: ignore[attr-defined]
    return ast.parse(code).body


def _replace_expression(within: ast.AST, pattern: str, new: ast.expr, at: int | None) -> None:
    old = _expression(pattern)
    sites = [one for one in _sites(within) if is_same(_at(one), old)]
    node, name, index = _chosen(sites, pattern, at)
    if index is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[index] = new


def _replace_statements(within: ast.AST, pattern: str, new: list[Any], at: int | None) -> None:
    old = _statements(pattern)
    sites = [one for one in _sites(within) if _begins(one, old)]
    node, name, index = _chosen(sites, pattern, at)
    assert index is not None
    if len(old) == len(new) == 1 and _is_head(old[0]) and _is_head(new[0]):
        for part in _BODIES:
            if hasattr(new[0], part):
                setattr(new[0], part, getattr(_at((node, name, index)), part))
    block = getattr(node, name)
    block[index : index + len(old)] = new
    if not block and name == "body":
        block.append(ast.Pass())


def _sites(within: ast.AST) -> Iterator[Site]:
    """All nodes, from top to bottom."""
    for name, value in ast.iter_fields(within):
        if isinstance(value, ast.AST):
            yield within, name, None
            yield from _sites(value)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield within, name, index
                    yield from _sites(item)


def _at(site: Site) -> Any:
    node, name, index = site
    value = getattr(node, name)
    return value if index is None else value[index]


def _begins(site: Site, pattern: list[Any]) -> bool:
    """Whether the statements of ``pattern`` begin there."""
    node, name, index = site
    if index is None or not isinstance(_at(site), ast.stmt | ast.match_case | ast.ExceptHandler):
        return False
    return is_same(getattr(node, name)[index : index + len(pattern)], pattern)


def _chosen(sites: list[Site], pattern: str, at: int | None) -> Site:
    is_there = len(sites) == 1 if at is None else at < len(sites)
    assert is_there, f"{pattern!r} occurs {len(sites)} times: update the catalogue"
    return sites[at or 0]
