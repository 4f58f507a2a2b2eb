"""Rewrite neighbouring ledgers of a log as one ledger, and replace them by the new one.

The rows are read with every check, and written like those of a batch: entry logs, one record with
its ack, then the ledger is closed. One compare-and-set of the log's record then replaces the old
ledgers ("protocol.log.compaction"). No ledger is fenced or changed: writers, readers and streams
continue. Running reads of the replaced ledgers may finish until a collection frees the files.

A compaction killed at any point leaves a ledger that no log names, which a collection frees, and
unreferenced pages. If two compactions overlap, both write the rows, and the slower compaction
drops its ledger.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    MetadataVersionError,
    NoSuchLedgerError,
)
from bkspark.format import arrow_schema
from bkspark.format.arrow_schema import OFFSET_COLUMN
from bkspark.ledger.creating import COMPACT, CreatedLedger, create_ledger, of_log, replacing
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.preparing import target_of
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.log.batch.target import BatchTarget, BlockSettings, WriteRequest
from bkspark.log.creating import drop_unlisted
from bkspark.log.reading.log_view import was_set_aside
from bkspark.log.reading.ordered_read import OrderedRead
from bkspark.log.reading.read_slices import LOOK_UPS_AT_ONCE, plan_log
from bkspark.log.reading.slices import OffsetRange, ReadTask, Slice
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.log.batch import AttemptReport
from bkspark.protocol.log.compaction import MergeRange, compacted, time_steps_of, times_of
from bkspark.protocol.log.data_loss import LogGeneration
from bkspark.protocol.log.ledger_list import LoggedLedger
from bkspark.protocol.log.record import LogRecord

logger = logging.getLogger(__name__)

WINDOW_BYTES = 16 * 2**20
"""Approximate size of the rows in memory at a time."""

BLOCKS = BlockSettings(rows_per_block=65_536, target_bytes=2 * 2**20, compression="none")
_TASK_BYTES = 2**62

HasRead = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Merged:
    """The ledger that a compaction made.

    Attributes:
        ledger_id: id of the new ledger.
        ledger_count: number of ledgers that it replaced.
    """

    ledger_id: int
    first_offset: int
    entry_count: int
    length_bytes: int
    ledger_count: int


def compact_run(
    cluster: Cluster, log: LogRecord, run: MergeRange, password: Password, has_read: HasRead
) -> list[Merged]:
    """Rewrite ``run``: make one new ledger for each sequence of neighbours with equal columns.

    Args:
        log: the version in which ``run`` was found, or a later version of the same generation.
        has_read: called with the number of bytes after each read.

    Raises:
        MetadataVersionError: the log has changed in the range of ``run``; the new rows are dropped.
        CorruptDataError, BookieUnavailableError: some rows cannot be read now.
        NotEnoughBookiesError: too few bookies accept the new ledger.
        NoSuchEntryError, NoSuchLedgerError: the log was truncated or deleted meanwhile.
        UnauthorizedError: the password is missing or wrong.
    """
    places = tuple(log.ledgers_in(run.begin, run.end))
    if (places[0].first_offset, places[-1].end_offset) != (run.begin, run.end):
        raise MetadataVersionError(
            f"log {log.name!r} was compacted or truncated from offset {run.begin} to "
            f"{run.end - 1} by another command",
            hint="run the command again",
        )
    done = []
    for schema, part in _alike(cluster, places):
        if schema is not None and len(part) > 1:
            done.append(_Rewriting(cluster, log, part, schema, password).carry_out(has_read))
    return done


def _alike(
    cluster: Cluster, places: Sequence[LoggedLedger]
) -> Iterator[tuple[bytes | None, tuple[LoggedLedger, ...]]]:
    """Split ``places`` where the columns change; yield each part with its schema.

    Ledgers whose metadata records an operator set aside stay, and have the schema None.
    """

    def look_up(place: LoggedLedger) -> LedgerMetadata | None:
        try:
            return cluster.ledger(place.ledger_id).value
        except NoSuchLedgerError:
            if was_set_aside(cluster, place.ledger_id):
                return None
            raise

    ledgers = environment.for_each(
        look_up, places, at_once=LOOK_UPS_AT_ONCE, name="look-up-ledgers"
    )
    pairs = zip(ledgers, places, strict=True)
    for schema, part in groupby(pairs, key=lambda pair: pair[0] and pair[0].settings.schema):
        yield schema, tuple(place for _, place in part)


@dataclass(frozen=True)
class _Rewriting:
    """The rewriting of ``places``, which are neighbours in ``log`` with one schema."""

    cluster: Cluster
    log: LogRecord
    places: tuple[LoggedLedger, ...]
    schema: bytes
    password: Password

    def carry_out(self, has_read: HasRead) -> Merged:
        windows = list(_windows(self.places))
        compression = self._compression(self.places[0])
        created = create_ledger(
            self.cluster,
            quorum=self.log.quorum,
            digest=self.log.digest,
            schema=self.schema,
            custom_metadata=of_log(self.log.name, COMPACT)
            | replacing(place.ledger_id for place in self.places),
            guarantees_write_quorum=self.log.settings.guarantees_write_quorum,
            is_strict=self.log.settings.is_strict,
            min_distinct=self.log.settings.min_distinct,
        )
        try:
            target = self._target(created, compression)
            self._write(created, target, self._read(windows, has_read))
            self._swap(target.ledger_id)
        except BookKeeperError:
            drop_unlisted(self.cluster, self.log.name, created)
            raise
        merged = self._merged(target.ledger_id)
        logger.info(
            "log %s: ledger %d replaced %d ledgers, from offset %d on",
            *(self.log.name, merged.ledger_id, merged.ledger_count, merged.first_offset),
        )
        return merged

    def _merged(self, ledger_id: int) -> Merged:
        entry_count = sum(place.entry_count for place in self.places)
        length = sum(place.length_bytes for place in self.places)
        first_offset = self.places[0].first_offset
        return Merged(ledger_id, first_offset, entry_count, length, len(self.places))

    def _target(self, created: CreatedLedger, compression: str) -> BatchTarget:
        request = WriteRequest(
            metadata_uri=self.cluster.uri,
            log_name=self.log.name,
            schema=arrow_schema.decode(self.schema),
            quorum=self.log.quorum,
            digest_type=self.log.digest.digest_type,
            password=self.password,
            blocks=replace(BLOCKS, compression=compression),
        )
        return target_of(request, created.seen.value, created.ensemble, created.spares)

    def _plan(self, window: OffsetRange) -> list[ReadTask]:
        return plan_log(self.cluster, self.log, window, self.password, _TASK_BYTES)

    def _compression(self, first: LoggedLedger) -> str:
        """Choose LZ4 if the first ledger is stored in less than 3/4 of its uncompressed size."""
        tasks = self._plan(OffsetRange(first.first_offset, first.end_offset))
        slices = [item for task in tasks for item in task.slices if isinstance(item, Slice)]
        stored = sum(item.length_bytes for item in slices)
        return "lz4" if 0 < stored * 4 < first.length_bytes * 3 else "none"

    def _read(self, windows: Sequence[OffsetRange], has_read: HasRead) -> Iterator[pa.RecordBatch]:
        """Yield all rows in the order of their offsets."""
        generation = LogGeneration(self.log.name, self.log.generation)
        schema = arrow_schema.decode(self.schema)
        for window in windows:
            rows = OrderedRead(window, OFFSET_COLUMN, schema, self.password, self._plan, generation)
            expected = window.begin
            for table in rows:
                _require_dense(table, expected, self.log.name)
                expected += table.num_rows
                has_read(table.nbytes)
                yield from table.select(schema.names).to_batches()
            if expected != window.end:
                raise CorruptDataError(
                    f"log {self.log.name!r} gives no offset {expected}, before {window.end}"
                )

    def _write(
        self, created: CreatedLedger, target: BatchTarget, rows: Iterator[pa.RecordBatch]
    ) -> None:
        report = AttemptWriter(target, 0).write(rows)
        # The length of the replaced ledgers: the size of the rows in memory is not payload.
        length = sum(place.length_bytes for place in self.places)
        reports: list[AttemptReport | None] = [replace(report, length_bytes=length)]
        with RecordWriter(
            self.cluster,
            created.seen,
            target.digester(),
            target.ensemble,
            term=target.term,
            token=target.token,
        ) as writer:
            times, steps = times_of(self.places), time_steps_of(self.places)
            writer.write(
                reports, spares=target.spares, transaction=None, times=times, time_steps=steps
            )
            writer.close_ledger()

    def _swap(self, ledger_id: int) -> None:
        """Replace the old ledgers by the closed new ledger, in one compare-and-set."""
        make_page = self.cluster.logs.page_maker(self.log)

        def swapped(record: LogRecord | None) -> LogRecord:
            if record is None or record.is_tombstone:
                raise NoSuchLedgerError(f"log {self.log.name!r} was deleted meanwhile")
            same = record.still_of(self.log.generation)
            # Read the ledger after the log: a deletion drops ledgers from the log first.
            ledger = self.cluster.ledger(ledger_id).value
            after = compacted(same, self.places, ledger, make_page)
            return record if after is record else after.stamped(environment.now_ms())

        self.cluster.logs.update(self.log.name, swapped)


def _require_dense(table: pa.Table, begin: int, log_name: str) -> None:
    """Require ``table`` to have exactly the offsets from ``begin`` on, in order.

    Raises:
        CorruptDataError: the offsets differ; no row may be written.
    """
    wanted = pa.chunked_array([pa.arange(begin, begin + table.num_rows)], pa.int64())
    if not table.column(OFFSET_COLUMN).equals(wanted):
        raise CorruptDataError(
            f"log {log_name!r} did not give each offset from {begin} on exactly once"
        )


def _windows(places: Sequence[LoggedLedger]) -> Iterator[OffsetRange]:
    """Split the offsets of ``places`` into ranges of about ``WINDOW_BYTES`` each."""
    begin, length = places[0].first_offset, 0
    for place in places:
        length += place.length_bytes
        while length > WINDOW_BYTES and place.length_bytes:
            rest = place.end_offset - begin
            end = begin + max(1, rest * WINDOW_BYTES // length)
            if end >= place.end_offset:
                break
            yield OffsetRange(begin, end)
            length -= length * (end - begin) // rest
            begin = end
    if begin < places[-1].end_offset:
        yield OffsetRange(begin, places[-1].end_offset)
