"""Mutations that need no thought: what a machine can do to a function without knowing its rules.

A statement goes, a test is always or never true, an operand, an argument or an element goes, a
comparison or a number is another one, a call is replaced by its argument. Words of errors stay.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Assert, ast.Delete)
_JUMPS = (ast.Continue, ast.Break)

Set = Callable[[Any], None]


@dataclass(frozen=True)
class Mutation:
    """One change of a module.

    Attributes:
        where: the function that it is in, or "" for the module itself.
        what: the old code and the new one, in one line.
        nth: how many mutations of the function that look the same come before it.
        tree: the module with the change.
    """

    where: str
    what: str
    nth: int
    tree: ast.Module

    @property
    def name(self) -> str:
        return f"{self.where}: {self.what}" + (f" ({self.nth + 1})" if self.nth else "")


def mutations(tree: ast.Module) -> Iterator[Mutation]:
    """All mutations of a module, one at a time."""
    met: dict[tuple[str, str], int] = {}
    for where, old, new, put, restore in _changes(tree, ""):
        what = f"{_shown(old)} -> {_shown(new)}"
        put()
        changed = ast.fix_missing_locations(copy.deepcopy(tree))
        restore()
        nth = met.get((where, what), 0)
        met[where, what] = nth + 1
        yield Mutation(where, what, nth, changed)


def _shown(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


_Change = tuple[str, ast.AST, ast.AST, Callable[[], None], Callable[[], None]]


def _changes(within: ast.AST, where: str) -> Iterator[_Change]:
    for name, value in list(ast.iter_fields(within)):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        many = isinstance(value, list)
        for index, node in enumerate(value if many else [value]):
            if not isinstance(node, ast.AST) or _is_message(node):
                continue
            named = isinstance(node, ast.FunctionDef | ast.ClassDef)
            inner = f"{where}.{node.name}".lstrip(".") if named else where
            for new in _instead_of(node, within, name):
                put, restore = _setters(within, name, index if many else None, node, new)
                yield where, node, new, put, restore
            yield from _changes(node, inner)


def _is_message(node: ast.AST) -> bool:
    """What an error says is held by the tests of messages."""
    match node:
        case ast.Call(ast.Name(name)):
            return name.endswith("Error")
    return False


def _setters(
    owner: ast.AST, name: str, index: int | None, old: ast.AST, new: ast.AST
) -> tuple[Callable[[], None], Callable[[], None]]:
    def put(node: ast.AST) -> None:
        if index is None:
            setattr(owner, name, node)
        else:
            getattr(owner, name)[index] = node

    return lambda: put(new), lambda: put(old)


def _instead_of(node: ast.AST, owner: ast.AST, field: str) -> Iterator[ast.AST]:
    """What ``node`` may become."""
    if isinstance(node, ast.stmt):
        yield from _instead_of_statement(node)
    elif isinstance(node, ast.expr) and not isinstance(owner, ast.JoinedStr):
        if field == "test" and isinstance(owner, ast.If | ast.While | ast.IfExp):
            yield from (ast.Constant(value) for value in (True, False))
        yield from _instead_of_expression(node)
    elif isinstance(node, ast.comprehension):
        for index in range(len(node.ifs)):
            yield _without(node, "ifs", index)


def _instead_of_statement(node: ast.stmt) -> Iterator[ast.AST]:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, (*_SIMPLE, *_JUMPS)) and not is_docstring:
        yield ast.Pass()
    if isinstance(node, ast.Break | ast.Continue):
        yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    if isinstance(node, ast.If | ast.For | ast.While) and not node.orelse:
        yield ast.Pass()
    if isinstance(node, ast.AugAssign) and type(node.op) in _SWAPPED:
        yield _with(node, op=_SWAPPED[type(node.op)]())
    if isinstance(node, ast.Return) and node.value is not None:
        yield ast.Pass()


def _instead_of_expression(node: ast.expr) -> Iterator[ast.AST]:
    match node:
        case ast.BoolOp(op, values):
            for index in range(len(values)):
                rest = values[:index] + values[index + 1 :]
                yield rest[0] if len(rest) == 1 else _with(node, values=rest)
            yield _with(node, op=_SWAPPED[type(op)]())
        case ast.Compare(ops=[op]) if type(op) in _SWAPPED:
            yield _with(node, ops=[_SWAPPED[type(op)]()])
        case ast.Compare(ops=ops):
            for index, op in enumerate(ops):
                if type(op) in _SWAPPED:
                    yield _with(node, ops=[*ops[:index], _SWAPPED[type(op)](), *ops[index + 1 :]])
        case ast.BinOp(left, op, right):
            yield left
            yield right
            if type(op) in _SWAPPED:
                yield _with(node, op=_SWAPPED[type(op)]())
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.IfExp(_, body, orelse):
            yield body
            yield orelse
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() as value):
            yield ast.Constant(value + 1)
            if value > 0:
                yield ast.Constant(value - 1)
        case ast.Tuple(elts, ast.Load()) | ast.List(elts, ast.Load()) | ast.Set(elts):
            if len(elts) > 1:
                yield from (_without(node, "elts", index) for index in range(len(elts)))
        case ast.Dict(keys, values):
            for index in range(len(keys)):
                yield _without(_without(node, "keys", index), "values", index)
        case ast.JoinedStr(values):
            for index, value in enumerate(values):
                if isinstance(value, ast.FormattedValue):
                    yield _without(node, "values", index)
        case ast.Call():
            yield from _instead_of_call(node)
        case ast.Subscript(value=value, slice=ast.Slice(), ctx=ast.Load()):
            yield value


def _instead_of_call(node: ast.Call) -> Iterator[ast.AST]:
    match node:
        case ast.Call(ast.Name(name), args=args) if name in _FUNCTIONS:
            yield _with(node, func=ast.Name(_FUNCTIONS[name], ast.Load()))
            if len(args) > 1:
                yield from args
        case ast.Call(args=[only], keywords=[]) if not isinstance(only, ast.Starred):
            yield only
        case ast.Call(ast.Attribute(receiver), args=[]):
            yield receiver
    for index in range(len(node.keywords)):
        yield _without(node, "keywords", index)
    if len(node.args) > 1:
        yield _without(node, "args", len(node.args) - 1)


def _with(node: Any, **fields: Any) -> Any:
    """A copy with other fields."""
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _without(node: Any, field: str, index: int) -> Any:
    values = getattr(node, field)
    return _with(node, **{field: [*values[:index], *values[index + 1 :]]})
