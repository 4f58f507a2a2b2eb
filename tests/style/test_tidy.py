"""Properties of the code itself that no linter checks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("bkspark", "pyspark_bookkeeper", "jobs", "examples", "tests")
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
UNWANTED_NAMES = {"utils", "common", "helpers", "core", "misc"}
FORBIDDEN = ("FIX" + "ME", "XX" + "X")


def python_files() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("path", python_files(), ids=shown)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= FILE_LINES_MAX
    long = [
        f"{node.name} has {length} lines"
        for node in functions(ast.parse(text))
        if (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not long


@pytest.mark.parametrize("path", python_files(), ids=shown)
def test_nothing_is_left_for_later_and_no_room_is_called_utils(path: Path) -> None:
    text = path.read_text()
    assert not [word for word in FORBIDDEN if word in text]
    assert not UNWANTED_NAMES & {path.stem, *path.relative_to(ROOT).parts[:-1]}


@pytest.mark.parametrize(
    "path", [path for path in python_files() if path.parts[-2] != "tests"], ids=shown
)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree) or not tree.body


@pytest.mark.parametrize("path", sorted((ROOT / "bkspark").rglob("*.py")), ids=shown)
def test_decisions_never_look_at_file_times(path: Path) -> None:
    text = path.read_text()
    assert "st_mtime" not in text
    assert "time.time()" not in text


def test_everything_exported_is_documented() -> None:
    import bkspark

    undocumented = [
        name
        for name in bkspark.__all__
        if not name.startswith("__") and not getattr(bkspark, name).__doc__
    ]
    assert not undocumented
