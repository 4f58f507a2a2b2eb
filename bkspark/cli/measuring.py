"""What the bookies of a cluster give, and what an append, a write and a read take on them.

Everything is measured in a ledger or a log of its own. Both are deleted and freed at the end, also
after an error. A benchmark that is killed leaves them behind: `bkspark ledgers` shows a ledger with
the custom metadata ``bench``, and `bkspark logs` a log whose name begins with ``bench-``.

The measurements take turns in rounds, so that a disk which is busy for a while is busy for all.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from bkspark import environment
from bkspark.admin.collecting.freeing import Doomed, Free
from bkspark.admin.maintenance import Progress
from bkspark.bookie.contract import BookieRoot, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError, NoSuchLedgerError
from bkspark.format import layout
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.quantities import shown_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 3
CALLERS = 8
GROUP_ENTRIES = 1_000
GROUP_BYTES = 4 * 2**20
"""A group of ``append_many`` has fewer entries if they are more bytes than these."""
ROUND_BYTES_MAX = 32 * 2**20
"""No measurement writes more to a bookie in a round."""
FILE_BYTES = 32 * 2**20
ROW_BYTES = 136

METADATA = "read of one metadata record"
SINGLE = "append, one caller"
TOGETHER = f"append, {CALLERS} callers"
PIPELINED = "append_async"
GROUPED = "append_many"
ALL_AT_ONCE = "files to all of them at once"
WRITE = "write of a DataFrame"
READ = "read of a log"


@dataclass
class Figure:
    """What was measured of one thing.

    Attributes:
        entries: appended entries, files, or rows.
        bytes: their size, as one copy.
        times: seconds of each call; empty if calls overlap.
    """

    what: str
    entries: int = 0
    bytes: int = 0
    seconds: float = 0.0
    times: list[float] = field(default_factory=list)

    def add(self, seconds: float, *, entries: int = 1, size: int = 0) -> None:
        self.entries += entries
        self.bytes += size
        self.seconds += seconds

    @property
    def per_second(self) -> float:
        return self.entries / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.seconds if self.seconds else 0.0

    def quantile(self, part: float) -> float | None:
        """The seconds that ``part`` of the calls did not exceed; None if calls overlap."""
        ordered = sorted(self.times)
        return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else None

    @property
    def row(self) -> dict[str, Any]:
        in_ms = [None if x is None else x * 1000 for x in map(self.quantile, (0.5, 0.99))]
        return {
            "what": self.what,
            "p50_ms": in_ms[0],
            "p99_ms": in_ms[1],
            "per_second": self.per_second,
            "bytes_per_second": self.bytes_per_second,
            "count": self.entries,
        }


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The figures, and what they mean in a sentence or two."""

    figures: tuple[Figure, ...]
    told: str

    @property
    def document(self) -> dict[str, Any]:
        return {"figures": [figure.row for figure in self.figures], "told": self.told}


# --- appends -------------------------------------------------------------------------------------


def measure_appends(
    keeper: BookKeeper,
    cluster: Cluster,
    *,
    quorum: Quorum,
    entry_bytes: int,
    seconds: float,
    progress: Progress,
) -> Benchmark:
    """Measure appends of ``entry_bytes`` bytes in every way, and what each bookie takes for one.

    Args:
        seconds: for each measurement, in all rounds together.

    Raises:
        NotEnoughBookiesError: too few bookies can be used.
    """
    with _ledger(keeper, cluster, quorum) as probed, _ledger(keeper, cluster, quorum) as handle:
        probed.close()
        with _probes(cluster, probed.metadata) as journals:
            bench = _Appends(cluster, handle, _random(entry_bytes), seconds / ROUNDS)
            work = bench.contenders(journals)
            for number in range(ROUNDS):
                for position, contender in enumerate(work):
                    progress(number * len(work) + position, ROUNDS * len(work))
                    contender()
        bookies = [bench.of_bookie(name) for name in journals]
        told = bench.told(bookies, handle.metadata.quorum)
        return Benchmark(tuple(bench.figures.values()), told)


