"""Directories in which a writer asks whether its record counts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .directory_scene import Scene


@pytest.fixture
def new_scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path / "bk")
    yield scene
    scene.journal.close()


@pytest.fixture(params=[False, True], ids=["new", "known"])
def scene(request: pytest.FixtureRequest, new_scene: Scene) -> Scene:
    """One whose directory was never looked at, and one that an earlier check has met."""
    if request.param:
        new_scene.meet()
    return new_scene


@pytest.fixture
def known(new_scene: Scene) -> Scene:
    new_scene.meet()
    return new_scene
