"""Deleting logs and ledgers.

Deleting here means that nobody can read or write any more: the metadata becomes a tombstone, whose
id is never used again. The data on the bookies stays until a collection removes it; that is another
job, because only it can know that no late writer makes files again.
"""

from bkspark.client.cluster import Cluster
from bkspark.client.upkeep.views import log_of
from bkspark.errors import InvalidRequestError, NoSuchLedgerError
from bkspark.format import layout
from bkspark.protocol.ledger import LedgerMetadata, LedgerState
from bkspark.protocol.log import LogRecord


def delete_log(cluster: Cluster, name: str) -> list[int]:
    """Delete the log and all its ledgers; returns the ids of the ledgers deleted.

    The log goes first and at once. If this is interrupted after that, running it again deletes the
    ledgers that are left.

    Raises:
        NoSuchLedgerError: there is no such log, nor anything left of it.
    """

    def vacated(record: LogRecord | None) -> LogRecord:
        if record is None:
            raise _no_log(name)
        return record if record.is_vacant else record.vacated()

    before = cluster.logs.get(layout.log_name(name))
    after = cluster.logs.update(name, vacated, seen=before).value
    gone = [ledger_id for ledger_id in after.dropped if make_tombstone(cluster, ledger_id)]
    if not gone and before is not None and before.value.is_vacant:
        raise _no_log(name)
    return gone


def delete_ledger(cluster: Cluster, ledger_id: int) -> None:
    """Delete a ledger that is on no log's list.

    It is dropped from the log it was made for first, so that no late commit can put it there.

    Raises:
        NoSuchLedgerError: there is no such ledger.
        InvalidRequestError: it is part of a log.
    """
    ledger = cluster.ledger(ledger_id).value
    for name in cluster.log_names():
        seen = cluster.logs.get(name)
        if seen is not None:
            _require_unlisted(ledger, seen.value)
    own_log = log_of(ledger)
    if own_log is not None:
        cluster.logs.update(own_log, lambda record: _without(ledger, own_log, record))
    make_tombstone(cluster, ledger_id)


def _without(ledger: LedgerMetadata, name: str, record: LogRecord | None) -> LogRecord:
    log = record or LogRecord.vacant(name, ledger.quorum)
    _require_unlisted(ledger, log)
    return log.without(ledger.ledger_id)


def _require_unlisted(ledger: LedgerMetadata, log: LogRecord) -> None:
    if ledger.ledger_id in log.listed_ids:
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id} is part of log {log.name!r}",
            hint=f"the log can be deleted as a whole: bkspark log delete {log.name}",
        )


def make_tombstone(cluster: Cluster, ledger_id: int) -> bool:
    """Delete a ledger that is dropped from its log; whether there was something to delete."""
    seen = cluster.ledgers.get(str(ledger_id))
    if seen is None or seen.value.state is LedgerState.DELETING:
        return False

    def deleting(metadata: LedgerMetadata | None) -> LedgerMetadata:
        if metadata is None:
            raise NoSuchLedgerError(f"there is no ledger {ledger_id}")
        return metadata.deleting()

    cluster.ledgers.update(str(ledger_id), deleting, seen=seen)
    return True


def _no_log(name: str) -> NoSuchLedgerError:
    return NoSuchLedgerError(f"there is no log {name!r}", hint="`bkspark logs` lists them")
