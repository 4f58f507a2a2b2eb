"""What each operation costs on each store, counted and not timed.

    python -m tests.benchmarks.costs [--store zookeeper] [--store s3] [--trace OPERATION]
        [--prices FILE]

At ZooKeeper the server counts: a quorum write is a step of its transaction ids, and a packet is one
that it received. An operation finds the session of the one before it, as in Spark's processes; a
process without one pays for "a session" too. At S3 each request of this process counts. Beside
ZooKeeper the bookies are directories; at S3 bookies and metadata are prefixes of one bucket.

The last column is the price of a million operations in US dollars, by the prices of requests in a
TOML file (``prices.toml`` beside this module). A line below the table has the price of the requests
that write a terabyte of rows in files of 1 GiB. Stored and moved bytes cost extra.
"""

import argparse
import socket
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table

from bkspark import BookKeeper, environment
from bkspark.cluster.cluster import init_cluster
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log.log_handle import LogHandle
from bkspark.metadata import freshness
from bkspark.metadata.kept_sessions import KeptSessions
from bkspark.metadata.uri import open_store
from bkspark.metadata.zookeeper_session import ZooKeeperSession
from bkspark.spark.source import BookKeeperDataSource
from bkspark.storage import connection
from bkspark.storage.objects import PART_BYTES
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import Driver
from tests.kit.s3 import s3_server
from tests.kit.zookeeper import zookeeper

SILENT = WriterSettings(explicit_lac_ms=0)
IDLE_LOOKS = 20
"""Looks of a reader that waits; their mean counts."""

PRICES = Path(__file__).with_name("prices.toml")

WRITES, PACKETS, REQUESTS = "writes", "packets", "requests"


@dataclass(frozen=True)
class Cost:
    """What one operation took.

    Attributes:
        counts: how many of each kind.
        trace: what was asked, in order.
    """

    operation: str
    counts: Counter[str]
    trace: tuple[str, ...]


def dollars(cost: Cost, prices: Mapping[str, float]) -> float:
    """The price of a million operations; ``prices`` are of a million requests of each kind.

    Raises:
        KeyError: a kind of request has no price.
    """
    return sum(n * prices[kind] for kind, n in cost.counts.items() if kind != REQUESTS)


