"""Clusters for the tests of this folder."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.log import rolling

from .rig import Rig


@pytest.fixture(autouse=True)
def _writers_that_are_left_open_stay_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that a test leaves short of bookies does not meet the faults of later tests."""
    monkeypatch.setattr(rolling, "LOOK_SECONDS", 3_600.0)


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


@pytest.fixture
def memory_keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    """A connection to that cluster, whose storage can be made to fail."""
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[..., list[str]]:
    """``said(level, *words)``: what our loggers told at this level that has all these words."""
    caplog.set_level(logging.INFO, "bkspark")

    def find(level: int, *words: object) -> list[str]:
        told = [r for r in caplog.records if r.name.startswith("bkspark.") and r.levelno == level]
        lines = [record.getMessage() for record in told]
        return [line for line in lines if all(str(word) in line for word in words)]

    return find
