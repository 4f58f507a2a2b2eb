"""Deletes logs and ledgers, and the beginnings of ledgers."""

from collections.abc import Collection
from contextlib import suppress
from functools import partial

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Versioned
from bkspark.cluster.settled_ledgers import tell_collections
from bkspark.errors import CorruptDataError, InvalidRequestError, NoSuchLedgerError
from bkspark.format import layout
from bkspark.ledger.creating import log_of
from bkspark.protocol.ledger.deletion import without_front
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.record import LogRecord

# --- deleting ------------------------------------------------------------------------------------
# Deletes logs and ledgers.
#
# Deletion makes the metadata a tombstone: no process can read or write the ledger any more. Its id
# is never used again, so a writer that resumes later finds no record of its own (RB-28). The data
# stays on the bookies until a collection removes it (``admin.collecting``).


def delete_log(cluster: Cluster, name: str) -> list[int]:
    """Delete the log and all its ledgers.

    First the writer is fenced, by the metadata alone; then the log's record becomes a tombstone at
    once. After an interruption, a second run deletes the remaining ledgers. So does a truncation of
    a new log with the same name.

    Returns:
        The ids of the deleted ledgers.

    Raises:
        NoSuchLedgerError: neither the log nor a remaining ledger of the log exists.
        MetadataVersionError: the log was overwritten, or deleted and created again, meanwhile.
    """
    before = cluster.logs.get(layout.log_name(name))
    if before is None:
        raise _no_log(name)

    def vacated(record: LogRecord | None) -> LogRecord:
        if record is None:
            raise _no_log(name)
        record.still_of(before.value.generation)
        if record.is_tombstone and not record.dropped.pages:
            return record
        # Before an acknowledgement a writer checks only its ledger's record (R4). So fence its
        # ledger before the log goes; no entry is acknowledged after the log is gone.
        for ledger_id in record.tail:
            _fence(cluster, ledger_id)
        return record.vacated()

    after = cluster.logs.update(name, vacated, seen=before).value
    gone: list[int] = []
    left: tuple[int, ...] = after.dropped.ids
    while True:
        deleted = [ledger_id for ledger_id in left if make_tombstone(cluster, ledger_id)]
        tell_collections(cluster, deleted)  # before the log's record forgets them
        gone += deleted
        if not after.dropped.pages_to_delete:
            break
        after = _forgotten(cluster, after, left)
        left = after.dropped.to_delete
    if not gone and before.value.is_tombstone:
        raise _no_log(name)
    _forgotten(cluster, after, left)
    return gone


def _forgotten(cluster: Cluster, log: LogRecord, deleted: Collection[int]) -> LogRecord:
    """Remove the ``deleted`` ledgers from the record, and load the next ones from its pages."""

    def forgetting(record: LogRecord | None) -> LogRecord:
        return (record or log).forgetting(deleted).with_more_to_delete()

    return cluster.logs.update(log.name, forgetting).value


def _fence(cluster: Cluster, ledger_id: int) -> None:
    """Fence the writer of an OPEN ledger, so that its log recovers the ledger if the deletion
    fails.

    Only the metadata is changed. A ledger with a missing or damaged record needs no fence: no
    writer finds its record unchanged (R4).
    """
    token = environment.token()

    def fenced(metadata: LedgerMetadata | None) -> LedgerMetadata:
        if metadata is None:
            raise NoSuchLedgerError(f"there is no ledger {ledger_id}")
        return metadata.in_recovery(token) if metadata.state is LedgerState.OPEN else metadata

    with suppress(NoSuchLedgerError, CorruptDataError):
        cluster.ledgers.update(str(ledger_id), fenced)


def delete_ledger(cluster: Cluster, ledger_id: int) -> None:
    """Delete a ledger that is on no log's list.

    First exclude the ledger from its own log, so that no late commit can add it there.

    Raises:
        NoSuchLedgerError: there is no such ledger.
        InvalidRequestError: the ledger is part of a log.
    """
    ledger = cluster.ledger(ledger_id).value
    own_log = log_of(ledger)  # no other log can list the ledger
    if own_log is not None:
        cluster.logs.update(own_log, lambda record: _without(ledger, own_log, record))
    make_tombstone(cluster, ledger_id)
    if own_log is None:  # otherwise its log's record names it until it is freed
        tell_collections(cluster, [ledger_id])


def _without(ledger: LedgerMetadata, name: str, record: LogRecord | None) -> LogRecord:
    log = LogRecord.of(record, name, ledger.quorum)
    _require_unlisted(ledger, log)
    return log.without(ledger.ledger_id)


def _require_unlisted(ledger: LedgerMetadata, log: LogRecord) -> None:
    if log.lists(ledger.ledger_id):
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id} is part of log {log.name!r}",
            hint=f"to delete the whole log: `bkspark log delete {log.name}`",
        )


def exclude(cluster: Cluster, log_name: str, ledger_id: int, quorum: Quorum) -> bool:
    """Make sure that a ledger never joins a log; return False if the log already lists it.

    Deletes no data: the collection does, and a commit in another process may still read the ledger.
    """
    log = cluster.logs.update(
        log_name, lambda record: LogRecord.of(record, log_name, quorum).without(ledger_id)
    )
    return not log.value.lists(ledger_id)


def make_tombstone(cluster: Cluster, ledger_id: int) -> bool:
    """Delete a ledger that its log no longer lists.

    Returns:
        Whether the ledger existed and was not deleted yet.
    """
    seen = cluster.ledgers.get(str(ledger_id))
    if seen is None or seen.value.state is LedgerState.DELETING:
        return False

    def deleting(metadata: LedgerMetadata | None) -> LedgerMetadata:
        if metadata is None:
            raise NoSuchLedgerError(f"there is no ledger {ledger_id}")
        return metadata.deleting()

    try:
        cluster.ledgers.update(str(ledger_id), deleting, seen=seen)
    except NoSuchLedgerError:  # a collection has freed it since
        return False
    return True


def _no_log(name: str) -> NoSuchLedgerError:
    return NoSuchLedgerError(f"there is no log {name!r}", hint="`bkspark logs` lists them")


# --- truncating ----------------------------------------------------------------------------------
# Truncates the beginning of a ledger that continues in later terms.
#
# One compare-and-set in the metadata, beside the running writer, truncates the ledger. A collection
# frees the data on the bookies (``admin.collecting``), but only whole journals.


def truncate_ledger(
    cluster: Cluster,
    ledger_id: int,
    before_entry: int,
    seen: Versioned[LedgerMetadata] | None = None,
) -> LedgerMetadata:
    """Truncate fragments that end before ``before_entry``.

    The ledger may still begin before ``before_entry``: only whole fragments go, and the last
    fragment with entries stays. Without a fragment to drop, no record is stored.

    Args:
        seen: the ledger, if it was read just now.

    Returns:
        The ledger's metadata afterwards.

    Raises:
        NoSuchLedgerError: there is no such ledger.
        InvalidRequestError: the ledger does not continue in later terms.
    """
    found = seen or cluster.ledger(ledger_id)
    if without_front(found.value, before_entry) == found.value:
        return found.value
    truncated = partial(_truncated, ledger_id, before_entry)
    after = cluster.ledgers.update(str(ledger_id), truncated, seen=found).value
    if after.state is LedgerState.CLOSED:
        tell_collections(cluster, [ledger_id])
    return after


def _truncated(ledger_id: int, before_entry: int, ledger: LedgerMetadata | None) -> LedgerMetadata:
    if ledger is None:
        raise NoSuchLedgerError(f"there is no ledger {ledger_id}")
    return without_front(ledger, before_entry)
