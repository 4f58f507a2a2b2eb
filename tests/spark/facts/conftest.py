"""Fixtures of the tests that pin what Spark itself does."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from facts.probe_source import SOURCES


@pytest.fixture(autouse=True, scope="session")
def _probe_sources(spark: SparkSession) -> None:
    for source in SOURCES:
        spark.dataSource.register(source)


@pytest.fixture
def journal(tmp_path: Path) -> str:
    """The folder where the probe sources note their calls."""
    folder = tmp_path / "journal"
    folder.mkdir()
    return str(folder)
