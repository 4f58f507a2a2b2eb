"""A Spark session with Delta, for tests.

    with delta_session(folder) as spark:
        spark.range(5).write.format("delta").save(path)

The jars come from Maven Central once, into a folder that later runs use again. One process at a
time fills it: Ivy does not lock its cache.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark import SparkContext
from pyspark.sql import SparkSession

import bkspark
from tests.spark.local_session import build_session, stop_session, worker_environment

_SMALL = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.io.skipping.mdc.rangeId.max": "4",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.default.parallelism": "1",
    "spark.driver.memory": "2g",
    # Tables are small: compiling their queries takes longer than running them.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    # A VACUUM lists its folder by so many tasks, 10,000 by default.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


def jars_folder() -> Path:
    """Where the jars are kept between runs."""
    given = os.environ.get("BKSPARK_TEST_JARS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(given) if given else cache / "bkspark-tests" / "jars"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def delta_session(
    folder: Path, conf: Mapping[str, str] | None = None, *, jars: str = ""
) -> Iterator[SparkSession]:
    """Start a session with Delta for the block; it writes below ``folder``.

    A session that runs in this process is stopped, with its driver: a driver takes jars only when
    it starts.

    Args:
        jars: what another session found (``jars_of``), so that this one need not look for it.
    """
    _stop_other()
    settings = {**_SMALL, **(conf or {})}
    with patch.dict(os.environ, worker_environment()):
        if jars:
            settings["spark.jars"] = jars
            session = build_session(folder, "local[2]", settings, _configure_without_maven)
        else:
            with _jars_locked() as found:
                settings["spark.jars.ivy"] = str(found)
                session = build_session(folder, "local[2]", settings, bkspark.configure_delta)
        try:
            yield session
        finally:
            stop_session(session)
            _forget_driver()


@contextmanager
def ready_for_delta(environment: dict[str, str]) -> Iterator[None]:
    """Let a program that is started with this environment take the jars that are kept."""
    with _jars_locked() as jars:
        environment["PYSPARK_SUBMIT_ARGS"] = f"--conf spark.jars.ivy={jars} pyspark-shell"
        yield


def jars_of(session: SparkSession) -> str:
    """The jars that the session found, for sessions of other processes."""
    return str(session.sparkContext.getConf().get("spark.jars"))


@contextmanager
def _jars_locked() -> Iterator[Path]:
    jars = jars_folder()
    with (jars / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield jars


def _configure_without_maven(builder: Any) -> Any:
    return bkspark.configure_delta(builder).config("spark.jars.packages", "")


def _stop_other() -> None:
    running = SparkSession.getActiveSession()
    if running is not None:
        stop_session(running)
    _forget_driver()


def _forget_driver() -> None:
    """Let the next session start a driver of its own."""
    context: Any = SparkContext
    context._gateway = context._jvm = None
