"""A metadata store that is away for one look, or from one look on: a reader never leaves rows out.

Also not with failOnDataLoss=false, which is for rows that are lost. Each look of a read fails once,
and so does each with all behind it: the read ends with an error then, or has all its rows.
"""

import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    NoSuchEntryError,
    NoSuchLedgerError,
)
from bkspark.ledger.deleting import make_tombstone
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange, ReadTask
from bkspark.protocol.log.data_loss import LogGeneration
from bkspark.spark.source import BookKeeperDataSource
from tests.integration.rig import SCHEMA, Rig, partitions_of
from tests.kit.faulty import METADATA, Fault, Operation
from tests.thorough import always

LENIENT = {"failOnDataLoss": "false"}
ROWS = list(range(8))
Read = Callable[[], list[int]]


@pytest.fixture
def rig(tmp_path):
    return Rig(tmp_path / "cluster", bookie_count=4)


def fill_with_entries(rig):
    """Rows in journals, in ledgers of two and one that is open."""
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(rig.log_name, schema=pa.schema([("n", pa.int64())]))
        with log.writer() as writer:
            for number in ROWS:
                writer.append_many(pa.table({"n": [number]}))
                if number in (1, 3, 5):
                    writer.roll()


def fill_with_blocks(rig):
    """Rows in entry logs."""
    rig.write(partitions_of(5), (3, 3, 2))
    rig.write(partitions_of(3, first=5), (3, 3, 2))


FILLS = {"journals": fill_with_entries, "entry logs": fill_with_blocks}


def source_of(rig):
    return BookKeeperDataSource({"metadataServiceUri": rig.uri, "path": rig.log_name, **LENIENT})


def batch(rig) -> Read:
    def read():
        source = source_of(rig)
        reader = source.reader(source.schema())
        parts = pickle.loads(pickle.dumps(reader.partitions()))
        return numbers(b for part in parts for b in reader.read(part))

    return read


def stream(rig) -> Read:
    def read():
        source = source_of(rig)
        reader = source.streamReader(source.schema())
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, ReadAllAvailable())
        parts = pickle.loads(pickle.dumps(reader.partitions(begin, end)))
        return numbers(b for part in parts for b in reader.read(part))

    return read


def tasks(rig, *, is_strict=False) -> Read:
    """Of a plan that was made before, whose places are of no use any more."""
    with Cluster(rig.uri) as cluster:
        log = cluster.log(rig.log_name).value
        planned = plan_log(cluster, log, OffsetRange(0, 8), Password(), 2**30)
    lost = [placeless(task) for task in planned]
    mine = LogGeneration(log.name, log.generation)

    def read():
        reader = SliceReader(SCHEMA.remove(1), fails_on_loss=is_strict, log=mine)
        return numbers(b for task in lost for b in reader.read(task))

    return read


def placeless(task: ReadTask) -> ReadTask:
    slices = [
        replace(item, replicas=item.replicas[:0]) if hasattr(item, "replicas") else item
        for item in task.slices
    ]
    return replace(task, slices=tuple(slices))


def handle(rig) -> Read:
    def read():
        with BookKeeper(rig.uri) as keeper:
            return numbers(keeper.open_log(rig.log_name).read_arrow().to_batches())

    return read


READS = {"batch": batch, "stream": stream, "tasks": tasks, "handle": handle}


def numbers(batches) -> list[int]:
    return sorted(n for batch in batches for n in batch["n"].to_pylist())


@pytest.mark.parametrize("lasts", [False, True], ids=["one look", "from one look on"])
@pytest.mark.parametrize(
    ("kind", "fill"),
    always([("tasks", "entry logs")], list(product(READS, FILLS)), are_rows=True),
)
def test_no_row_is_left_out(rig, kind, fill, lasts):
    FILLS[fill](rig)
    read = READS[kind](rig)
    with rig.faults.installed():
        assert read() == ROWS
        looks = sum(operation.place == METADATA for operation in rig.faults.trace)
        assert looks > 0
        for number in range(looks):
            seen = []

            def decide(_number: int, operation: Operation, number=number, seen=seen):
                if operation.place != METADATA:
                    return None
                seen.append(operation)
                is_away = len(seen) > number if lasts else len(seen) == number + 1
                return Fault() if is_away else None

            rig.faults.forget()
            rig.faults.decide = decide
            try:
                assert read() == ROWS, f"look {number}"
            except BookKeeperError:
                assert len(seen) > number


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("kind", READS)
def test_a_place_without_a_store_or_with_another_is_an_error(rig, kind, fill):
    FILLS[fill](rig)
    read = READS[kind](rig)
    shutil.rmtree(rig.folder / "metadata")
    with pytest.raises(InvalidRequestError, match="no bkspark cluster at"):
        read()
    init_cluster(rig.uri, [f"{url}-other" for url in rig.urls.values()], accepts_risk=True)
    with pytest.raises(
        BookKeeperError,
        match=r"there is no log|does not exist any more|another cluster has replaced it",
    ):
        read()


def test_rows_that_were_compacted_meanwhile_are_not_left_out(rig):
    """They are in another ledger; a plan that is older finds out, and is to be made anew."""
    fill_with_blocks(rig)
    reads = [tasks(rig), tasks(rig, is_strict=True)]
    verbs.compact(rig.uri, log=rig.log_name)
    with Cluster(rig.uri) as cluster:
        for ledger_id in (0, 1):
            make_tombstone(cluster, ledger_id)
    for read in reads:
        with pytest.raises(NoSuchEntryError, match="was compacted"):
            read()


def test_rows_that_were_let_go_of_are_left_out_as_asked(rig, caplog):
    fill_with_blocks(rig)
    lenient, strict = tasks(rig), tasks(rig, is_strict=True)
    with BookKeeper(rig.uri) as keeper:
        keeper.open_log(rig.log_name).truncate(5)
    assert lenient() == ROWS[5:]
    assert "left out 5 rows: log 'events' is truncated below offset 5" in caplog.text
    with pytest.raises(NoSuchEntryError, match="truncated below offset 5"):
        strict()


def test_a_ledger_that_the_log_should_have_is_never_left_out(rig):
    fill_with_blocks(rig)
    read = tasks(rig)
    with Cluster(rig.uri) as cluster:
        make_tombstone(cluster, 0)
    with pytest.raises(NoSuchLedgerError):
        read()
