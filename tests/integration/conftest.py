"""Clusters for the tests of this folder."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bkspark.client.bookkeeper import BookKeeper

from .rig import Rig


@pytest.fixture
def make_rig(tmp_path: Path) -> Callable[..., Rig]:
    """A new cluster with each call: ``make_rig(kind="file", bookie_count=3)``."""
    numbers = iter(range(1000))

    def make(**settings: Any) -> Rig:
        return Rig(tmp_path / f"cluster{next(numbers)}", **settings)

    return make


@pytest.fixture(params=["memory", "file"])
def rig(request: pytest.FixtureRequest, make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind=request.param)


@pytest.fixture
def memory_rig(make_rig: Callable[..., Rig]) -> Rig:
    """Seven bookies and the metadata, all in memory: for very many small histories."""
    return make_rig(kind="memory", metadata="memory", bookie_count=7)


@pytest.fixture
def keeper(rig: Rig) -> Iterator[BookKeeper]:
    """A connection to the cluster of the test."""
    with BookKeeper(rig.uri) as keeper:
        yield keeper
