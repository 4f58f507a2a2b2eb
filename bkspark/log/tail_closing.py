"""Close a log's tail: fence, recover and close its ledgers before another ledger follows.

Always the whole tail (RB-44). The tail has two ledgers while a writer rolls: the writer may still
append to the first of them when the second is on the list (BookKeeper's protocol, "Opening a log";
RB-20, H41).
"""

from collections.abc import Callable

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.cluster.records import Versioned, back_off
from bkspark.errors import LedgerExistsError, MetadataVersionError, NoSuchLedgerError
from bkspark.ledger.recovery.recover import recover
from bkspark.protocol.log.lost import missing_end
from bkspark.protocol.log.record import LogRecord

TRIES_MAX = 200
"""Clients that compete for a log are safe but slow; an operator should look after so many tries."""


def close_tail(cluster: Cluster, log_name: str, password: Password) -> Versioned[LogRecord]:
    """Close the log's tail and fence its writer; return the log without a tail.

    Raises:
        NoSuchLedgerError: there is no such log.
        NotEnoughBookiesError: the tail cannot be recovered yet. The message gives the reason.
        UnauthorizedError: the password is missing or wrong; nothing was fenced.
    """
    cluster.log(log_name)
    return update_with_closed_tail(cluster, log_name, password, _as_it_is)


def update_with_closed_tail(
    cluster: Cluster,
    log_name: str,
    password: Password,
    change: Callable[[LogRecord | None], LogRecord],
) -> Versioned[LogRecord]:
    """Close the tail and ``change`` the log in one compare-and-set; retry if it is lost.

    Args:
        change: gets the record with an empty tail, or None if there is no record. May be called
            again with a newer record. Returns its argument if there is nothing to do.
    """
    for attempt in range(TRIES_MAX):
        seen = cluster.logs.get(log_name)
        before = None if seen is None else seen.value
        try:
            closed = None if before is None else with_closed_tail(cluster, before, password)
        except NoSuchLedgerError as error:  # another client closed it, and found it empty
            if seen is None or cluster.logs.is_current(log_name, seen):
                raise missing_end(log_name, error) from error
            continue
        after = change(closed)
        if seen is not None and after == before:
            return seen
        after = after.stamped(environment.now_ms())
        try:
            if seen is None:
                return cluster.logs.create(log_name, after)
            return cluster.logs.replace(log_name, after, seen)
        except (MetadataVersionError, LedgerExistsError):
            back_off(attempt)
    raise duel(log_name)


def with_closed_tail(cluster: Cluster, log: LogRecord, password: Password) -> LogRecord:
    """Fence, recover and close the log's tail; return ``log`` with the closed ledgers listed."""
    for ledger_id in log.tail:
        recover(cluster, ledger_id, password)
    return log.with_closed(*(cluster.ledger(ledger_id).value for ledger_id in log.tail))


def duel(log_name: str) -> MetadataVersionError:
    return MetadataVersionError(
        f"other clients changed log {log_name} in each attempt to open or extend it",
        hint="let only one writer open the log at a time, then try again",
    )


def _as_it_is(record: LogRecord | None) -> LogRecord:
    assert record is not None
    return record
