"""The steps of the demo."""

import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from bkspark import environment
from bkspark.bookie.contract import told_of
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.demo import damage as damage_module
from bkspark.demo import drawing, flights
from bkspark.demo.damage import DemoDamage
from bkspark.demo.narrator import Narrator
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.format.arrow_schema import OFFSET_COLUMN
from bkspark.log.reading.read_slices import OffsetRange, plan_log
from bkspark.log.reading.slice_reader import ReplicaFault, SliceReader
from bkspark.protocol.ledger.metadata import LedgerMetadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG = "flights"
BOOKIE_COUNT = 6
_STEP_COUNT = 7
_NEEDED = ("pyspark", "pandas", flights.PACKAGE)


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The result of the demo.

    Attributes:
        is_equal: whether the rows read back equal the written rows, in the same order.
        stepped_over: bad replicas, as "bookie: reason".
    """

    rows: int
    is_equal: bool
    destroyed: str
    corrupted: str
    stepped_over: list[str]
    seconds: float
    directory: str | None


def run_demo(directory: Path | None, console: Console) -> DemoResult:
    """Run the demo.

    Args:
        directory: directory for all files, which is kept; None for a temporary directory.
        console: the output.

    Raises:
        InvalidRequestError: ``directory`` is not empty, or cannot be used.
        BookKeeperError: the demo needs a package or program that is not installed.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise BookKeeperError(
            f"the demo needs {', '.join(missing)}", hint="run: pip install 'bkspark[demo]'"
        )
    if shutil.which("java") is None:
        raise BookKeeperError("the demo needs Java for Spark", hint="install Java 17")
    begin = environment.monotonic()
    with _folder(directory) as folder, Narrator(console, _STEP_COUNT) as narrator:
        found = _Demo(folder, narrator).run()
    seconds = environment.monotonic() - begin
    _say_goodbye(console, folder, seconds, stays=directory is not None)
    return DemoResult(
        rows=found.rows,
        is_equal=found.is_equal,
        destroyed=found.damage.destroyed,
        corrupted=found.damage.corrupted,
        stepped_over=[told_of(fault.bookie_id, fault.reason) for fault in found.faults],
        seconds=round(seconds, 1),
        directory=None if directory is None else str(folder),
    )


@contextmanager
def _folder(directory: Path | None) -> Iterator[Path]:
    if directory is None:
        with tempfile.TemporaryDirectory(
            prefix="bkspark-demo-", ignore_cleanup_errors=True
        ) as name:
            yield Path(name)
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
        is_empty = not any(directory.iterdir())
    except OSError as error:
        raise InvalidRequestError(
            f"{directory} cannot be used: {error.strerror}", hint="name an empty directory"
        ) from error
    if not is_empty:
        raise InvalidRequestError(f"{directory} is not empty", hint="name an empty directory")
    yield directory.resolve()


@dataclass(frozen=True, slots=True)
class _Found:
    rows: int
    is_equal: bool
    damage: DemoDamage
    faults: list[ReplicaFault]


