"""For all tests: what they start, starts quickly."""

import os
from collections.abc import Iterator

import pytest

from .quick_starts import ARCHIVE, quick_starts


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
