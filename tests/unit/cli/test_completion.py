"""Shells complete commands and options, as a real bash and the words of others show."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bkspark.cli import main

_ASK = """
eval "$(bkspark --show-completion)"
COMP_WORDS=({words}) COMP_CWORD={last}
_bkspark_completion bkspark
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def ask(monkeypatch, capfd):
    """``ask(shell, line)`` -> (exit status, what the shell is told)."""

    def ask(shell, line):
        words = line.split(" ")
        monkeypatch.setenv("_BKSPARK_COMPLETE", f"complete_{shell}")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        monkeypatch.setattr(sys, "argv", ["bkspark"])
        return main(), capfd.readouterr().out.splitlines()

    return ask


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("bkspark lo", ["logs", "log"]),
        ("bkspark log sh", ["show"]),
        ("bkspark log read --li", ["--limit"]),
        ("bkspark log --json sh", ["show"]),
        ("bkspark --metadata file:///data log sh", ["show"]),
        ("bkspark --js", ["--json"]),
        ("bkspark log --js", ["--json"]),
        ("bkspark log show --me", ["--metadata"]),
        ("bkspark log show --metadata file:///data --de", ["--debug"]),
    ],
)
def test_what_may_come_next(ask, line, found):
    assert ask("bash", line) == (0, found)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_too(ask, shell):
    status, told = ask(shell, "bkspark log sh")
    assert status == 0
    assert "show" in "\n".join(told)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_bash_completes():
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = _ASK.format(words="bkspark bookie lo", last=2)
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == "lost\n"