class _Demo:
    """The steps, in order.

    Args:
        folder: an empty directory, as an absolute path.
    """

    def __init__(self, folder: Path, narrator: Narrator) -> None:
        self._folder = folder
        self._narrator = narrator
        self._uri = (folder / "metadata").as_uri()
        self._bookies = {f"bookie-{n}": folder / f"bookie-{n}" for n in range(1, BOOKIE_COUNT + 1)}

    def run(self) -> _Found:
        # Imported here because pyspark may not be installed.
        from bkspark.demo.local_spark import local_spark

        with ExitStack() as cleanup:
            with self._narrator.step("starting Spark") as done:
                spark = cleanup.enter_context(local_spark(self._folder / "spark"))
                done.append(f"Spark {spark.version} runs here on two cores")
            original = self._read_flights()
            self._make_cluster()
            self._write(spark, original)
            with Cluster(self._uri) as cluster:
                ledger = cluster.ledger(next(cluster.log(LOG).value.every_ledger()).ledger_id).value
                self._show(ledger, None)
                damage = self._break(cluster, ledger)
                self._show(ledger, damage)
                is_equal = self._read_back(spark, original)
                faults = self._find_faults(cluster)
        return _Found(original.num_rows, is_equal, damage, faults)

    def _read_flights(self) -> pa.Table:
        with self._narrator.step("reading the flights") as done:
            table = flights.read_flights()
            done.append(
                f"read {table.num_rows:,} flights from New York City in 2013, "
                f"{table.num_columns} columns (package {flights.PACKAGE})"
            )
        return table

    def _make_cluster(self) -> None:
        with self._narrator.step("making a cluster") as done:
            init_cluster(self._uri, [folder.as_uri() for folder in self._bookies.values()])
            done.append(f"made a cluster of {BOOKIE_COUNT} bookies in {self._folder}")

    def _write(self, spark: "SparkSession", original: pa.Table) -> None:
        # An installed package needs no registration; a source folder does.
        from bkspark import register

        with self._narrator.step("writing the DataFrame") as done:
            register(spark)
            frame = spark.createDataFrame(original)
            (
                frame.write.format("bookkeeper")
                .option("metadataServiceUri", self._uri)
                .options(ensembleSize=5, writeQuorumSize=3, ackQuorumSize=2)
                .mode("append")
                .save(LOG)
            )
            done.append(
                f'wrote them: df.write.format("bookkeeper")….save("{LOG}"), '
                "E=5 Qw=3 Qa=2, every file fsynced"
            )

    def _show(self, ledger: LedgerMetadata, damage: DemoDamage | None) -> None:
        console = self._narrator.console
        members = [member.bookie_id for member in ledger.last_fragment.ensemble]
        ids = [*members, *(name for name in self._bookies if name not in members)]
        picture = drawing.striping(console, ledger, ids, damage)
        if damage is not None:
            self._narrator.show(picture, drawing.legend(console))
            return
        sizes = {name: damage_module.bytes_in(self._bookies[name]) for name in ids}
        facts = drawing.ledger_table(LOG, ledger, BOOKIE_COUNT)
        self._narrator.show(facts, Text(), picture, Text(), drawing.bars(console, sizes))

    def _break(self, cluster: Cluster, ledger: LedgerMetadata) -> DemoDamage:
        with self._narrator.step("breaking things") as done:
            damage = damage_module.do_damage(cluster, ledger)
            done.append(f"destroyed {damage.destroyed}, flipped one bit on {damage.corrupted}")
            done.append(f"rm -r {self._bookies[damage.destroyed]}")
            done.append(f"bit 0 of a byte in the middle of {damage.corrupted}/{damage.file}")
        return damage

    def _read_back(self, spark: "SparkSession", original: pa.Table) -> bool:
        with self._narrator.step("reading everything back") as done:
            frame = (
                spark.read.format("bookkeeper")
                .option("metadataServiceUri", self._uri)
                .option("includeMetadata", True)
                .load(LOG)
            )
            is_equal = _is_same(frame, original)
            verdict = (
                "every row and column equals the original, in the same order"
                if is_equal
                else "IT DIFFERS from the original"
            )
            done.append(f"read everything back with Spark: {verdict}")
        return is_equal

    def _find_faults(self, cluster: Cluster) -> list[ReplicaFault]:
        """Read again without Spark, because the faults would be hard to find in Spark's log."""
        with self._narrator.step("asking which replicas were no good") as done:
            log = cluster.log(LOG).value
            everything = OffsetRange(log.first_offset, log.end_offset)
            reader = SliceReader(pa.schema([("flight", pa.int32())]))
            count = 0
            for task in plan_log(cluster, log, everything, Password(), task_bytes=2**62):
                count += sum(batch.num_rows for batch in reader.read(task))
            done.append(f"read {count:,} rows with the Python client, stepping over")
        for line in drawing.fault_lines(reader.faults):
            self._narrator.console.print(line, soft_wrap=True)
        return reader.faults


def _is_same(frame: "DataFrame", original: pa.Table) -> bool:
    """Compare exactly: every value, every null, and the order of rows by their dense offsets."""
    found = frame.toArrow().sort_by(OFFSET_COLUMN)
    offsets = found[OFFSET_COLUMN]
    expected = pa.chunked_array([pa.arange(0, original.num_rows)])
    rows = found.select(original.column_names).cast(original.schema)
    return bool(offsets.equals(expected)) and bool(rows.equals(original))


def _say_goodbye(console: Console, folder: Path, seconds: float, *, stays: bool) -> None:
    console.print()
    if not stays:
        console.print(
            f"Done in {seconds:.0f} s. Nothing is left running, and {folder} is removed; "
            "with --dir DIR it stays, to look around.",
            soft_wrap=True,
            highlight=False,
        )
        return
    console.print(
        f"Done in {seconds:.0f} s. Nothing is left running. Look around:", highlight=False
    )
    uri = (folder / "metadata").as_uri()
    for command in (
        f"export BKSPARK_METADATA_URI={shlex.quote(uri)}",
        "bkspark status",
        "bkspark ledger show 0",
        f"bkspark log read {LOG} --limit 3",
    ):
        console.print(Text(f"  {command}"), soft_wrap=True)
