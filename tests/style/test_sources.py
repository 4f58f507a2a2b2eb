"""What lies beside the project in its checkout is not held to the project's style."""

import subprocess
from pathlib import Path

import pytest

from .sources import own_files, own_python_files


def checkout(root: Path) -> None:
    """A module of the project, and environments of any name in its folder and below."""
    for name in (
        "bkspark/a.py",
        "env/lib/b.py",
        "v/c.py",
        "tests/env/lib/d.py",
        "bkspark/__pycache__/e.py",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x=1")
    for name in ("env", "v", "tests/env"):
        (root / name / "pyvenv.cfg").touch()


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


@pytest.mark.parametrize("has_git", [True, False])
def test_an_environment_of_any_name_is_not_the_projects(tmp_path: Path, *, has_git: bool) -> None:
    checkout(tmp_path)
    if has_git:
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", "bkspark/a.py")
    assert own_files(tmp_path) == (tmp_path / "bkspark/a.py",)
    assert own_python_files("bkspark", root=tmp_path) == [tmp_path / "bkspark/a.py"]
    assert own_python_files("tests", root=tmp_path) == []


def test_a_tracked_file_that_was_removed_is_not_looked_at(tmp_path: Path) -> None:
    checkout(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "bkspark/a.py", "v/c.py")
    (tmp_path / "bkspark/a.py").unlink()
    assert own_files(tmp_path) == (tmp_path / "v/c.py",)


def test_the_project_has_its_files() -> None:
    names = {path.name for path in own_python_files("bkspark", "tests")}
    assert {"sources.py", "posix_calls.py"} <= names
