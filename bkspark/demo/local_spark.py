"""An isolated local Spark: all its files and output go into one folder."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

_STOP_SECONDS_MAX = 30

# Settings that would replace the fresh local Spark by another Spark.
_FOREIGN_VARIABLES = ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")


@contextmanager
def local_spark(folder: Path) -> Iterator[SparkSession]:
    """Start a session on two cores; make ``folder`` for its files and its log, ``spark.log``."""
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    (folder / "conf").mkdir()
    with _environment(folder), _temporary_files(temporary), ExitStack() as cleanup:
        conf = SparkConf(loadDefaults=False).setAll(list(_settings(folder).items()))
        # An interrupted launch would leave a JVM that is never stopped. The launch also installs
        # a handler that calls the JVM in the middle of another call.
        with _interrupts_deferred():
            with open(folder / "spark.log", "wb") as log:
                streams = {"stdout": log, "stderr": subprocess.STDOUT}
                gateway = launch_gateway(conf, streams)  # type: ignore[no-untyped-call]
            cleanup.callback(_stop, gateway)
            session = SparkSession(SparkContext(conf=conf, gateway=gateway))
            cleanup.callback(_end, session)
        yield session


def _settings(folder: Path) -> dict[str, str]:
    return {
        "spark.app.name": "bkspark demo",
        "spark.master": "local[2]",
        "spark.default.parallelism": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "tmp"),
        "spark.log.level": "WARN",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """Set the environment of Spark's launcher, its JVM and its Python workers."""
    options = (f"-Djava.io.tmpdir={folder / 'tmp'}", f"-Dderby.system.home={folder}")
    added = {
        # Quoted, because the folder's name may have spaces; no files below /tmp/hsperfdata_*.
        "JAVA_TOOL_OPTIONS": " ".join(["-XX:-UsePerfData", *(f"'{o}'" for o in options)]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(folder / "tmp"),
    }
    before = dict(os.environ)
    try:
        for name in _FOREIGN_VARIABLES:
            os.environ.pop(name, None)
        os.environ.update(added)
        yield
    finally:
        _restore(before)


def _restore(before: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(before)


@contextmanager
def _temporary_files(folder: Path) -> Iterator[None]:
    """Put Python's own temporary files into ``folder`` during the block."""
    before = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts come to the main thread only
        return
    pending: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pending.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pending:
        raise KeyboardInterrupt


def _end(session: SparkSession) -> None:
    """End Spark inside the JVM if the JVM answers; ``_stop`` ends the rest."""
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        session.stop()


def _stop(gateway: Any) -> None:
    """End the JVM and the workers, and wait until the JVM is gone."""
    process: subprocess.Popen[bytes] = gateway.proc
    with _interrupts_deferred():
        with suppress(Exception):  # after an interrupt the JVM may be unable to answer
            gateway.shutdown()
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
