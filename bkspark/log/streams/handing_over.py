"""Handing a log's tail from one commit process of a query to the next.

Spark ends a commit process that has been idle for a minute. To take a tail over from a writer that
may still live, its ledger has to be fenced, recovered and closed; with triggers further apart than
that minute this would make a ledger for each batch. So a process that has had nothing to do for a
while lays its ledger down, and the next one takes it up where it stands: one compare-and-set each,
and nothing to recover (``bkspark.protocol.ledger.metadata``, rule 5). A process that was killed
before it could do so is what it always was: a writer to be recovered from.
"""

from dataclasses import dataclass

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Joining, enlist
from bkspark.cluster.ensembles import ensemble_of
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned
from bkspark.errors import MetadataVersionError, NoSuchLedgerError, OutcomeUnknownError
from bkspark.log.writable_tail import OpenTail
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.standing import Standing
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.stream_run import StreamRun


@dataclass(frozen=True, slots=True)
class TakenUp:
    """A tail that was taken up.

    Attributes:
        standing: where it stood.
        age_seconds: since it was made, by the clocks of those who made it and who took it up.
    """

    tail: OpenTail
    standing: Standing
    age_seconds: float


def take_up(
    cluster: Cluster, log_name: str, password: Password, run: StreamRun, ledger_id: int
) -> TakenUp | None:
    """Take the log's tail up, if it is ``ledger_id`` and was laid down.

    None if it was not, or if anything comes in between: whoever wants to write opens the log then,
    as if nobody had laid anything down.

    Raises:
        LedgerFencedError: a newer run of the query has taken over.
        NoSuchLedgerError: there is no such log.
        UnauthorizedError: the password is missing or wrong; nothing was changed.
    """
    log = cluster.log(log_name)
    ledger = _laid_down(cluster, log.value, ledger_id)
    if ledger is None or ledger.value.laid_down is None:
        return None
    digester = make_digester(ledger.value.settings.digest, password)
    ensemble = ensemble_of(cluster, ledger.value)
    if ensemble is None or not _is_registered(cluster, log, run):
        return None
    after = ledger.value.taken_up(environment.token())
    joining = Joining.last_writer(after, digester)
    begun = enlist(dict(enumerate(ensemble)), joining)
    if begun.bookie_ids != {address.bookie_id for address in ensemble}:
        begun.close()
        return None
    try:
        taken = cluster.ledgers.replace(str(ledger_id), after, ledger)
    except (MetadataVersionError, OutcomeUnknownError):
        begun.close()
        return None
    newest = cluster.log(log_name)
    if newest.value.tail != (ledger_id,):
        begun.close()
        return None
    age_ms = environment.now_ms() - taken.value.settings.created_ms
    return TakenUp(OpenTail(taken, newest, begun), ledger.value.laid_down, max(0, age_ms) / 1000)


def _laid_down(
    cluster: Cluster, log: LogRecord, ledger_id: int
) -> Versioned[LedgerMetadata] | None:
    """The ledger, if it is the one at the log's open end and may be taken up."""
    if log.tail != (ledger_id,) or log.is_sealed:
        return None
    try:
        ledger = cluster.ledger(ledger_id)
    except NoSuchLedgerError:
        return None
    return ledger if ledger.value.may_be_taken_up else None


def _is_registered(cluster: Cluster, log: Versioned[LogRecord], run: StreamRun) -> bool:
    """Make ``run`` the query's current one, unless it is; False if somebody changed the log."""
    after = log.value.with_stream(run)
    if after == log.value:
        return True
    try:
        cluster.logs.replace(log.value.name, after.stamped(environment.now_ms()), log)
    except (MetadataVersionError, OutcomeUnknownError):
        return False
    return True
