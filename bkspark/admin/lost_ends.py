"""Let a log go on after its last ledger has lost its metadata record.

The rows of the ledger are lost, because only the record tells where they are and which count. One
compare-and-set of the log's record gives the ledger a lost place (``protocol.log.lost``). Then
older rows can be read, and new rows follow.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Versioned
from bkspark.errors import BookKeeperError, InvalidRequestError, NoSuchLedgerError
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.log.lost import with_lost
from bkspark.protocol.log.record import LogRecord

Ends = Mapping[int, Versioned[LogRecord]]
"""The record of the log that ends in a ledger, by the id of the ledger."""


def read_ends(cluster: Cluster) -> Ends:
    """Read all logs; unreadable ones are left out."""
    return {ledger_id: seen for seen in _readable_logs(cluster) for ledger_id in seen.value.tail}


def find_missing_ends(cluster: Cluster, ends: Ends) -> Iterator[int]:
    """Yield the id of each ledger without a record in which a log ends."""
    for ledger_id, seen in ends.items():
        with suppress(BookKeeperError):  # unreadable, and listed as that
            is_missing = cluster.ledgers.get(str(ledger_id)) is None
            if is_missing and cluster.logs.is_current(seen.value.name, seen):
                yield ledger_id


def log_in(ends: Ends, ledger_id: int) -> str:
    """Return the name of the log that ends in the ledger; empty without such a log."""
    return ends[ledger_id].value.name if ledger_id in ends else ""


def require_end_can_be_lost(cluster: Cluster, log_name: str, ledger_id: int) -> None:
    """Check that ``give_lost_place`` will find no obstacle.

    Raises:
        InvalidRequestError: an earlier ledger of the log's tail has to be closed first.
    """
    _with_lost_end(cluster, cluster.log(log_name).value, ledger_id)


def give_lost_place(cluster: Cluster, log_name: str, ledger_id: int) -> int:
    """Give the ledger a lost place in the log; return the offset at which the log goes on.

    Raises:
        InvalidRequestError: the ledger has a record again, or an earlier ledger of the log's tail
            has to be closed first.
        OutcomeUnknownError: the metadata store gave no definite answer; a second call is harmless.
    """

    def changed(record: LogRecord | None) -> LogRecord:
        if record is None:
            raise NoSuchLedgerError(f"there is no log {log_name!r}")
        if ledger_id not in record.tail:
            return record
        # Read after the log's record, which named the ledger: so the record was not freed.
        if cluster.ledgers.get(str(ledger_id)) is not None:
            raise InvalidRequestError(
                f"ledger {ledger_id} has a metadata record, so log {log_name!r} was not changed",
                hint="look at it again: `bkspark metadata damaged`",
            )
        return _with_lost_end(cluster, record, ledger_id).stamped(environment.now_ms())

    return cluster.logs.update(log_name, changed).value.end_offset


def _with_lost_end(cluster: Cluster, log: LogRecord, ledger_id: int) -> LogRecord:
    if ledger_id in log.tail[1:]:
        with suppress(NoSuchLedgerError):
            first = cluster.ledger(log.tail[0]).value
            log = log.with_closed(first) if first.state is LedgerState.CLOSED else log
    return with_lost(log, ledger_id)


def _readable_logs(cluster: Cluster) -> Iterator[Versioned[LogRecord]]:
    for name in cluster.log_names():
        with suppress(BookKeeperError):  # unreadable, and listed as that
            seen = cluster.logs.get(name)
            if seen is not None:
                yield seen
