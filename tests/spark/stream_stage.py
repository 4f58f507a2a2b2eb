"""A stage for streams under kills: a cluster, a folder of files, and drivers of ``stream_job.py``.

The drivers stream the files into a log, and on into others if there is more than one. They can be
killed, paused and doubled; whatever happens, every row has to be in every log once. The logs are
read here without Spark, so a stage needs no session.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from local_session import worker_environment
from stream_job import LOG

from bkspark import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.log.recovering import close_tail

JOB = Path(__file__).parent / "stream_job.py"
Row = tuple[int, str]

ROWS_PER_FILE = 20
DEADLINE_SECONDS = 300.0
"""Much more than it takes, also on a machine that does ten other things."""


def make_cluster(folder: Path, bookie_count: int) -> str:
    """A new cluster in files below ``folder``; its metadata URI."""
    uri = (folder / "metadata").as_uri()
    folder.mkdir()
    init_cluster(uri, [(folder / f"bookie-{n + 1}").as_uri() for n in range(bookie_count)])
    return uri


class Stage:
    """Drivers that stream the same files into the logs of one cluster.

    Args:
        logs: the first gets the files, each of the others what is in the one before.
        unbounded: whether each is one ledger, which its drivers take over from one another.
    """

    def __init__(
        self, uri: str, folder: Path, logs: Sequence[str] = (LOG,), *, unbounded: bool = False
    ) -> None:
        self.uri = uri
        self.folder = folder
        self.logs = list(logs)
        self.is_unbounded = unbounded
        self.source = folder / "source"
        self.source.mkdir()
        self.output = folder / "output"
        self.file_count = 0
        (folder / "uri").write_text(uri)
        (folder / "logs").write_text("\n".join(logs))
        (folder / "unbounded").write_text(str(unbounded).lower())

    # --- what is to be streamed ------------------------------------------------------------------

    def feed(self, count: int) -> None:
        """So many more files; Spark takes them by their time."""
        for number in range(self.file_count, self.file_count + count):
            ids = range(number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE)
            file = self.source / f".{number}"
            file.write_text("".join(f"{i},row {i}\n" for i in ids))
            os.utime(file, (1_700_000_000 + number,) * 2)
            file.rename(self.source / f"{number:05}.csv")
        self.file_count += count

    def committed_batches(self, log: str | None = None) -> int:
        """By Spark's own reckoning, of the query that writes to ``log``, or to the first one."""
        checkpoint = self.folder / f"to-{log or self.logs[0]}"
        return sum(file.name.isdigit() for file in checkpoint.glob("commits/*"))

    # --- drivers ---------------------------------------------------------------------------------

    @contextmanager
    def driver(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, str(JOB), str(self.folder), *arguments],
                env={**os.environ, **worker_environment()},
                stdout=output,
                stderr=output,
            )
        try:
            yield process
        finally:
            self.kill(process)
            process.wait(DEADLINE_SECONDS)
            # The number may be another process's soon.
            shutil.rmtree(self.folder / f"job-{process.pid}", ignore_errors=True)

    def pids(self, process: subprocess.Popen[bytes]) -> list[int]:
        """The driver's JVM, once it runs, and its Python process."""
        file = self.folder / f"job-{process.pid}" / "pids"
        wait_until(lambda: file.exists() or process.poll() is not None)
        return [int(pid) for pid in file.read_text().split()]

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Its JVM first; a commit that is under way in a process of its own goes on."""
        file = self.folder / f"job-{process.pid}" / "pids"
        for pid in file.read_text().split() if file.exists() else [str(process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def kill_at_a_moment(self, moment: str) -> int:
        """In the second batch of the driver: in the first the tail is taken over, then it is held.

        Of several logs the last is meant. Returns how many drivers were killed, which is one.
        """
        batch_id = self.committed_batches(self.logs[-1]) + random.randint(0, 1)
        with self.driver(f"kill {moment}", str(batch_id)) as process:
            assert process.wait(DEADLINE_SECONDS) == -signal.SIGKILL, self.said()
        return 1

    def kill_at_random(self, chance: random.Random) -> int:
        """Somewhere behind the first batch into one of the logs: all of the driver, or its JVM.

        Returns how many drivers were killed: none if it was done before.
        """
        log = chance.choice(self.logs)
        before = self.committed_batches(log)
        with self.driver() as process:
            pids = self.pids(process)
            wait_until(lambda: self.committed_batches(log) > before or process.poll() is not None)
            time.sleep(chance.random() * 0.6)
            is_done = process.poll() is not None
            for pid in pids[: chance.randint(1, 2)]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return int(not is_done)

    def finish(self) -> None:
        """Run a driver to its end."""
        with self.driver() as process:
            assert process.wait(DEADLINE_SECONDS) == 0, self.said()

    def said(self) -> str:
        """The end of what all drivers have printed."""
        return self.output.read_text(errors="replace")[-6000:]

    # --- what came of it -------------------------------------------------------------------------

    def check(self) -> None:
        """Every row of every file is in every log once, as it was.

        In the first log the rows of one file are side by side. Files may change places within a
        batch: Spark puts two into one if it was killed before it had written the batch down, and
        gives the larger first.
        """
        expected = [(n, f"row {n}") for n in range(self.file_count * ROWS_PER_FILE)]
        with Cluster(self.uri) as cluster, BookKeeper(self.uri) as bookkeeper:
            for name in self.logs:
                close_tail(cluster, name, Password())
                found = bookkeeper.open_log(name).read_arrow().to_pylist()
                rows = [(row["id"], row["text"]) for row in found]
                if self.is_unbounded:
                    assert len(cluster.log(name).value.listed_ids) == 1
                assert sorted(rows) == expected, name
                if name == self.logs[0]:
                    assert rows == list(_file_by_file(rows, expected))


def _file_by_file(rows: Sequence[Row], expected: Sequence[Row]) -> Iterator[Row]:
    """The files whose first rows are in their places in ``rows``, each as it was written."""
    for first, _text in rows[::ROWS_PER_FILE]:
        yield from expected[first : first + ROWS_PER_FILE]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
