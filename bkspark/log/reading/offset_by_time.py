"""Find the first offset of a log that was committed at a time or later.

The log's list names the ledger, at the cost of a page for each level of pages. If all entries of
the ledger were committed at one time, as in a write of rows, no other record is read. In any other
ledger the search halves the entries; each step reads a page of a journal. Of a ledger with entry
logs it reads the heads of all records. Only a search after the closed ledgers asks bookies for the
log's readable end.

Of rows that only the log's table has, the tier's segments name a range, and the column of times in
the table names the offset.

The times are informational (``commit_times``), and no guarantee rests on the result.
"""

from collections.abc import Callable

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.ledger.handles.read_handle import ReadHandle
from bkspark.log.reading.ledger_files import OpenBookies, find_records
from bkspark.log.reading.log_view import LogWatch
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.record import AddRecord
from bkspark.protocol.log.ledger_list import LoggedLedger, first_since
from bkspark.protocol.log.record import LogRecord


def offset_since(
    cluster: Cluster, log: LogRecord, watch: LogWatch, password: Password, ms: int
) -> int:
    """Return the first offset of ``log`` committed at ``ms`` or later; the log's end if none was.

    Args:
        watch: looks at the log's readable end, if no closed ledger has the offset.

    Raises:
        BookieUnavailableError: too few bookies answer to know the readable end of the tail.
        CorruptDataError: no bookie gives a record that the search needs.
        NoSuchLedgerError: the ledger was deleted meanwhile.
        TableChangedError, TableUnavailableError: the table of the log cannot tell.
    """
    freed = _freed_offset_since(cluster, log, ms)
    if freed is not None:
        return max(freed, log.first_offset)
    place, tail = first_since(log.stretches, ms, log.source), tuple[LoggedLedger, ...]()
    if place is None and log.tail:
        view = watch.look()
        log, tail = view.record, view.tail
        place = first_since(log.stretches, ms, log.source)
    offset = log.end_offset
    for part in tail if place is None else [place]:
        offset = part.first_offset + _entry_since(cluster, part, password, ms)
        if offset < part.end_offset:
            break
    return max(offset, log.first_offset)


def _freed_offset_since(cluster: Cluster, log: LogRecord, ms: int) -> int | None:
    """Return the first freed offset committed at ``ms`` or later; None if a later one was."""
    tier = log.tier
    if tier is None or log.first_offset >= tier.freed or ms > tier.of_freed.last_ms:
        return None
    from bkspark.log.reading.tier_rows import TierRows

    begin, end = tier.freed, tier.freed
    for segment in cluster.logs.tier_pages(log.name).every_segment(tier):
        if segment.last_ms < ms or segment.end <= log.first_offset:
            break
        if segment.begin < tier.freed:
            begin, end = segment.begin, min(segment.end, tier.freed)
    return TierRows(log).offset_since(ms, begin, end)


def _entry_since(cluster: Cluster, place: LoggedLedger, password: Password, ms: int) -> int:
    """Return the first entry of a ledger committed at ``ms`` or later; its end if none was."""
    if place.first_ms >= ms:
        return 0
    if 0 < place.last_ms < ms:
        return place.entry_count
    ledger = cluster.ledger(place.ledger_id).value
    with OpenBookies(cluster) as bookies:
        records = find_records(bookies, ledger, password, end=place.entry_count)
    if records and not records[0].parts:
        later = (record for record in records if record.times.last_ms >= ms)
        return next((record.first_entry_since(ms) for record in later), place.entry_count)
    return _inline_entry_since(cluster, ledger, place.entry_count, password, ms)


def _inline_entry_since(
    cluster: Cluster, ledger: LedgerMetadata, end: int, password: Password, ms: int
) -> int:
    digester = make_digester(ledger.settings.digest, password)
    reader = ReadHandle(cluster, ledger.ledger_id, digester, confirmed=end - 1)
    return first_entry_since(ms, ledger.first_available, end, reader.record_of)


def first_entry_since(ms: int, begin: int, end: int, record_of: Callable[[int], AddRecord]) -> int:
    """Return the first of the entries ``[begin, end)`` committed at ``ms`` or later, else ``end``.

    Args:
        record_of: returns the record of an entry; called about once for each halving.
    """
    while begin < end:
        record = record_of((begin + end) // 2)
        if record.times.last_ms < ms:
            begin = record.last_entry_id + 1
        else:
            end = max(begin, record.first_entry_id)
    return begin
