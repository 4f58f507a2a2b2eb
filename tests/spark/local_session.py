"""One quiet local Spark session, for the fixture and for tests that need a process of their own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

TESTS_SPARK = Path(__file__).resolve().parent
REPOSITORY = TESTS_SPARK.parent.parent

_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{3}
"""


def worker_environment(*extra_path: str | os.PathLike[str]) -> dict[str, str]:
    """What Spark's Python workers need: this interpreter, and the test modules importable.

    ``extra_path`` comes first. The repository is listed because Spark looks for data sources
    with ``pkgutil.iter_modules``, which does not see what an editable install's finder provides.
    """
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [*map(str, extra_path), str(TESTS_SPARK), str(REPOSITORY), *filter(None, inherited)]
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def build_session(
    folder: Path,
    master: str,
    conf: Mapping[str, str] | None = None,
    configure: Callable[[Any], Any] = lambda builder: builder,
) -> SparkSession:
    """Start Spark with everything it writes below ``folder``.

    ``configure`` changes the builder. The environment must already be that of
    `worker_environment`: the JVM takes it when it starts.
    """
    log4j = folder / "log4j2.properties"
    log4j.write_text(_LOG4J)
    java = (
        f"-Dlog4j2.configurationFile=file:{log4j}"
        f" -Dderby.system.home={folder / 'derby'}"
        f" -Djava.io.tmpdir={folder}"
        " -Djava.net.preferIPv4Stack=true"
        " -XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # starts and warms up sooner
    )
    settings = {
        "spark.app.name": "bkspark-tests",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": java,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.session.timeZone": "UTC",
        **(conf or {}),
    }
    builder = SparkSession.builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = configure(builder).getOrCreate()
    return session


def stop_session(spark: SparkSession) -> None:
    """Stop Spark and end its JVM, so that nothing is left; does nothing where both are gone.

    A session with Delta stops the one before it, and that one's fixture ends last.
    """
    gateway: Any = spark.sparkContext._gateway
    if gateway is None or gateway.proc.poll() is not None:
        return
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(timeout=30)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


@contextmanager
def sql_conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Runtime SQL settings for the duration of a ``with`` block."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def run_python(
    arguments: Sequence[str],
    *,
    extra_path: Sequence[Path] = (),
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in a new process with the environment Spark's workers get."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **worker_environment(*extra_path)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
