"""Which files are the project's own: those that git tracks, and not what lies beside them.

A virtual environment of any name, or a build, may lie in the checkout. A source distribution has no
git; then every file below the project's own folders counts.
"""

import os
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("bkspark", "pyspark_bookkeeper", "jobs", "examples", "conf", "tests")
_NO_SOURCES = {"__pycache__", "site-packages", "node_modules"}


@cache
def own_files(root: Path = ROOT) -> tuple[Path, ...]:
    """All files of the project, sorted."""
    tracked = _tracked(root)
    if tracked:
        return tuple(path for path in sorted(tracked) if path.is_file())
    found = (path for folder in FOLDERS for path in sorted((root / folder).rglob("*")))
    return tuple(path for path in found if path.is_file() and not _is_installed(path, root))


def own_python_files(*folders: str, root: Path = ROOT) -> list[Path]:
    """Modules of the project in ``folders``, or all of them."""
    return [
        path
        for path in own_files(root)
        if path.suffix == ".py" and (not folders or path.relative_to(root).parts[0] in folders)
    ]


def _tracked(root: Path) -> list[Path]:
    """What git tracks below ``root``; nothing if git or a repository is not there."""
    # Where a git hook runs the tests, git's variables name another repository's index.
    around = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "ls-files", "-z"], cwd=root, env=around, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return []
    return [root / os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _is_installed(path: Path, root: Path) -> bool:
    """Whether ``path`` lies in a virtual environment, or was made by running something."""
    parts = path.relative_to(root).parts
    if _NO_SOURCES.intersection(parts):
        return True
    above = (root.joinpath(*parts[:count]) for count in range(1, len(parts)))
    return any((folder / "pyvenv.cfg").is_file() for folder in above)
