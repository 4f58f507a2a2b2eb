"""Let a log go on after its last ledger has lost its metadata record.

The rows of the ledger are lost, because only the record tells where they are and which count. One
compare-and-set of the log's record gives the ledger a lost place (``protocol.log.lost``). Then
older rows can be read, and new rows follow.
"""

from collections.abc import Iterator
from contextlib import suppress

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Versioned
from bkspark.errors import BookKeeperError, InvalidRequestError, NoSuchLedgerError
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.log.lost import with_lost
from bkspark.protocol.log.record import LogRecord


def find_missing_ends(cluster: Cluster) -> Iterator[tuple[int, str]]:
    """Yield each ledger without a record in which a readable log ends, with the log's name."""
    for seen in _readable_logs(cluster):
        name = seen.value.name
        for ledger_id in seen.value.tail:
            with suppress(BookKeeperError):  # unreadable, and listed as that
                is_missing = cluster.ledgers.get(str(ledger_id)) is None
                if is_missing and cluster.logs.is_current(name, seen):
                    yield ledger_id, name


def log_that_ends_in(cluster: Cluster, ledger_id: int) -> str:
    """Return the log with the ledger in its tail; empty without such a readable log."""
    found = (s.value.name for s in _readable_logs(cluster) if ledger_id in s.value.tail)
    return next(found, "")


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
                f"ledger {ledger_id} has a metadata record, so log {log_name!r} stays as it is",
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
