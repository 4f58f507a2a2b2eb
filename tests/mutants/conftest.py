"""One copy of the package for all mutants."""

from collections.abc import Iterator

import pytest

from .running import Copy, copy_of_package


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    with copy_of_package(tmp_path_factory.mktemp("mutants")) as copy:
        yield copy
