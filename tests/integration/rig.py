"""A small cluster, and the way of a DataFrame's rows through it without Spark."""

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa

from bkspark.bookie import memory, posix
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookieUnavailableError, CorruptDataError, NoSuchLedgerError
from bkspark.format import arrow_schema
from bkspark.ledger.entry_log_reader import EntryLogFile
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch import preparing as batch_plan
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.commit import CommitResult
from bkspark.log.batch.target import BatchTarget, BlockSettings, WriteChecks, WriteRequest
from bkspark.log.reading.ledger_files import OpenBookies, find_records, placed_logs
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.batch import AttemptReport
from bkspark.protocol.log.record import LogRecord
from tests.kit.faulty import StorageFaults

LOG = "events"
SCHEMA = pa.schema([pa.field("n", pa.int64()), pa.field("s", pa.string())])
BLOCKS = BlockSettings(rows_per_block=4, target_bytes=2**20, compression="none")
CHECKS = ("compares_repeats", "is_strict", "min_distinct")
Row = tuple[Any, ...]


def rows_from(first: int, count: int) -> pa.RecordBatch:
    """Rows whose ``n`` counts up from ``first``; every fifth text is missing."""
    numbers = range(first, first + count)
    texts = [None if n % 5 == 4 else f"row {n}" for n in numbers]
    return pa.record_batch([pa.array(numbers, pa.int64()), pa.array(texts)], schema=SCHEMA)


def partitions_of(*counts: int, first: int = 0) -> list[list[pa.RecordBatch]]:
    """Rows for partitions of these sizes, each in batches of up to 7."""
    partitions = []
    for count in counts:
        starts = range(first, first + count, 7)
        partitions.append([rows_from(n, min(7, first + count - n)) for n in starts])
        first += count
    return partitions


def flat(partitions: Sequence[Sequence[pa.RecordBatch]]) -> list[Row]:
    """All rows in partition order."""
    batches = [batch for batches in partitions for batch in batches]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


