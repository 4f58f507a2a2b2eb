"""Running programs with spark-submit, each with a driver of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark
from local_session import worker_environment

SPARK_HOME = Path(pyspark.__file__).parent

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
}


def submission(
    script: Path, folder: Path, conf: Mapping[str, str], arguments: Sequence[str] = ()
) -> list[str]:
    """The command that runs ``script``; all that Spark itself writes is below ``folder``."""
    own = {
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder} -XX:+UseSerialGC"
        " -XX:TieredStopAtLevel=1",
    }
    settings = {"spark.master": "local[1]", **_QUIET, **own, **conf}
    pairs = [part for item in settings.items() for part in ("--conf", "=".join(item))]
    return [str(SPARK_HOME / "bin/spark-submit"), *pairs, str(script), *arguments]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """For a process in which the package is installed."""
    return {**os.environ, **worker_environment(), **(extra or {})}


def run(
    command: Sequence[str], folder: Path, extra: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run in ``folder``; the last line of output is JSON. Adds ``output``, all that was said."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(extra),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**outcome, "output": done.stdout + done.stderr}


def environment_without_the_package(folder: Path) -> dict[str, str]:
    """Another interpreter, for which everything but this package is importable."""
    site = SPARK_HOME.parent
    bare = folder / "site"
    bare.mkdir()
    for entry in site.iterdir():
        is_own = "bkspark" in entry.name or entry.name == "pyspark_bookkeeper"
        if not is_own and entry.suffix != ".pth":
            (bare / entry.name).symlink_to(entry)
    python = str(getattr(sys, "_base_executable", sys.executable))
    return {"PYTHONPATH": str(bare), "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
