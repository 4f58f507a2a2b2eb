"""Formatting, linting, strict typing and the direction of imports, as part of the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from ..thorough import always  # noqa: TID252

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

TOOLS = {
    "formatting": [str(BIN / "ruff"), "format", "--check", "."],
    "linting": [str(BIN / "ruff"), "check", "."],
    "typing": [sys.executable, "-m", "mypy"],
    "imports": [str(BIN / "lint-imports")],
}


@pytest.mark.parametrize("tool", always([tool for tool in TOOLS if tool != "typing"], TOOLS))
def test_tool_has_nothing_to_say(tool: str) -> None:
    done = subprocess.run(TOOLS[tool], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
