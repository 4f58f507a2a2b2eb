"""Plan a micro-batch: choose the ledger that its tasks write into.

The tasks write into the log's tail if the tail is open and takes such rows. Otherwise they write
into a new ledger on no list, made as for a DataFrame write, except that later writers may continue
the ledger; the commit makes it the tail. Planning takes no ledger over: only a commit does.
"""

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.ensembles import ensemble_of, spares_of
from bkspark.errors import LedgerClosedError, NoSuchLedgerError
from bkspark.ledger.creating import STREAM
from bkspark.log.batch.target import BatchTarget, WriteRequest
from bkspark.log.batch.write_target import (
    ResolvedSettings,
    private_target,
    resolve_settings,
    target_of,
)
from bkspark.log.continuing import takes
from bkspark.log.streams.micro_batch import StagingLedger
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.record import LogRecord


def prepare(request: WriteRequest) -> tuple[BatchTarget, StagingLedger]:
    """Check the request, and choose where the tasks of one micro-batch write.

    Raises:
        InvalidRequestError: the request contradicts itself, the log or its schema.
        LedgerClosedError: the log is sealed.
        NotEnoughBookiesError: too few usable bookies.
        UnauthorizedError: the password is missing or wrong.
    """
    with Cluster(request.metadata_uri) as cluster:
        return staged(cluster, request, resolve_settings(cluster, request), STREAM)


def staged(
    cluster: Cluster, request: WriteRequest, settings: ResolvedSettings, operation: str
) -> tuple[BatchTarget, StagingLedger]:
    """Choose the ledger for rows that go into the log's tail.

    Args:
        operation: the operation noted in a new ledger, if the log has no usable tail.
    """
    if settings.log is not None and settings.log.is_sealed:
        raise LedgerClosedError(
            f"log {request.log_name!r} is sealed", hint="it can only be read; write to another log"
        )
    tail = None if settings.log is None else _open_tail(cluster, settings.log)
    if tail is not None and takes(tail, request.schema):
        ensemble = ensemble_of(cluster, tail)
        if ensemble is not None:
            spares = spares_of(cluster, ensemble)
            target = target_of(request, tail, ensemble, spares)
            return target, StagingLedger.of(target, is_private=False)
    target = private_target(cluster, request, settings, operation, goes_on=True)
    return target, StagingLedger.of(target, is_private=True)


def _open_tail(cluster: Cluster, log: LogRecord) -> LedgerMetadata | None:
    """Return the last ledger of the log if it is open, or will be open for the next writer."""
    if not log.tail:
        return None
    try:
        ledger = cluster.ledger(log.tail[-1]).value
    except NoSuchLedgerError:
        return None
    is_between = ledger.state is LedgerState.IN_RECOVERY and ledger.goes_on
    return ledger if is_between or ledger.state is LedgerState.OPEN else None
