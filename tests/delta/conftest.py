"""One Spark session with Delta for all tests below this folder.

The jars come from Maven Central once, into a folder that later runs use again:
``BKSPARK_TEST_JARS``, or one in the user's cache.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.delta_session import delta_session
from tests.spark.local_session import sql_conf


@pytest.fixture(scope="session")
def delta_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A quiet local session that writes and reads Delta tables.

    Do not stop it and do not leave settings behind: use the ``conf`` fixture.
    """
    with delta_session(tmp_path_factory.mktemp("delta")) as session:
        yield session


@pytest.fixture
def conf(delta_spark: SparkSession) -> Callable[[dict[str, str]], AbstractContextManager[None]]:
    """``with conf({"spark.sql.…": "true"}): …`` sets runtime SQL settings for the block."""
    return lambda settings: sql_conf(delta_spark, settings)


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Where a test's table is."""
    return str(tmp_path / "table")
