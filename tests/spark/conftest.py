"""One Spark session for all tests below this folder."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

# Test modules and the data sources they define are imported by the same name here and in
# Spark's Python workers, whose path is set in local_session.py.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from local_session import build_session, sql_conf, stop_session, worker_environment
from places import Place, make_place


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A quiet local session; ``BKSPARK_TEST_MASTER`` names another master than ``local[2]``.

    Do not stop it and do not leave settings behind: use the ``conf`` fixture.
    """
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        for key, value in worker_environment().items():
            patch.setenv(key, value)
        session = build_session(folder, os.environ.get("BKSPARK_TEST_MASTER", "local[2]"))
        try:
            yield session
        finally:
            stop_session(session)


@pytest.fixture
def conf(spark: SparkSession) -> Callable[[dict[str, str]], AbstractContextManager[None]]:
    """``with conf({"spark.sql.…": "true"}): …`` sets runtime SQL settings for the block."""
    return lambda settings: sql_conf(spark, settings)


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Place:
    """A new cluster of three bookies."""
    return make_place(spark, tmp_path)


@pytest.fixture
def wide_place(spark: SparkSession, tmp_path: Path) -> Place:
    """A new cluster of five bookies: with the usual quorum two of them are spares."""
    return make_place(spark, tmp_path, bookie_count=5)


@pytest.fixture(scope="module")
def shared_place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """One cluster for a module whose tests name different logs or only read."""
    return make_place(spark, tmp_path_factory.mktemp("place"))
