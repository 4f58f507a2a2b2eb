"""An operator's commands in a process of their own, which kills itself at a chosen moment.

    python offload_driver.py FOLDER JARS URI TABLE COMMAND [MOMENT]
    python offload_driver.py

COMMAND is ``offload`` or ``collect``. A collection runs twice, since each run takes one step. An
offload has a session with Delta of its own. FOLDER gets its files, and a file ``pids`` with the
processes to kill; JARS are those of Delta. At the MOMENT all of them are killed.

Without arguments it is a server. Each line of its input is a list of arguments in JSON, for which
it forks a driver; it says how that ended. For JARS such a driver is given the gateway of a Spark
that runs already, and that goes on when the driver is killed: so is what the driver had asked for.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from bkspark import cli
from bkspark.admin.collecting import collection
from bkspark.admin.offloading import freeing
from bkspark.admin.offloading import offload as offloading
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.cluster.log_records import TierPages
from bkspark.protocol.log import offloading as rules
from bkspark.spark.offload import SparkCopier
from tests.integration.rig import LOG
from tests.kit.delta_session import delta_session

AT_ONCE = ("--offload-grace", "0", "--abandoned-after", "0")
SMALL = {
    "spark.driver.memory": "1g",
    "spark.master": "local[1]",
    # Compiling takes longer than such a short life.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass(frozen=True)
class Moment:
    """Before or after a call of a function: the first one, or a later one."""

    owner: Any
    name: str
    is_after: bool = True
    call: int = 1


WRITTEN = "a data file is written"
"""The commit that names the file has not been made, or is being made."""

OF_OFFLOAD = {
    "before the table": Moment(SparkCopier, "create", is_after=False),
    "after the table": Moment(SparkCopier, "create"),
    "before the record gets the intent": Moment(rules, "attached"),
    "after the intent": Moment(SparkCopier, "append", is_after=False),
    WRITTEN: Moment(SparkCopier, "append", is_after=False),
    "after the commit": Moment(SparkCopier, "append"),
    "after the files are durable": Moment(offloading, "sync_files"),
    "after the comparison": Moment(offloading, "verified"),
    "after the digests": Moment(TierPages, "make_digests"),
    "before the record gets the segment": Moment(rules, "finished"),
    "after the segment": Moment(rules, "with_intent", is_after=False),
    "before the record gets the second intent": Moment(rules, "with_intent"),
    "after the second commit": Moment(SparkCopier, "append", call=2),
    "before the record gets the second segment": Moment(rules, "finished", call=2),
}
OF_COLLECTION = {
    "before the first look": Moment(freeing, "_require_rows", is_after=False),
    "before the record frees": Moment(rules, "freed"),
    "after the record freed": Moment(freeing, "change_seen"),
    "before the second look": Moment(freeing, "_require_rows", is_after=False, call=2),
    "after the second look": Moment(offloading, "require_durable"),
    "before the record releases": Moment(rules, "released"),
    "after the record released": Moment(freeing, "change_seen", call=2),
    "a ledger is to be deleted": Moment(collection, "make_tombstone"),
    "files are deleted": Moment(collection.Collector, "_free"),
    "a ledger is noted as gone": Moment(GoneLedgers, "note"),
}
GATEWAY = "gateway "
"""Before the port and the secret of a running Spark."""
MOMENTS = {**OF_OFFLOAD, **OF_COLLECTION}


@contextmanager
def hooked(moment: Moment, act: Callable[[], None]) -> Iterator[None]:
    """Call ``act`` at the moment."""
    real, calls = getattr(moment.owner, moment.name), 0

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        is_now = calls == moment.call
        if is_now and not moment.is_after:
            act()
        result = real(*given, **named)
        if is_now and moment.is_after:
            act()
        return result

    with patch.object(moment.owner, moment.name, counted):
        yield


def kill(pids: Path) -> None:
    """Kill the JVM, if there is one, and then this process."""
    for pid in pids.read_text().split():
        os.kill(int(pid), signal.SIGKILL)


def kill_soon(pids: Path, table: Path) -> None:
    """Kill all as soon as the folder of the table has a data file."""

    def wait() -> None:
        while not any(table.glob("*.parquet")):
            time.sleep(0.001)
        kill(pids)

    threading.Thread(target=wait, daemon=True).start()


def run(uri: str, table: str, command: str) -> int:
    """Run the command; return the first exit status that is not 0."""
    offload = ("offload", LOG, "--table", table, "--accept-single-copy", "--segment-bytes", "1")
    wanted = [offload] if command == "offload" else [("collect", *AT_ONCE)] * 2
    return next(filter(None, (cli.main(["--metadata", uri, *one]) for one in wanted)), 0)


def main(folder: Path, jars: str, uri: str, table: str, command: str, name: str = "") -> int:
    pids = folder / "pids"

    def act() -> None:
        if name == WRITTEN:
            kill_soon(pids, Path(table))
        else:
            kill(pids)

    with session(folder, jars, command) as spark:
        gateway: Any = spark and spark.sparkContext._gateway
        own = [gateway.proc.pid] if gateway and gateway.proc else []
        (folder / "pids.new").write_text(" ".join(map(str, [*own, os.getpid()])))
        (folder / "pids.new").rename(pids)
        with hooked(MOMENTS[name], act) if name else nullcontext():
            return run(uri, table, command)


def session(folder: Path, jars: str, command: str) -> Any:
    """A session with Delta, which the offload takes; a collection needs none."""
    if command != "offload":
        return nullcontext()
    if jars.startswith(GATEWAY):
        return nullcontext(running_session(*jars.removeprefix(GATEWAY).split()))
    return delta_session(folder, SMALL, jars=jars)


def running_session(port: str, secret: str) -> SparkSession:
    """A session of the Spark with this gateway."""
    os.environ.update(PYSPARK_GATEWAY_PORT=port, PYSPARK_GATEWAY_SECRET=secret)
    launch: Any = launch_gateway
    gateway = launch()
    running = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    context = gateway.jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(running)
    sessions = gateway.jvm.org.apache.spark.sql.classic.SparkSession
    own = sessions.getDefaultSession().get().newSession()
    return SparkSession(SparkContext(gateway=gateway, jsc=context), own)


def serve() -> None:
    """Fork drivers, one after the other."""
    for line in sys.stdin:
        folder, *given = json.loads(line)
        pid = os.fork()
        if not pid:
            drive(Path(folder), *given)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def drive(folder: Path, *given: str) -> NoReturn:
    """Be a driver, and end."""
    status = 1
    try:
        with (folder / "output").open("wb") as output:
            os.dup2(output.fileno(), sys.stdout.fileno())
            os.dup2(output.fileno(), sys.stderr.fileno())
        status = main(folder, *given)
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    assert SparkSession.getActiveSession() is None
    if len(sys.argv) == 1:
        serve()
    else:
        sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