@dataclass
class Rig:
    """A cluster in a folder: metadata in files, and bookies on disk or in memory; or all in memory.

    Attributes:
        faults: what every storage operation goes through while ``faults.installed()``.
    """

    folder: Path
    kind: str = "memory"
    metadata: str = "file"
    bookie_count: int = 5
    faults: StorageFaults = field(default_factory=StorageFaults)
    blocks: BlockSettings = BLOCKS
    log_name: str = LOG

    def __post_init__(self) -> None:
        name = secrets.token_hex(6)
        self.folder.mkdir(exist_ok=True)
        numbers = range(1, self.bookie_count + 1)
        self.urls = {
            f"bookie-{n}": f"memory://{name}-{n}"
            if self.kind == "memory"
            else (self.folder / f"disk{n}").as_uri()
            for n in numbers
        }
        self.uri = (self.folder / "metadata").as_uri()
        if self.metadata == "memory":
            self.uri = f"memory://{name}-metadata"
        # Memory beside files on disk: what a test wants of either.
        init_cluster(self.uri, list(self.urls.values()), accepts_risk=self.kind == "memory")

    # --- writing ---------------------------------------------------------------------------

    def request(self, quorum: tuple[int, int, int] | None = None, **options: Any) -> WriteRequest:
        values: dict[str, Any] = {
            "metadata_uri": self.uri,
            "log_name": self.log_name,
            "schema": SCHEMA,
            "quorum": Quorum(*quorum) if quorum else None,
            "digest_type": None,
            "password": Password(),
            "blocks": self.blocks,
        }
        checks = {name: options.pop(name) for name in CHECKS if name in options}
        return WriteRequest(checks=WriteChecks(**checks), **(values | options))

    def target(self, quorum: tuple[int, int, int] | None = None, **options: Any) -> BatchTarget:
        return batch_plan.prepare(self.request(quorum, **options))

    def tasks(
        self, target: BatchTarget, partitions: Sequence[Sequence[pa.RecordBatch]]
    ) -> list[AttemptReport | None]:
        if target.is_done:
            return [AttemptReport(number, 0, 0, ()) for number in range(len(partitions))]
        return [
            AttemptWriter(target, number).write(batches)
            for number, batches in enumerate(partitions)
        ]

    def write(
        self,
        partitions: Sequence[Sequence[pa.RecordBatch]],
        quorum: tuple[int, int, int] | None = None,
        **options: Any,
    ) -> CommitResult:
        target = self.target(quorum, **options)
        return batch_commit.commit(target, self.tasks(target, partitions))

    # --- reading ---------------------------------------------------------------------------

    def log(self) -> LogRecord | None:
        """The log; None if there is none for anybody who asks."""
        with Cluster(self.uri) as cluster:
            try:
                return cluster.log(self.log_name).value
            except NoSuchLedgerError:
                return None

    def ledger(self, ledger_id: int) -> LedgerMetadata:
        with Cluster(self.uri) as cluster:
            return cluster.ledger(ledger_id).value

    def batches(
        self, reader: SliceReader, begin: int, end: int, task_bytes: int = 2**30
    ) -> Iterator[pa.RecordBatch]:
        with Cluster(self.uri) as cluster:
            log = cluster.log(self.log_name).value
            tasks = plan_log(cluster, log, OffsetRange(begin, end), reader.password, task_bytes)
        for task in tasks:
            yield from reader.read(task)

    def rows(self, **options: Any) -> list[Row]:
        """All rows of the log by offset, which are checked to be dense; without the offset."""
        log = self.log()
        if log is None:
            return []
        schema = arrow_schema.decode(log.schema)
        reader = SliceReader(pa.schema([("_offset", pa.int64()), *schema]), **options)
        found = self.batches(reader, log.first_offset, log.end_offset)
        rows = sorted(tuple(row.values()) for batch in found for row in batch.to_pylist())
        assert [row[0] for row in rows] == list(range(log.first_offset, log.end_offset))
        return [row[1:] for row in rows]

    # --- looking at and damaging what is stored ---------------------------------------------

    def good_copies(self, ledger_id: int, password: Password | None = None) -> dict[str, set[str]]:
        """Entry log -> members of its own window that hold it, every block checked."""
        ledger, key = self.ledger(ledger_id), password or Password()
        digester = make_digester(ledger.settings.digest, key)
        copies: dict[str, set[str]] = {}
        if ledger.last_entry_id == -1:
            return copies
        with Cluster(self.uri) as cluster, OpenBookies(cluster) as bookies:
            for placed in placed_logs(ledger, find_records(bookies, ledger, key)):
                log = placed.entry_log
                holders = copies.setdefault(f"{log.attempt_id}-{log.stripe}", set())
                for member in placed.window:
                    try:
                        root = bookies.root(member)
                        file = EntryLogFile(root, log, digester, ledger_id=ledger_id)
                        for block in file.blocks:
                            file.block_bytes(block)
                        holders.add(member.bookie_id)
                    except (BookieUnavailableError, CorruptDataError):
                        continue
        return copies

    def lose(self, bookie_id: str) -> Any:
        """Take the bookie's disk away; give what this returns to ``bring_back``."""
        url = self.urls[bookie_id]
        if self.kind == "memory":
            return memory.place_disk(url, None)
        away = Path(f"{posix.path_of(url)}.away")
        Path(posix.path_of(url)).rename(away)
        return away

    def bring_back(self, bookie_id: str, lost: Any) -> None:
        if self.kind == "memory":
            memory.place_disk(self.urls[bookie_id], lost)
        else:
            lost.rename(posix.path_of(self.urls[bookie_id]))

    def wipe(self, bookie_id: str) -> None:
        """Lose everything on the disk, the cookie too; the place stays."""
        url = self.urls[bookie_id]
        if self.kind == "memory":
            disk = memory.find_disk(url)
            assert disk is not None
            disk.wipe()
        else:
            shutil.rmtree(posix.path_of(url))
            os.mkdir(posix.path_of(url), 0o700)

    def names(self, bookie_id: str) -> list[str]:
        """Files on the bookie, but its cookie."""
        url = self.urls[bookie_id]
        if self.kind == "memory":
            disk = memory.find_disk(url)
            found = list(disk.files) if disk else []
        else:
            root = Path(posix.path_of(url))
            found = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        return sorted(set(found) - {"COOKIE"})

    def file_bytes(self, bookie_id: str, name: str) -> bytes:
        url = self.urls[bookie_id]
        if self.kind == "memory":
            disk = memory.find_disk(url)
            assert disk is not None
            return bytes(disk.files[name].data)
        return (Path(posix.path_of(url)) / name).read_bytes()

    def replace_file(self, bookie_id: str, name: str, data: bytes | None) -> None:
        """Change a file behind the bookie's back; None removes it."""
        url = self.urls[bookie_id]
        if self.kind == "memory":
            disk = memory.find_disk(url)
            assert disk is not None
            del disk.files[name]
            if data is not None:
                disk.files[name] = memory.MemoryFile(data)
            return
        path = Path(posix.path_of(url)) / name
        path.unlink()
        if data is not None:
            path.write_bytes(data)

    def assert_survives_losses(self, expected: list[Row], count: int, among: set[str]) -> int:
        """With any ``count`` of the bookies ``among`` lost, all rows are read; how many ways."""
        ways = list(combinations(sorted(among), count))
        for chosen in ways:
            lost = {bookie_id: self.lose(bookie_id) for bookie_id in chosen}
            assert self.rows() == expected, chosen
            for bookie_id, disk in lost.items():
                self.bring_back(bookie_id, disk)
        return len(ways)


def compressed(blocks: BlockSettings, compression: str) -> BlockSettings:
    return replace(blocks, compression=compression)
