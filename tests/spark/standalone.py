"""A standalone Spark cluster on this machine: one master, two workers, real executors."""

import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from submitted import SPARK_HOME, environment

_START_SECONDS_MAX = 60.0

_DAEMON = {
    "SPARK_DAEMON_MEMORY": "160m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "SPARK_NO_DAEMONIZE": "1",
}


@contextmanager
def standalone_cluster(folder: Path, extra: Mapping[str, str] | None = None) -> Iterator[str]:
    """Start it, give its ``spark://`` address, and stop all of it whatever happens.

    ``extra`` is for the environment of its processes, which have the package without it.
    """
    variables = {**environment(extra), **_DAEMON}
    with ExitStack() as cleanup:
        master = ["deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
        log = _start(cleanup, variables, folder / "master.log", [*master, "--webui-port", "0"])
        address = _await(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        for number in (1, 2):
            limits = ["--cores", "1", "--memory", "600M", "--work-dir", str(folder / "work")]
            # Spark starts no speculative attempt on a host that has one already.
            ports = ["--host", f"127.0.0.{number}", "--port", "0", "--webui-port", "0"]
            worker = ["deploy.worker.Worker", *ports, *limits, address]
            log = _start(cleanup, variables, folder / f"worker-{number}.log", worker)
            _await(log, r"(Successfully registered with master)")
        yield address


def _start(
    cleanup: ExitStack, variables: Mapping[str, str], log: Path, arguments: Sequence[str]
) -> Path:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                str(SPARK_HOME / "bin/spark-class"),
                f"org.apache.spark.{arguments[0]}",
                *arguments[1:],
            ],
            env=variables,
            cwd=log.parent,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    cleanup.callback(_stop, process)
    return log


def _stop(process: subprocess.Popen[bytes]) -> None:
    """A worker ends its executors when it is asked to end, so it gets the time for it."""
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _await(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.05)
    raise TimeoutError(f"{pattern!r} is not in {log}: {log.read_text(errors='replace')[-2000:]}")
