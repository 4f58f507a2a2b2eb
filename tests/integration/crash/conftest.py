"""A fork server for the tests of this folder.

The tests of single system calls are there only where strace is, which nothing else needs.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes import Processes, processes

HAS_STRACE = shutil.which("strace") is not None
collect_ignore = [] if HAS_STRACE else ["test_system_calls.py"]


def pytest_report_header() -> str:
    hint = "" if HAS_STRACE else " is missing: no tests of single system calls (Debian: strace)"
    return f"strace{hint or ': found'}"


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    folder: Path = tmp_path_factory.mktemp("forks")
    with processes(folder) as found:
        yield found
