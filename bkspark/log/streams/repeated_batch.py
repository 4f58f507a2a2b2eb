"""Compare a repeated micro-batch with the rows that were committed under its number.

Spark's own retry has the same rows, but maybe in another order, in other partitions and in entry
logs with other bytes, because the rows were shuffled or the cluster has other cores now. So the
rows are compared as a multiset. The commit process reads both sides from the bookies, and only for
a repeated batch; other batches cost nothing.

If the log no longer has the committed rows (an overwrite, a truncation, a compaction), they cannot
be compared. The batch then counts as Spark's own retry, and a warning is logged.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise

import pyarrow as pa

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import NoSuchEntryError, NoSuchLedgerError
from bkspark.format import arrow_schema
from bkspark.log.batch.target import WriteRequest
from bkspark.log.reading.ledger_files import OpenBookies, find_records
from bkspark.log.reading.read_slices import plan_ledger
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from bkspark.log.streams.micro_batch import Staged, blocks_of
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.record import AddRecord, Transaction
from bkspark.protocol.log.batch import other_rows
from bkspark.protocol.log.transactions import last_version

logger = logging.getLogger(__name__)

Batches = Iterator[pa.RecordBatch]

_SPAN = 4_096
"""Entries at a ledger's end that are searched first for the batch."""

_DIGEST_BYTES = 16
_DIGEST_MASK = (1 << 8 * _DIGEST_BYTES) - 1


@dataclass(frozen=True, slots=True)
class CommittedTail:
    """The ledger at the log's end, and its number of committed entries."""

    ledger: LedgerMetadata
    entry_count: int


def require_same_rows(
    cluster: Cluster, request: WriteRequest, batch: Staged, tail: CommittedTail
) -> None:
    """Check that ``batch``, the last committed batch of its query, has the same rows as before.

    Raises:
        InvalidRequestError: the rows differ ("batch_order", rule 2).
        CorruptDataError, BookieUnavailableError, NotEnoughBookiesError: rows cannot be read now.
    """
    done, run, name = batch.transaction, batch.run, request.log_name
    assert done is not None
    assert run is not None
    try:
        found = _find_committed(cluster, request, done, tail)
        what = "" if found is None else _difference(cluster, request, batch, *found)
    except (NoSuchEntryError, NoSuchLedgerError):
        found, what = None, ""
    if what:
        raise other_rows(run.query_id, done.version, name, what)
    if found is None:
        logger.warning(
            "log %s: micro-batch %d of query %s is committed, and came again; its rows were "
            "not compared, because the log does not have them any more",
            name,
            done.version,
            run.query_id,
        )


def _find_committed(
    cluster: Cluster, request: WriteRequest, done: Transaction, tail: CommittedTail
) -> tuple[LedgerMetadata, AddRecord] | None:
    """Return the record that committed the batch, with its ledger; None if the log dropped it."""
    password = request.password
    with OpenBookies(cluster) as bookies:
        record = _find_record(bookies, tail.ledger, done, tail.entry_count, password)
        if record is not None:
            return tail.ledger, record
        for place in reversed(list(cluster.log(request.log_name).value.every_ledger())):
            ledger = cluster.ledger(place.ledger_id).value
            if last_version(ledger.transactions, done.app_id) == done.version:
                record = _find_record(bookies, ledger, done, place.entry_count, password)
                return None if record is None else (ledger, record)
    return None


def _find_record(
    bookies: OpenBookies,
    ledger: LedgerMetadata,
    done: Transaction,
    end: int,
    password: Password,
) -> AddRecord | None:
    """Return the record of ``ledger`` that committed ``done``, among the entries below ``end``.

    Each record has the last transaction of each application so far, so the first record with
    ``done`` committed it. The search goes backwards from the ledger's end.
    """
    first, span = ledger.first_available, _SPAN
    while first < end:
        begin = max(first, end - span)
        records = find_records(bookies, ledger, password, begin=begin, end=end)
        ours = [
            one for one in records if last_version(one.transactions, done.app_id) == done.version
        ]
        if not ours or ours[0].parts:
            return None
        if len(ours) < len(records) or ours[0].first_entry_id == 0:
            return ours[0]
        if begin == first:
            return None  # earlier records are truncated, perhaps also the right one
        span *= 16
    return None


