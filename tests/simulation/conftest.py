"""A simulated process that dies leaves generators behind, and their ends meet its death again.

When that comes is not determined, and no task is there that could be told.
"""

from pathlib import Path

import pytest

LEFT_BEHIND = "ignore:Exception ignored in. <generator:pytest.PytestUnraisableExceptionWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings(LEFT_BEHIND))