class _Appends:
    """Measurements that take turns on the same bookies."""

    def __init__(self, cluster: Cluster, handle: WriteHandle, value: bytes, seconds: float) -> None:
        self.figures: dict[str, Figure] = {}
        self._cluster = cluster
        self._handle = handle
        self._value = value
        self._seconds = seconds
        self._calls_max = max(1, ROUND_BYTES_MAX // max(1, len(value)))

    def contenders(self, journals: Mapping[str, Journal]) -> list[Callable[[], None]]:
        """What takes turns: each bookie by itself, the metadata store, and the appends."""
        disks = [partial(self._on_bookie, name, journal) for name, journal in journals.items()]
        own = [self._metadata, self._single, self._together, self._pipelined, self._grouped]
        return [*disks, *own]

    def of_bookie(self, name: str) -> Figure:
        return self._figure(f"one record made durable on bookie {name}")

    def told(self, bookies: list[Figure], quorum: Quorum) -> str:
        """What to expect of an append, in words."""
        alone = sorted(bookie.quantile(0.5) or 0.0 for bookie in bookies)
        least = alone[min(quorum.ack_quorum_size, len(alone)) - 1]
        took = self.figures[SINGLE].quantile(0.5) or 0.0
        look = self.figures[METADATA].quantile(0.5) or 0.0
        return (
            f"An append returns after {quorum.ack_quorum_size} of {quorum.write_quorum_size} "
            f"bookies have made it durable. Alone, these bookies take {shown_ms(least * 1000)} for "
            f"that, and the metadata store {shown_ms(look * 1000)} for a read. One append took "
            f"{shown_ms(took * 1000)}. "
            f"Appends from {CALLERS} threads, append_async and append_many share the waiting."
        )

    def _figure(self, what: str) -> Figure:
        return self.figures.setdefault(what, Figure(what))

    def _on_bookie(self, name: str, journal: Journal) -> None:
        self._repeat(self.of_bookie(name), lambda: journal.append([self._value]))

    def _metadata(self) -> None:
        figure = self._figure(METADATA)
        self._repeat(figure, lambda: self._cluster.ledger(self._handle.ledger_id), size=0)

    def _single(self) -> None:
        self._repeat(self._figure(SINGLE), lambda: self._handle.append(self._value))

    def _together(self) -> None:
        figure, own = self._figure(TOGETHER), [Figure(TOGETHER) for _ in range(CALLERS)]

        def work(one: Figure) -> None:
            self._repeat(one, lambda: self._handle.append(self._value))

        began = environment.monotonic()
        environment.for_each(work, own, at_once=CALLERS, name="bench")
        entries, size = sum(one.entries for one in own), sum(one.bytes for one in own)
        figure.add(environment.monotonic() - began, entries=entries, size=size)
        figure.times += [seconds for one in own for seconds in one.times]

    def _pipelined(self) -> None:
        began, last, entries = environment.monotonic(), None, 0
        while entries < self._calls_max and environment.monotonic() - began < self._seconds:
            last = self._handle.append_async(self._value)
            entries += 1
        if last is not None:
            last.result()
        self._figure(PIPELINED).add(
            environment.monotonic() - began, entries=entries, size=entries * len(self._value)
        )

    def _grouped(self) -> None:
        entries = max(1, min(GROUP_ENTRIES, GROUP_BYTES // max(1, len(self._value))))
        group = [self._value] * entries
        figure = self._figure(GROUPED)
        self._repeat(figure, lambda: self._handle.append_many(group), entries=entries)

    def _repeat(
        self,
        figure: Figure,
        act: Callable[[], object],
        *,
        entries: int = 1,
        size: int | None = None,
    ) -> None:
        """Call ``act`` for the seconds of a round, at least once, and note the time of each call.

        Args:
            size: bytes of an entry; None for those of a value.
        """
        size = len(self._value) if size is None else size
        end = environment.monotonic() + self._seconds
        for _ in range(max(1, self._calls_max // entries)):
            began = environment.monotonic()
            act()
            now = environment.monotonic()
            figure.add(now - began, entries=entries, size=entries * size)
            figure.times.append(now - began)
            if now >= end:
                return


# --- rows ----------------------------------------------------------------------------------------


def measure_writes(
    keeper: BookKeeper,
    cluster: Cluster,
    spark: "SparkSession",
    *,
    quorum: Quorum,
    row_count: int,
    progress: Progress,
) -> Benchmark:
    """Measure the write of a DataFrame, what each bookie takes for a file, and the read.

    Args:
        row_count: rows of about ``ROW_BYTES`` bytes, written once a round.

    Raises:
        NotEnoughBookiesError: too few bookies can be used.
    """
    disks = [Figure(ALL_AT_ONCE)]
    with _ledger(keeper, cluster, quorum) as probed, _log(keeper, cluster, quorum) as name:
        probed.close()
        with _roots(cluster, probed.metadata) as roots:
            writing, reading = Figure(WRITE), Figure(READ)
            disks += [Figure(f"a file of 32 MiB to bookie {bookie}") for bookie in roots]
            for number in range(ROUNDS):
                progress(number, ROUNDS)
                _write_files(disks, probed.ledger_id, list(roots.values()))
                _write_rows(spark, cluster.uri, name, row_count, writing)
                _read_rows(spark, cluster.uri, name, row_count * (number + 1), reading)
    copies = probed.metadata.quorum.write_quorum_size
    rate = disks[0].bytes_per_second
    least = copies * row_count * ROW_BYTES / rate if rate else 0.0
    told = (
        f"{copies} copies of {row_count:,} rows are {copies * row_count * ROW_BYTES / 2**20:,.0f} "
        f"MiB before encoding. These bookies take {rate / 2**20:,.0f} MiB a second together, so "
        f"that they need {least:.2f} s. A write took {writing.seconds / ROUNDS:.2f} s, and Spark's "
        "start of a job is in it."
    )
    return Benchmark((*disks[1:], disks[0], writing, reading), told)


def measure_reads(spark: "SparkSession", uri: str, name: str, row_count: int) -> Benchmark:
    """Measure the read of a whole log of ``row_count`` rows with all columns."""
    reading = Figure(READ)
    for _ in range(ROUNDS):
        _read_rows(spark, uri, name, row_count, reading)
    told = f"Each of {ROUNDS} reads took {reading.seconds / ROUNDS:.2f} s for {row_count:,} rows."
    return Benchmark((reading,), told)


def _write_files(figures: list[Figure], probed: int, roots: list[BookieRoot]) -> None:
    piece = _random(2**20)

    def write(root: BookieRoot) -> float:
        name = layout.entry_log(probed, environment.token(), 0)
        began = environment.monotonic()
        file = root.create(name)
        for _ in range(FILE_BYTES // len(piece)):
            file.write(piece)
        file.finish()
        taken = environment.monotonic() - began
        root.delete(name)
        return taken

    for figure, root in zip(figures[1:], roots):
        figure.add(write(root), size=FILE_BYTES)
    began = environment.monotonic()
    environment.for_each(write, roots, at_once=len(roots), name="bench")
    files = len(roots)
    figures[0].add(environment.monotonic() - began, entries=files, size=files * FILE_BYTES)


def _write_rows(spark: "SparkSession", uri: str, name: str, row_count: int, figure: Figure) -> None:
    rows = spark.range(row_count).selectExpr(
        "id",
        "timestamp_micros(id) AS ts",
        "concat('key-', lpad(string(id % 100000), 8, '0')) AS key",
        "substr(sha2(string(id), 512), 1, 100) AS payload",
    )
    with _timed(figure, row_count):
        rows.write.format("bookkeeper").option("metadataServiceUri", uri).mode("append").save(name)


def _read_rows(spark: "SparkSession", uri: str, name: str, row_count: int, figure: Figure) -> None:
    rows = spark.read.format("bookkeeper").option("metadataServiceUri", uri).load(name)
    with _timed(figure, row_count):
        rows.write.format("noop").mode("overwrite").save()


@contextmanager
def _timed(figure: Figure, row_count: int) -> Iterator[None]:
    began = environment.monotonic()
    yield
    taken = environment.monotonic() - began
    figure.add(taken, entries=row_count)
    figure.times.append(taken)


def _random(count: int) -> bytes:
    """Bytes that no storage compresses."""
    return bytes.fromhex(environment.token(count))


# --- places --------------------------------------------------------------------------------------


@contextmanager
def _ledger(keeper: BookKeeper, cluster: Cluster, quorum: Quorum) -> Iterator[WriteHandle]:
    """Make a ledger; delete and free it at the end."""
    handle = keeper.create_ledger(
        ensemble_size=quorum.ensemble_size,
        write_quorum_size=quorum.write_quorum_size,
        ack_quorum_size=quorum.ack_quorum_size,
        custom_metadata={"bench": "made by bkspark bench, and deleted at its end"},
    )
    try:
        yield handle
    finally:
        with suppress(BookKeeperError):  # of a writer that failed: the next step fences it
            handle.close()
        keeper.delete_ledger(handle.ledger_id)
        _free(cluster, [handle.metadata])


@contextmanager
def _log(keeper: BookKeeper, cluster: Cluster, quorum: Quorum) -> Iterator[str]:
    """Make a log; delete it and free its ledgers at the end."""
    name = f"bench-{environment.token(4)}"
    keeper.create_log(
        name,
        ensemble_size=quorum.ensemble_size,
        write_quorum_size=quorum.write_quorum_size,
        ack_quorum_size=quorum.ack_quorum_size,
    )
    try:
        yield name
    finally:
        ledgers = []
        for ledger_id in keeper.delete_log(name):
            with suppress(NoSuchLedgerError):
                ledgers.append(cluster.ledgers.get(str(ledger_id)))
        _free(cluster, [seen.value for seen in ledgers if seen is not None])


def _free(cluster: Cluster, ledgers: Iterable[LedgerMetadata]) -> None:
    """Remove the files of deleted ledgers now. `bkspark collect` removes their records later."""
    for ledger in ledgers:
        places = cluster.addresses_of(Locations(ledger).members)
        for address in places.values():
            Free(address, (Doomed.of(ledger),)).run()


@contextmanager
def _roots(cluster: Cluster, ledger: LedgerMetadata) -> Iterator[dict[str, BookieRoot]]:
    """Open the bookies of a ledger, by their ids."""
    places = cluster.addresses_of(Locations(ledger).members)
    with ExitStack() as stack:
        yield {
            member.bookie_id: stack.enter_context(open_bookie(address).open_root())
            for member, address in sorted(places.items(), key=lambda place: place[0].bookie_id)
        }


@contextmanager
def _probes(cluster: Cluster, ledger: LedgerMetadata) -> Iterator[dict[str, Journal]]:
    """Open a journal of no writer on each bookie of a ledger, by the bookie's id."""
    with _roots(cluster, ledger) as roots, ExitStack() as stack:
        name = layout.journal(ledger.ledger_id, layout.TERM_MAX, environment.token())
        journals = {bookie_id: root.open_journal(name) for bookie_id, root in roots.items()}
        for journal in journals.values():
            stack.callback(journal.close)
        yield journals
