"""Places are found by name, wherever their files are."""

import ast
import textwrap

import pytest

from .change import Change, Drop, DropArgument, Replace, Text
from .places import ROOT, Place, place


def lines_of(name: str) -> list[str]:
    where = place(name)
    lines = (ROOT / where.path).read_text(encoding="utf-8").splitlines()
    return lines[where.first : where.end]


def test_a_method_is_found_with_its_decorators() -> None:
    first, second, *_ = lines_of("Lanes.is_congested")
    assert (first, second.strip()) == ("    @property", "def is_congested(self) -> bool:")


def test_a_class_and_a_module_are_places_too() -> None:
    assert lines_of("handles.lane.Lanes")[0] == "class Lanes:"
    whole = (ROOT / "bkspark/ledger/handles/lane.py").read_text(encoding="utf-8")
    assert lines_of("lane") == whole.splitlines()


def test_each_end_of_a_dotted_name_is_a_name_of_the_place() -> None:
    names = ("Lanes.join", "lane.Lanes.join", "bkspark.ledger.handles.lane.Lanes.join")
    assert len({place(name) for name in names}) == 1


@pytest.mark.parametrize("name", ["join", "Lanes.joins", "anes.join"])
def test_a_name_of_several_or_of_none_is_refused(name: str) -> None:
    with pytest.raises(AssertionError, match="a mutant must name one place"):
        place(name)


SOURCE = """\
def first(x):
    if x is None:
        raise ValueError  # why
    log(x)


def second(x):
    if x is None: raise ValueError
    x.log(1, deep=(True))
    return x + 1 + 1
"""
SECOND = Place("none", first=6, end=10)


def changed(*changes: Change) -> str:
    """The second function, changed."""
    before, _, after = SECOND.changed(SOURCE, changes).partition("def second(x):\n")
    assert ast.dump(ast.parse(before)) == ast.dump(ast.parse(SOURCE[: SOURCE.index("\n\ndef")]))
    return textwrap.dedent(after)


def test_an_expression_of_the_place_is_replaced_however_it_is_laid_out() -> None:
    assert "x.log(2)" in changed(Replace("x.log(1, deep=True)", "x.log(2)"))


def test_a_statement_is_known_by_its_head() -> None:
    assert changed(Replace("if x is None: ...", "if False: ...")).startswith("if False:\n    raise")
    assert changed(Drop("if x is None: ...")).startswith("x.log")


def test_a_call_is_known_by_what_it_calls() -> None:
    assert "log" not in changed(Drop("x.log"))


def test_a_block_that_loses_its_only_statement_does_nothing() -> None:
    assert changed(Drop("raise ValueError")).startswith("if x is None:\n    pass\n")


def test_an_argument_goes_and_a_case_and_a_handler_are_known_by_their_heads() -> None:
    assert "x.log(1)" in changed(DropArgument("deep"))
    text = "def f(x):\n match x:\n  case [1, _]: f(x)\n  case _:\n   try: f(x)\n"
    text += "   except OSError: x()\n"
    place = Place("none", first=0, end=5)
    assert "case [1, _]" not in place.changed(text, [Drop("case [1, _]: ...")])
    assert "case [1 | 2, _]:\n            f(x)" in place.changed(
        text, [Replace("case [1, _]: ...", "case [1 | 2, _]: ...")]
    )
    assert "except ValueError:\n                x()" in place.changed(
        text, [Replace("except OSError: ...", "except ValueError: ...")]
    )


def test_statements_are_replaced() -> None:
    assert "log" not in changed(Replace("x.log(1, deep=True)\nreturn x + 1 + 1", "return x"))


def test_a_text_is_replaced() -> None:
    assert SECOND.changed(SOURCE, [Text("+ 1 +", "+ 2 +")]).endswith("x + 2 + 1\n")


@pytest.mark.parametrize(
    "change",
    [
        *(Replace("1", "2"), Replace("log(x)", "x"), Drop("log"), Drop("raise KeyError")),
        *(Text("1", "2"), Replace("1", "2", at=3)),
    ],
)
def test_what_is_not_there_once_is_refused(change: Change) -> None:
    with pytest.raises(AssertionError, match="update the catalogue"):
        changed(change)


def test_one_of_several_is_named_by_its_number() -> None:
    assert "x + 2 + 1" in changed(Replace("1", "2", at=1))
    assert "x + 1 + 2" in changed(Replace("1", "2", at=2))
