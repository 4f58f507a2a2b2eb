"""What every benchmark with Spark runs in: a local session and a folder, both gone at the end."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession


@contextmanager
def stage(
    parent: Path | None,
    settings: dict[str, str],
    prepared: Callable[[SparkSession.Builder], SparkSession.Builder] = lambda builder: builder,
) -> Iterator[tuple[SparkSession, Path]]:
    """A quiet session on two cores, and a new folder.

    Args:
        prepared: adds to the builder of the session.
        parent: where to make the folder; None for the usual place of temporary ones.
        settings: of Spark, beyond what keeps it quiet.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        spark = prepared(builder).getOrCreate()
        try:
            yield spark, Path(folder)
        finally:
            spark.stop()
