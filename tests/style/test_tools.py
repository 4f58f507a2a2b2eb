"""Formatting, linting, strict typing and the direction of imports, as part of the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from ..thorough import always  # noqa: TID252
from .sources import ROOT, own_python_files

BIN = Path(sys.executable).parent

TOOLS = {
    "formatting": [str(BIN / "ruff"), "format", "--check"],
    "linting": [str(BIN / "ruff"), "check"],
    "typing": [sys.executable, "-m", "mypy"],
    "imports": [str(BIN / "lint-imports")],
}


@pytest.mark.parametrize("tool", always([tool for tool in TOOLS if tool != "typing"], TOOLS))
def test_tool_has_nothing_to_say(tool: str) -> None:
    # Ruff alone would go through all that lies in the checkout, virtual environments too.
    own = [str(path) for path in own_python_files()] if "ruff" in TOOLS[tool][0] else []
    done = subprocess.run(
        [*TOOLS[tool], *own], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
