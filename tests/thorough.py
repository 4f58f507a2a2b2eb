"""What CI runs and a newcomer need not wait for: ``pytest -m thorough``.

Whatever is promised is shown by a test that runs always. Marked are more points of the same, and
what takes servers, clusters or many processes: a test, a file (``pytestmark``), a folder
(`FOLDERS`), or some of a test's parameters (`always`).

How many of them there is time for depends on the host. `END` in the environment is when the last of
them begins; those that did not are named as skipped.
"""

import os
import time
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
FOLDERS = (TESTS / "spark/facts", TESTS / "delta")
"""Facts about Spark change with its version alone; Delta comes from the internet."""
DOWNLOADS = (TESTS / "delta",)
END = "BKSPARK_THOROUGH_UNTIL"
"""Seconds since 1970."""

COLLECTED = pytest.StashKey[dict[str, bool]]()
"""Every test that was found, without parameters: whether some of it runs always."""


def always(
    chosen: Container[Any],
    values: Iterable[Any],
    *,
    are_rows: bool = False,
    soaks: Container[Any] = (),
) -> list[Any]:
    """``values`` as parameters of a test; those that are not ``chosen`` are run by CI alone.

    Args:
        are_rows: whether each value is a tuple of several parameters.
        soaks: values that CI leaves to soaks.
    """

    def marks(value: Any) -> Any:
        if value in chosen:
            return ()
        return pytest.mark.soak if value in soaks else pytest.mark.thorough

    return [
        pytest.param(*(value if are_rows else (value,)), marks=marks(value)) for value in values
    ]


def mark_folders(items: Iterable[pytest.Item]) -> None:
    for item in items:
        if item.path.parent in FOLDERS and item.get_closest_marker("soak") is None:
            item.add_marker(pytest.mark.thorough)
        if item.path.parent in DOWNLOADS:
            item.add_marker(pytest.mark.download)


def mark_second_kinds(items: Iterable[pytest.Item]) -> None:
    """Of each file, the first test runs on bookies in folders too, the others in memory alone.

    Both kinds pass one conformance suite, so a test on each shows the same twice.
    """
    seen: dict[Path, str] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            if item.callspec.params.get("rig") != "file":
                continue
            if seen.setdefault(item.path, item.originalname) != item.originalname:
                item.add_marker(pytest.mark.thorough)


def note_what_runs_always(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    found = config.stash.setdefault(COLLECTED, {})
    for item in items:
        name = item.nodeid.partition("[")[0]
        is_marked = any(item.get_closest_marker(name) for name in ("thorough", "soak"))
        found[name] = found.get(name, False) or not is_marked


def leave_out_what_came_too_late(item: pytest.Item) -> None:
    is_late = time.time() > float(os.environ.get(END, "inf"))
    if is_late and item.get_closest_marker("thorough") is not None:
        pytest.skip(f"this host was too slow to come to it before {END}")
