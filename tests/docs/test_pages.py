"""The pages: complete, linked, short where they should be, and built without a warning."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from bkspark import errors
from bkspark.cli import program
from bkspark.spark.option_table import OPTIONS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
DECISION_LINES_MAX = 60
GENERATED = {"cli.md", "errors.md", "options.md"}
"""Pages that are made from the code."""


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generated_pages", DOCS / "generated_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= 1200


@pytest.mark.parametrize("page", [README, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_of_a_page_outside_docs_lead_somewhere(page: Path) -> None:
    links = [match[1] for match in LINK.finditer(page.read_text(encoding="utf-8"))]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_option_has_a_meaning() -> None:
    assert [name for name, option in OPTIONS.items() if not option.meaning] == []


def test_every_error_class_is_explained() -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    classes = {
        name
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.BookKeeperError)
    }
    assert {name for name in classes - {"BookKeeperError"} if f"`{name}`" not in page} == set()


def test_every_error_text_of_the_product_is_on_the_page_of_messages(generated: ModuleType) -> None:
    page = generated.error_messages()
    texts = {text for path in product() for text in error_texts(path)}
    assert len(texts) > 150
    assert {text for text in texts if text not in page} == set()


def product() -> list[Path]:
    left_out = {"testing", "demo"}
    paths = (ROOT / "bkspark").rglob("*.py")
    return [path for path in paths if not left_out & set(path.relative_to(ROOT).parts)]


def error_texts(path: Path) -> set[str]:
    """Whole messages without anything filled in, that errors are raised with."""
    raised = [
        node.exc
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args
    ]
    found = {
        str(call.args[0].value)
        for call in raised
        if isinstance(call.args[0], ast.Constant)
        and isinstance(call.func, ast.Name)
        and hasattr(errors, call.func.id)
    }
    parts = {
        str(part.value).strip()
        for call in raised
        if isinstance(call.args[0], ast.JoinedStr)
        and isinstance(call.func, ast.Name)
        and hasattr(errors, call.func.id)
        for part in call.args[0].values
        if isinstance(part, ast.Constant)
    }
    return found | parts


def test_every_environment_variable_is_on_the_page_of_deploying() -> None:
    page = (DOCS / "deploying.md").read_text(encoding="utf-8")
    texts = [path.read_text(encoding="utf-8") for path in product()]
    variables = {name for text in texts for name in re.findall(r"(?<!_)BKSPARK_[A-Z0-9_]+", text)}
    assert len(variables) > 3
    assert {name for name in variables if f"`{name}`" not in page} == set()


def test_every_option_that_is_a_time_is_on_the_page_of_times() -> None:
    page = (DOCS / "times.md").read_text(encoding="utf-8")
    declared = commands(typer.main.get_command(program.app)).values()
    options = {
        name
        for command in declared
        for option in command.params
        if "TIME" in (option.metavar or "")
        for name in option.opts
    }
    assert len(options) > 3
    assert {name for name in options if name not in page} == set()


def test_pages_name_the_actor() -> None:
    """A writer, a reader, a recovery or an operator acts, and never "somebody"."""
    pages = [README, *DOCS.rglob("*.md"), ROOT / "bkspark/protocol/README.md"]
    unnamed = re.compile(r"\b(whoever|whom|somebody|nobody|anybody)\b", re.IGNORECASE)
    written = [page for page in pages if "_build" not in page.parts and page.name not in GENERATED]
    found = [(page.name, m[0]) for page in written for m in unnamed.finditer(page.read_text())]
    assert found == []


def test_decisions_are_numbered_short_and_of_one_form() -> None:
    pages = sorted(DOCS.glob("decisions/[0-9]*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings == ["Problem", "Decision", "Cost"], page.name
        assert len(text.splitlines()) <= DECISION_LINES_MAX, page.name


@pytest.mark.thorough
def test_pages_are_built_without_a_warning_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    done = subprocess.run(
        [*command, str(DOCS), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "index.html").exists()
    outside = [
        (page.name, link)
        for page in tmp_path.rglob("*.html")
        for link in re.findall(r'(?:src|<link[^>]* href)="(https?:[^"]+)"', page.read_text())
    ]
    assert outside == []  # they are read from files, without a network


def test_every_command_is_on_the_page_of_operations() -> None:
    page = (DOCS / "operations.md").read_text(encoding="utf-8")
    named = {name for line in page.splitlines() if line.startswith("| `") for name in words(line)}
    assert commands(typer.main.get_command(program.app)).keys() - named == set()


def words(line: str) -> list[str]:
    """The commands in the first cell of a row of a table."""
    return re.findall(r"`([^`]+)`", line.split("|")[1])


def commands(group: Any, prefix: str = "") -> dict[str, Any]:
    """All commands below a command of the shell, by name."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, f"{prefix}{name} ")
        else:
            found[f"{prefix}{name}"] = command
    return found
