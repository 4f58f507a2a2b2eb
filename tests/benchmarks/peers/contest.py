"""The contenders and what they are asked, in rounds that take turns.

Entries have 1,024 bytes and rows 136. Everything is durable when a measurement ends, as each system
promises it: bkspark and BookKeeper on two of three places, Kafka on two of three brokers that flush
each message, Delta and parquet three times with a sync of the whole machine.
"""

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

import bkspark
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import init_cluster
from bkspark.environment import for_each
from bkspark.errors import LedgerFencedError
from bkspark.ledger.handles.settings import WriterSettings
from tests.benchmarks.bare_pipe import BarePipe
from tests.benchmarks.dataframe import SETTINGS, make_source
from tests.benchmarks.handles import Bench as HandleBench
from tests.benchmarks.peers import servers
from tests.benchmarks.stage import stage

BKSPARK, BOOKKEEPER, KAFKA = "bkspark", "BookKeeper", "Kafka"
DELTA, PARQUET, LIMIT = "Delta", "parquet", "limit"
VALUE = os.urandom(1024)
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Line:
    """What is compared.

    Attributes:
        unit: ``ms`` or ``s``, of which less is better, or ``a second``, of which more is.
        limit: what the limit of this line is, measured in the same run; empty without one.
    """

    what: str
    unit: str
    limit: str = ""

    @property
    def is_rate(self) -> bool:
        return self.unit == "a second"


LINES = {
    line.what: line
    for line in (
        Line("one append of 1 KiB, p50", "ms", "three threads append and sync, two are awaited"),
        Line("one append of 1 KiB, p99", "ms"),
        Line("appends by 8 callers", "a second"),
        Line("appends in a pipeline", "a second"),
        Line("appends in groups of 1,000", "a second"),
        Line("an append until a follower has it, p50", "ms"),
        Line("recovery of a ledger of 1,000 entries", "ms"),
        Line("write of all rows", "s", "a source in Python that throws the rows away"),
        Line("read of all rows", "s", "a source in Python that makes the rows in memory"),
        Line("read of one column of four", "s"),
    )
}


@dataclass
class Contest:
    """What was measured: the values of all rounds, by line and contender."""

    values: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: {what: {} for what in LINES}
    )

    def add(self, what: str, contender: str, value: float) -> None:
        self.values[what].setdefault(contender, []).append(value)

    def median(self, what: str, contender: str) -> float | None:
        found = self.values[what].get(contender)
        return statistics.median(found) if found else None


# --- entries -------------------------------------------------------------------------------------