def _difference(
    cluster: Cluster,
    request: WriteRequest,
    batch: Staged,
    ledger: LedgerMetadata,
    record: AddRecord,
) -> str:
    """Describe how the rows of ``batch`` differ from those of ``record``; empty if they agree."""
    count = sum(report.row_count for report in batch.reports)
    if count != record.entry_count:
        return f"{record.entry_count} then, {count} now"
    logs = {log.entry_log for report in batch.reports for log in report.logs}
    if logs == set(record.entry_logs):
        return ""
    staged, stored = map(arrow_schema.decode, (batch.staging.schema, ledger.settings.schema))
    schema = stored if arrow_schema.fits(stored, staged) else staged
    entries = OffsetRange(record.first_entry_id, record.last_entry_id + 1)

    def committed() -> Batches:
        reader = SliceReader(schema, request.password)
        for task in plan_ledger(cluster, ledger, entries, request.password, None):
            yield from reader.read(task)

    def given() -> Batches:
        for report in sorted(batch.reports, key=lambda one: one.partition_id):
            for log in report.logs:
                for block in blocks_of(log, batch.staging, request.password):
                    yield arrow_schema.relabel(block, schema)

    return "" if are_same(committed, given) else f"{count} each time"


def are_same(one: Callable[[], Batches], other: Callable[[], Batches]) -> bool:
    """Whether both sides give the same rows in any order; their schemas agree.

    Rows in the same order are compared directly, which is fast. Otherwise the sums of the rows'
    digests are compared.
    """
    return _are_aligned(one(), other()) or _sum_of_digests(one()) == _sum_of_digests(other())


def _are_aligned(one: Batches, other: Batches) -> bool:
    """Whether ``one`` and ``other``, with equally many rows, agree row by row."""
    ahead: pa.RecordBatch | None = None
    for batch in one:
        while batch.num_rows:
            while ahead is None or not ahead.num_rows:
                ahead = next(other, None)
                if ahead is None:
                    return False
            count = min(batch.num_rows, ahead.num_rows)
            if not batch.slice(0, count).equals(ahead.slice(0, count)):
                return False
            batch, ahead = batch.slice(count), ahead.slice(count)
    return True


def _sum_of_digests(batches: Batches) -> int:
    """Return a number that depends on the rows, but not on their order."""
    total = 0
    for batch in filter(len, batches):
        columns = [_values(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            digest = blake2b(repr(row).encode(), digest_size=_DIGEST_BYTES).digest()
            total += int.from_bytes(digest, "little")
    return total & _DIGEST_MASK


def _values(array: pa.Array) -> list[object]:
    """Return for each slot of ``array`` a value; ``repr`` differs for different values.

    Times and texts are taken as numbers and bytes: Python's own types cannot represent all of them.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _values(array.storage)
    if pa.types.is_struct(kind):
        fields = [_values(field) for field in array.flatten()]
        rows: Iterator[object] = zip(*fields, strict=True) if fields else iter([()] * len(array))
        return _with_nulls(array, rows)
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _with_nulls(array, _lists(array))
    return list(_plain(array).to_pylist())


def _plain(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_string(kind):
        return array.view(pa.binary())
    if pa.types.is_large_string(kind):
        return array.view(pa.large_binary())
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        return array.view(pa.int64())
    return array.view(pa.int32()) if pa.types.is_date32(kind) else array


def _lists(array: pa.Array) -> Iterator[object]:
    """Yield the items of each list, or the pairs of each map."""
    offsets = array.offsets.to_pylist()
    begin, end = offsets[0], offsets[-1]
    if pa.types.is_map(array.type):
        keys, items = (x.slice(begin, end - begin) for x in (array.keys, array.items))
        flat: list[object] = list(zip(_values(keys), _values(items), strict=True))
    else:
        flat = _values(array.values.slice(begin, end - begin))
    for first, past in pairwise(offsets):
        yield tuple(flat[first - begin : past - begin])


def _with_nulls(array: pa.Array, values: Iterator[object]) -> list[object]:
    return [value if ok else None for value, ok in zip(values, array.is_valid().to_pylist())]
