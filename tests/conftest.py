"""For all tests: what they start, starts quickly; some folders are for CI alone."""

import gc
import os
import random
import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from bkspark import environment

from .quick_starts import ARCHIVE, quick_starts
from .scheduling import in_order, make_scheduler
from .thorough import (
    leave_out_what_came_too_late,
    mark_folders,
    mark_second_kinds,
    note_what_runs_always,
)

if settings.get_current_profile_name() == "default":
    # How long an example takes says how busy the host is, and the second time it is another time.
    settings.register_profile("tests", deadline=None)
    settings.load_profile("tests")
gc.disable()  # until all tests are found: nearly all that is made until then is kept
ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # behind what is installed: for processes that are given our functions


@pytest.fixture(scope="session", autouse=True)
def _quick_starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # one for all workers
    with pytest.MonkeyPatch.context() as patch:
        for key, value in quick_starts(folder / "quick").items():
            patch.setenv(key, value)
        yield
    (folder / "quick" / ARCHIVE).unlink(missing_ok=True)  # large, and folders of tests are kept


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _numbers: "count[int]"
) -> Path:
    """A new folder. Pytest's own would look at those of all earlier tests for its number."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}-{next(_numbers)}"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(scope="session")
def _numbers() -> "count[int]":
    return count()


@pytest.fixture(autouse=True)
def _forgetful(request: pytest.FixtureRequest) -> None:
    """No test knows what another one has met, or is red one day and green the next by chance.

    Who wants more chances than one draws them in the test: the simulations live from that.
    """
    environment.THE_REAL_ONE.forget()
    random.seed(request.node.nodeid)


@pytest.hookimpl(tryfirst=True)  # before what is not asked for is left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_folders(items)
    mark_second_kinds(items)
    items.sort(key=in_order)
    note_what_runs_always(config, items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """No later collection of garbage looks at the tests themselves."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return make_scheduler(config, log)


@pytest.hookimpl(tryfirst=True)  # before its fixtures start servers
def pytest_runtest_setup(item: pytest.Item) -> None:
    leave_out_what_came_too_late(item)