def terabyte(copies: int = 3, file_bytes: int = 2**30) -> Cost:
    """The requests that write a terabyte of rows, computed from the length of a part."""
    files = copies * -(-(10**12) // file_bytes)
    parts = files * -(-file_bytes // PART_BYTES)
    ends = Counter(create_multipart_upload=files, complete_multipart_upload=files)
    return Cost("a terabyte of rows", ends + Counter(upload_part=parts), ())


class Meter(Protocol):
    """Counts what a store was asked so far."""

    trace: list[str]

    def read(self) -> Counter[str]: ...


@dataclass
class ZooKeeperMeter:
    """Asks the server itself."""

    address: str
    trace: list[str] = field(default_factory=list)
    _own_packets: int = 0

    def read(self) -> Counter[str]:
        host, _, port = self.address.partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as asked:
            asked.sendall(b"srvr")
            answer = b"".join(iter(lambda: asked.recv(4096), b"")).decode()
        fields = dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)
        self._own_packets += 1
        received = int(fields["Received"]) - self._own_packets
        return Counter({WRITES: int(fields["Zxid"], 16), PACKETS: received})

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Note what is asked while the block runs."""
        commit, repeated = ZooKeeperSession.commit, ZooKeeperSession._repeated

        def noted_commit(session: Any, doing: str, operations: Any) -> None:
            self.trace.append(f"change: {doing}")
            commit(session, doing, operations)

        def noted_look(session: Any, doing: str, ask: Any) -> Any:
            self.trace.append(f"look: {doing}")
            return repeated(session, doing, ask)

        ZooKeeperSession.commit, ZooKeeperSession._repeated = noted_commit, noted_look  # type: ignore[method-assign]
        try:
            yield
        finally:
            ZooKeeperSession.commit, ZooKeeperSession._repeated = commit, repeated  # type: ignore[method-assign]


@dataclass
class S3Meter:
    """Counts the requests of this process."""

    trace: list[str] = field(default_factory=list)

    def read(self) -> Counter[str]:
        kinds = Counter(line.split(" ", 1)[0] for line in self.trace)
        return kinds + Counter({REQUESTS: len(self.trace)})

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Count while the block runs."""
        connected = connection._connected

        class Noting:
            """A connection whose requests are noted."""

            def __init__(noting, store: str) -> None:
                noting.inner = connected(store)

            def __getattr__(noting, name: str) -> Any:
                return getattr(noting.inner, name)

            def call_s3(noting, method: str, **arguments: Any) -> Any:
                key = arguments.get("Key", arguments.get("Prefix", ""))
                self.trace.append(f"{method} {key}")
                return noting.inner.call_s3(method, **arguments)

        connection._connected = Noting
        try:
            yield
        finally:
            connection._connected = connected


class Operations:
    """The operations, in an order in which each finds what it needs.

    Args:
        urls: of the bookies.
    """

    def __init__(self, uri: str, urls: list[str], meter: Meter) -> None:
        self.costs: list[Cost] = []
        self._uri = uri
        self._meter = meter
        init_cluster(uri, urls, accepts_risk=True)

    def count(self, operation: str, work: Callable[[], Any], *, per: int = 1) -> Any:
        """Count what ``work`` takes, which does the operation ``per`` times."""
        before, begin = self._meter.read(), len(self._meter.trace)
        result = work()
        after = self._meter.read()
        after.subtract(before)
        counts = Counter({kind: -(-number // per) for kind, number in after.items() if number > 0})
        self.costs.append(Cost(operation, counts, tuple(self._meter.trace[begin:])))
        return result

    def count_session(self) -> None:
        """Count a session without an operation, which is ended and not kept."""

        def look() -> None:
            with closing(open_store(self._uri)) as store, freshness.guess():
                store.get("cluster")
            environment.the_one(KeptSessions).end_all()

        environment.the_one(KeptSessions).end_all()
        self.count("a session", look)

    def run(self) -> list[Cost]:
        with BookKeeper(self._uri) as keeper:
            with keeper.create_log("first").writer(settings=SILENT) as writer:
                writer.append(b"x")  # makes folders, once; an empty ledger would be dropped
            self._ledgers(keeper)
            self._logs(keeper)
        self._rows()
        return self.costs

    def _ledgers(self, keeper: BookKeeper) -> None:
        ledger = self.count("create_ledger", lambda: keeper.create_ledger(settings=SILENT))
        ledger.append(b"x")
        self.count("append", lambda: ledger.append(b"x"))
        self.count("append_many of 1,000", lambda: ledger.append_many([b"x"] * 1000))
        for _ in range(4):
            ledger.append_many([b"x"] * 1000)
        for _ in range(19):
            ledger.append(b"x")
        ledger.close()
        reader = self.count("open_ledger", lambda: keeper.open_ledger(ledger.ledger_id))
        self.count("read of 5,021 entries", lambda: list(reader.read()))
        left = keeper.create_ledger(settings=SILENT)
        for _ in range(5):
            left.append(b"x")
        self.count("recovery of 5 entries", lambda: keeper.open_ledger(left.ledger_id))

    def _logs(self, keeper: BookKeeper) -> None:
        log = self.count("create_log", lambda: keeper.create_log("a"))
        writer = self.count("log.writer()", lambda: log.writer(settings=SILENT))
        writer.append(b"a")
        self.count("append to a log", lambda: writer.append(b"a"))
        self.count("roll", writer.roll)
        writer.append(b"a")
        self._idle_follower(log)
        self.count("close", writer.close)

    def _idle_follower(self, log: LogHandle) -> None:
        reading, real = log.follow(0), (environment.sleep, environment.sleep_until_readable)
        for _ in range(log.end_offset):
            next(reading)
        looks: list[float] = []

        def stop_sleeping(seconds: float) -> None:
            looks.append(seconds)
            if len(looks) > IDLE_LOOKS:
                raise InterruptedError

        def tell_of_nothing(_descriptor: int, seconds: float) -> bool:
            if seconds:
                stop_sleeping(seconds)
            return False

        def wait() -> None:
            with suppress(InterruptedError):
                next(reading)

        environment.sleep, environment.sleep_until_readable = stop_sleeping, tell_of_nothing
        try:
            self.count("a look of an idle follower", wait, per=IDLE_LOOKS)
        finally:
            environment.sleep, environment.sleep_until_readable = real

    def _rows(self) -> None:
        rig = Rig.__new__(Rig)
        vars(rig).update(uri=self._uri, log_name="rows", blocks=Rig.blocks)
        rig.write(partitions_of(3, 4))
        self.count("DataFrame append", lambda: rig.write(partitions_of(3, 4)))
        source = BookKeeperDataSource({"path": "rows", "metadataServiceUri": self._uri})
        self.count("a read's plan", source.reader(source.schema()).partitions)
        reader = source.streamReader(source.schema())
        start, limit = reader.initialOffset(), reader.getDefaultReadLimit()
        reader.latestOffset(start, limit)

        def look() -> None:
            for _ in range(IDLE_LOOKS):
                reader.latestOffset(start, limit)

        self.count("a look of an idle stream", look, per=IDLE_LOOKS)
        reader.stop()
        rig.log_name = "sink"
        driver = Driver(rig)
        driver.run(0, 1)
        self.count("micro-batch", lambda: driver.run(2))


def of_zookeeper() -> list[Cost]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = stack.enter_context(zookeeper(folder / "zookeeper"))
        meter = ZooKeeperMeter(servers.servers[0].address)
        stack.enter_context(meter.traced())
        urls = [f"file://{folder}/b{number}" for number in (1, 2, 3)]
        operations = Operations(f"zk://{servers.hosts}/costs", urls, meter)
        costs = operations.run()
        operations.count_session()
        return costs


def of_s3() -> list[Cost]:
    with ExitStack() as stack:
        server = stack.enter_context(s3_server())
        meter = S3Meter()
        stack.enter_context(meter.traced())
        urls = [server.url(f"b{number}") for number in (1, 2, 3)]
        return Operations(server.url("metadata"), urls, meter).run()


STORES = {"zookeeper": of_zookeeper, "s3": of_s3}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", action="append", choices=[*STORES])
    parser.add_argument("--trace", default="", help="print what this operation asked for")
    parser.add_argument("--prices", type=Path, default=PRICES, help="a TOML file of prices")
    given = parser.parse_args()
    all_prices = tomllib.loads(given.prices.read_text())
    console = Console()
    for name in given.store or STORES:
        costs = STORES[name]()
        kinds = sorted({kind for cost in costs for kind in cost.counts})
        prices = all_prices.get(name)
        priced = [] if prices is None else ["$ for a million"]
        table = Table("operation", *kinds, *priced, title=name)
        for cost in costs:
            paid = [] if prices is None else [f"{dollars(cost, prices):,.2f}"]
            table.add_row(cost.operation, *(str(cost.counts[kind]) for kind in kinds), *paid)
            if given.trace == cost.operation:
                console.print(given.trace, *cost.trace, sep="\n   ", soft_wrap=True)
        console.print(table)
        if prices is not None:
            bulk = terabyte()
            paid = f"{bulk.counts.total():,} requests, ${dollars(bulk, prices) / 1e6:,.2f}"
            console.print(f"{bulk.operation} in three copies: {paid}")


if __name__ == "__main__":
    main()
