"""A standalone Spark cluster on this machine: one master, two workers, real executors."""

import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from submitted import SPARK_HOME, environment

_START_SECONDS_MAX = 60.0

SPECULATING = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
}
"""Settings of a job: small executors, and a second attempt of a task that takes long."""

_DAEMON = {
    "SPARK_DAEMON_MEMORY": "160m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "SPARK_NO_DAEMONIZE": "1",
}


class StandaloneCluster:
    """Its processes. A worker can be killed from outside and started again.

    Attributes:
        address: as a driver's master.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.address = ""
        self._folder = folder
        self._variables = variables
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        words = ["deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        pattern = r"Starting Spark master at (spark://127\.0\.0\.1:\d+)"
        self.address = self._start("master", words, pattern)
        for number in (1, 2):
            self._start_worker(f"worker-{number}")

    def restart_dead_workers(self) -> None:
        for name, process in self._processes.items():
            if process.poll() is not None:
                self._start_worker(name)

    def stop(self) -> None:
        """A worker ends its executors when it is asked to end, so it gets the time for it."""
        for process in reversed(self._processes.values()):
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start_worker(self, name: str) -> None:
        work = str(self._folder / "work")
        limits = ["--cores", "1", "--memory", "600M", "--work-dir", work]
        # Spark starts no speculative attempt on a host that has one already.
        host = f"127.0.0.{name.removeprefix('worker-')}"
        ports = ["--host", host, "--port", "0", "--webui-port", "0"]
        words = ["deploy.worker.Worker", *ports, *limits, self.address]
        self._start(name, words, "(Successfully registered with master)")

    def _start(self, name: str, words: Sequence[str], pattern: str) -> str:
        """Return what ``pattern`` finds in the output."""
        log = self._folder / f"{name}.log"
        command = [str(SPARK_HOME / "bin/spark-class"), f"org.apache.spark.{words[0]}", *words[1:]]
        with log.open("wb") as output:
            self._processes[name] = subprocess.Popen(
                command, env=self._variables, cwd=self._folder, stdout=output, stderr=output
            )
        return _await(log, pattern)


@contextmanager
def standalone_processes(
    folder: Path, extra: Mapping[str, str] | None = None
) -> Iterator[StandaloneCluster]:
    """Start a cluster, and stop all of it whatever happens.

    ``extra`` is for the environment of its processes, which have the package without it.
    """
    cluster = StandaloneCluster(folder, {**environment(extra), **_DAEMON})
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def standalone_cluster(folder: Path, extra: Mapping[str, str] | None = None) -> Iterator[str]:
    """As ``standalone_processes``; gives the ``spark://`` address."""
    with standalone_processes(folder, extra) as cluster:
        yield cluster.address


def _await(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.05)
    raise TimeoutError(f"{pattern!r} is not in {log}: {log.read_text(errors='replace')[-2000:]}")