class BksparkClient:
    """Takes the orders of ``PeerClient``, and two more that only bkspark knows."""

    def __init__(self, folder: Path) -> None:
        self.uri = (folder / "metadata").as_uri()
        init_cluster(self.uri, [(folder / f"bookie{n}").as_uri() for n in range(3)])
        self.keeper = BookKeeper(self.uri)
        self._follower: subprocess.Popen[str] | None = None

    def order(self, what: str, *counts: int) -> Figures:
        found: Figures = getattr(self, f"_{what}")(*counts)
        return found

    def close(self) -> None:
        self.keeper.close()

    def _append(self, count: int) -> Figures:
        with self.keeper.create_ledger() as handle:
            handle.append(VALUE)
            return told([seconds(lambda: handle.append(VALUE)) for _ in range(count)])

    def _callers(self, threads: int, count: int) -> Figures:
        with self.keeper.create_ledger() as handle:
            handle.append(VALUE)

            def call(_: int) -> None:
                for _ in range(count // threads):
                    handle.append(VALUE)

            work = partial(for_each, call, range(threads), at_once=threads, name="caller")
            return {"per_second": count / seconds(work)}

    def _pipelined(self, count: int, window: int) -> Figures:
        del window  # the handle bounds what waits, by bytes

        with self.keeper.create_ledger() as handle:
            handle.append(VALUE)

            def work() -> None:
                futures = [handle.append_async(VALUE) for _ in range(count)]
                futures[-1].result()

            return {"per_second": count / seconds(work)}

    def _grouped(self, count: int, size: int) -> Figures:
        group = [VALUE] * size
        with self.keeper.create_ledger() as handle:
            handle.append(VALUE)

            def work() -> None:
                for _ in range(count // size):
                    handle.append_many(group)

            return {"per_second": count / seconds(work)}

    def _tail(self, count: int) -> Figures:
        """A follower in another process says each entry that it sees."""
        log = f"tail-{time.monotonic_ns()}"
        quick = WriterSettings(explicit_lac_ms=1)
        with self.keeper.create_log(log).writer(settings=quick) as writer:
            writer.append(VALUE)
            with following(self.uri, log) as seen:
                next(seen)

                def until_seen() -> None:
                    writer.append(VALUE)
                    next(seen)

                return told([seconds(until_seen) for _ in range(count)])

    def _recover(self, count: int) -> Figures:
        with (
            BookKeeper(self.uri) as other,
            suppress(LedgerFencedError),  # the writer, at its end
            other.create_ledger() as handle,
        ):
            handle.append_many([VALUE] * count)

            def recover() -> None:
                with self.keeper.open_ledger(handle.ledger_id) as found:
                    assert found.last_add_confirmed == count - 1, "entries were lost"

            taken = seconds(recover)
        return told([taken])


FOLLOWER = """
import sys
from bkspark import BookKeeper
with BookKeeper(sys.argv[1]) as keeper, keeper.open_log(sys.argv[2]) as log:
    for entry in log.follow():
        print(entry.offset, flush=True)
"""


@contextmanager
def following(uri: str, log: str) -> Iterator[Iterator[str]]:
    """Give the lines of a process that follows ``log``."""
    follower = subprocess.Popen(
        [sys.executable, "-c", FOLLOWER, uri, log], stdout=subprocess.PIPE, text=True
    )
    try:
        assert follower.stdout is not None
        yield iter(follower.stdout)
    finally:
        follower.kill()
        follower.wait()


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def told(times: list[float]) -> Figures:
    ordered = sorted(times)
    return {
        "p50_ms": ordered[len(ordered) // 2] * 1000,
        "p99_ms": ordered[int(len(ordered) * 0.99)] * 1000,
        "per_second": len(times) / sum(times),
    }


@dataclass(frozen=True, slots=True)
class Counts:
    """How much is done in a round."""

    singles: int = 2_000
    callers: int = 8_000
    pipelined: int = 50_000
    tail: int = 200
    entries: int = 1_000


Client = BksparkClient | servers.PeerClient


def measure_entries(clients: dict[str, Client], counts: Counts, contest: Contest | None) -> None:
    """One round; without a contest it warms up."""
    orders: list[tuple[str, tuple[object, ...], tuple[str, ...]]] = [
        ("append", (counts.singles,), ("one append of 1 KiB, p50", "one append of 1 KiB, p99")),
        ("callers", (8, counts.callers), ("appends by 8 callers",)),
        ("pipelined", (counts.pipelined, 1_000), ("appends in a pipeline",)),
        ("grouped", (counts.pipelined, 1_000), ("appends in groups of 1,000",)),
        ("tail", (counts.tail,), ("an append until a follower has it, p50",)),
        ("recover", (counts.entries,), ("recovery of a ledger of 1,000 entries",)),
    ]
    for order, given, lines in orders:
        for name, client in clients.items():
            if _knows(name, order):
                os.sync()
                figures = client.order(order, *given)  # type: ignore[arg-type]
                for what in lines if contest else ():
                    assert contest is not None
                    contest.add(what, name, _figure(what, figures))


def _knows(name: str, order: str) -> bool:
    """Whether a system has what is asked for: groups are bkspark's, and Kafka has no ledgers."""
    if name == BKSPARK:
        return True
    return order != "grouped" and (name, order) != (KAFKA, "recover")


def _figure(what: str, figures: Figures) -> float:
    if LINES[what].is_rate:
        return figures["per_second"]
    return figures["p99_ms" if what.endswith("p99") else "p50_ms"]


# --- rows ----------------------------------------------------------------------------------------


class Rows:
    """The same rows in every system, written and read through Spark."""

    def __init__(
        self, spark: SparkSession, folder: Path, row_count: int, uri: str, brokers: str
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._brokers = brokers
        self._uri = uri
        self._row_count = row_count
        self._round = 0
        spark.dataSource.register(BarePipe)
        bkspark.register(spark, metadataServiceUri=uri)
        self._source = make_source(spark, folder / "source", row_count)

    def measure(self, kafka: servers.PeerClient | None, contest: Contest | None) -> None:
        """One round; without a contest it warms up."""
        self._round += 1
        if kafka is not None:
            kafka.order("topic", self._topic)
        writes: dict[str, Callable[[], None]] = {
            LIMIT: lambda: self._source.write.format("barepipe").mode("append").save(),
            BKSPARK: lambda: self._source.write.format("bookkeeper").mode("append").save(self._log),
            DELTA: partial(self._write_copies, "delta"),
            PARQUET: partial(self._write_copies, "parquet"),
        }
        reads: dict[str, Callable[[], DataFrame]] = {
            LIMIT: lambda: self._read("barepipe").option("rows", self._row_count).load(),
            BKSPARK: lambda: self._read("bookkeeper").load(self._log),
            DELTA: lambda: self._read("delta").load(self._copy("delta", 0)),
            PARQUET: lambda: self._spark.read.parquet(self._copy("parquet", 0)),
        }
        if kafka is not None:
            writes[KAFKA] = self._write_kafka
            reads[KAFKA] = self._kafka
        for name, write in writes.items():
            os.sync()
            self._note(contest, "write of all rows", name, write)
        for name, read in reads.items():
            self._note(contest, "read of all rows", name, partial(_drain, read()))
        for name in (BKSPARK, DELTA, PARQUET):
            rows = reads[name]()
            if name == BKSPARK:
                rows = bkspark.read(self._spark, self._log, columns=["id"])
            summed = rows.selectExpr("sum(id)")
            self._note(contest, "read of one column of four", name, partial(self._sum, summed))
        self._forget()

    @property
    def _log(self) -> str:
        return f"rows-{self._round}"

    @property
    def _topic(self) -> str:
        return f"rows-{self._round}"

    def _copy(self, kind: str, number: int) -> str:
        return str(self._folder / f"{kind}-{self._round}-{number}")

    def _read(self, kind: str) -> DataFrameReader:
        return self._spark.read.format(kind)

    def _write_copies(self, kind: str) -> None:
        for number in range(3):
            self._source.write.format(kind).mode("append").save(self._copy(kind, number))
        os.sync()

    def _write_kafka(self) -> None:
        """Key and payload: a record of Kafka has no columns."""
        rows = self._source.selectExpr("key", "payload AS value").write.format("kafka")
        rows = rows.option("kafka.bootstrap.servers", self._brokers).option("topic", self._topic)
        rows = rows.option("kafka.acks", "all").option("kafka.linger.ms", "5")
        rows.option("kafka.batch.size", "131072").save()

    def _kafka(self) -> DataFrame:
        rows = self._read("kafka").option("kafka.bootstrap.servers", self._brokers)
        rows = rows.option("subscribe", self._topic).option("startingOffsets", "earliest")
        return rows.load().select("key", "value")

    def _sum(self, rows: DataFrame) -> None:
        found = rows.first()
        assert found is not None
        assert found[0] == self._row_count * (self._row_count - 1) // 2, found

    @staticmethod
    def _note(contest: Contest | None, what: str, name: str, work: Callable[[], object]) -> None:
        taken = seconds(work)
        if contest is not None:
            contest.add(what, name, taken)

    def _forget(self) -> None:
        """Free the space of this round."""
        for kind in ("delta", "parquet"):
            for number in range(3):
                shutil.rmtree(self._copy(kind, number), ignore_errors=True)
        with BookKeeper(self._uri) as keeper:
            keeper.delete_log(self._log)
        bkspark.admin.collect(self._uri)


def _drain(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


# --- run -----------------------------------------------------------------------------------------


def run(
    parent: Path | None, rounds: int, row_count: int, without: set[str], counts: Counts
) -> Contest:
    """Measure everything; a first round warms up and does not count."""
    contest = Contest()
    more = {} if KAFKA in without else {"spark.jars": servers.connector()}
    with stage(parent, {**SETTINGS, **more}, bkspark.configure_delta) as (spark, folder):
        _measure(contest, spark, folder, rounds, row_count, without, counts)
    return contest


def _measure(
    contest: Contest,
    spark: SparkSession,
    folder: Path,
    rounds: int,
    row_count: int,
    without: set[str],
    counts: Counts,
) -> None:
    kafka, brokers = None, ""
    with ExitStack() as stack:
        own = BksparkClient(folder)
        stack.callback(own.close)
        clients: dict[str, Client] = {BKSPARK: own}
        if BOOKKEEPER not in without:
            clients[BOOKKEEPER] = stack.enter_context(servers.bookkeeper(folder))
        if KAFKA not in without:
            kafka, brokers = stack.enter_context(servers.kafka(folder))
            clients[KAFKA] = kafka
        limits = HandleBench(folder, own.keeper)
        rows = Rows(spark, folder, row_count, own.uri, brokers)
        for number in range(rounds + 1):
            limit = limits.bare_threads() * 1000
            if number:
                contest.add("one append of 1 KiB, p50", LIMIT, limit)
            measure_entries(clients, counts, contest if number else None)
            rows.measure(kafka, contest if number else None)
