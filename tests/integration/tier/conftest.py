"""A log with a table, for the tests that look at both."""

from pathlib import Path

import pytest

from .interrupted import MemoryScene


@pytest.fixture
def scene(tmp_path: Path) -> MemoryScene:
    """All three ledgers of a log, of 10 rows each, are copied in three segments."""
    scene = MemoryScene(tmp_path)
    scene.offload(segment_bytes=1)
    return scene
