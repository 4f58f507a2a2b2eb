"""Going on in the ledger at a log's end, behind whoever wrote to it before.

Where that ledger goes on in later terms nothing new is made, and the list names the same ledgers:
the writer is fenced by a term, what it left undecided is recovered, and the ledger is OPEN again
for the next one (``ledger.recovery.taking_over``). So a log whose writers take turns does not get a
ledger from each of them.

Rule 1. Everything that can be refused is refused before anybody is fenced, and a query's run is
registered before: an older run fences nobody. A ledger that does not take the rows is left alone:
it has other columns, or rows inline where the new ones are in entry logs, or the other way round.

Rule 2. The list is read again behind the takeover. Only a ledger that is alone at the log's end by
then is written to: who had opened the log, rolled it, overwritten or deleted it in between has
fenced us, or will. So has a newer run of the query, unless it is us who have fenced it: who was
registered and slept in front of the takeover ends here, and writes nothing (RB-45). What is left of
the takeover then is an OPEN ledger without a writer, as one is whose writer died.

And it is stored again, by compare-and-set: whoever deletes the log has fenced the writer before,
which a takeover undoes, and must not find the list as it was when he did so. He fences us then.

Rule 3. Records stay short: a ledger of many fragments is not gone on with. Whoever opens the log
closes it then, and puts another one behind it, which goes on in turn.

Rule 4. Only closed ledgers are repaired, or leave a bookie. So one that names a bookie which is
gone for good, or which an operator has closed, is not gone on with either: it is closed at the next
roll or takeover, and its copies can be made elsewhere while the log is written to. Unless there are
too few bookies for another one: then it serves as long as it can. Nor does a writer that a bookie
has failed go on in it (``own_tail``).

Rule 5. A fragment has as many members as the ledger was made with. So where fewer bookies than
that can be used, the log does not go on in the ledger: it is closed, and a smaller one is put
behind it. Nor does it in a ledger that was made on fewer bookies than wanted, once there are
enough.
"""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned, back_off
from bkspark.errors import (
    LedgerClosedError,
    MetadataVersionError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.format import arrow_schema
from bkspark.ledger.creating import stores_inline
from bkspark.ledger.recovery.taking_over import take_over
from bkspark.log.writable_tail import OpenTail
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.stream_run import StreamRun
from bkspark.protocol.log.transactions import remembering

TRIES_MAX = 20
"""A log that changes this often while a writer begins is opened anew."""


def continue_tail(
    cluster: Cluster,
    log_name: str,
    password: Password,
    run: StreamRun | None = None,
    schema: pa.Schema | None = None,
) -> OpenTail | None:
    """Become the one writer of the ledger at the log's end, in its next term.

    None if there is none that goes on, or if anything comes in between: whoever wants to write
    opens the log then (``opening``).

    Args:
        run: of the streaming query that will write.
        schema: of the rows to come in entry logs, None for inline ones.

    Raises:
        LedgerFencedError: a newer run of the query has taken over; nobody was fenced, unless that
            came in between: it has to take over again.
        NotEnoughBookiesError: the tail cannot be recovered, or there is no place for a fragment and
            no smaller ledger may be put behind it.
        NoSuchLedgerError: there is no such log.
        UnauthorizedError: the password is missing or wrong; nobody was fenced.
        OutcomeUnknownError: others took over again and again, or whether this did is not known.
    """
    seen = cluster.log(log_name)
    ledger = going_on(cluster, seen.value, schema)
    if ledger is None:
        return None
    try:
        return continue_in(cluster, seen, ledger, password, run)
    except NotEnoughBookiesError:
        if not may_be_smaller(seen.value):
            raise
        return None


def continue_in(
    cluster: Cluster,
    seen: Versioned[LogRecord],
    ledger: LedgerMetadata,
    password: Password,
    run: StreamRun | None = None,
) -> OpenTail | None:
    """The same in ``ledger``, in which the log that was ``seen`` goes on."""
    log_name, ledger_id = seen.value.name, ledger.ledger_id
    make_digester(seen.value.digest, password)
    if run is not None and not _is_registered(cluster, seen, run):
        return None
    try:
        taken = take_over(cluster, ledger_id, password)
    except (LedgerClosedError, NoSuchLedgerError):  # by whoever opened the log in between
        return None
    try:
        done = taken.standing.transactions
        log = _confirmed_by_list(cluster, log_name, ledger_id, run, done)
    except BaseException:
        taken.begun.close()
        raise
    if log is None:
        taken.begun.close()
        return None
    return OpenTail(taken.seen, log, taken.begun, taken.standing, taken.unjoined)


def _confirmed_by_list(
    cluster: Cluster,
    log_name: str,
    ledger_id: int,
    run: StreamRun | None,
    done: Mapping[str, int],
) -> Versioned[LogRecord] | None:
    """The list, stored once more, with the ledger alone at its end; None if it is not.

    Args:
        done: transactions of the ledger. The log's record has them from now on, since records of
            rows remember fewer.
    """
    for attempt in range(TRIES_MAX):
        seen = cluster.log(log_name)
        is_current = run is None or seen.value.with_stream(run) == seen.value
        if seen.value.tail != (ledger_id,) or not is_current:
            return None
        log = seen.value
        known = replace(log.committed, transactions=remembering(log.transactions, done))
        after = replace(log, committed=known).stamped(environment.now_ms())
        try:
            return cluster.logs.replace(log_name, after, seen)
        except (MetadataVersionError, OutcomeUnknownError):
            back_off(attempt)
    return None


def takes(ledger: LedgerMetadata, schema: pa.Schema | None) -> bool:
    """Whether rows of ``schema`` in entry logs, or inline ones, can be stored in ``ledger``."""
    if schema is None:
        return stores_inline(ledger)
    stored = arrow_schema.decode(ledger.settings.schema)
    return not stores_inline(ledger) and arrow_schema.fits(stored, schema)


def going_on(
    cluster: Cluster, log: LogRecord, schema: pa.Schema | None = None
) -> LedgerMetadata | None:
    """The one ledger at the log's open end, if it is not closed, goes on and takes the rows.

    Not one that another is to come behind (``may_go_on``).
    """
    if len(log.tail) != 1 or log.is_sealed:
        return None
    try:
        ledger = cluster.ledger(log.tail[0]).value
    except NoSuchLedgerError:
        return None
    is_open = ledger.state is not LedgerState.CLOSED
    return ledger if is_open and takes(ledger, schema) and may_go_on(cluster, ledger) else None


def may_go_on(cluster: Cluster, ledger: LedgerMetadata) -> bool:
    """Whether a log goes on in ``ledger`` with another fragment (rules 3 to 5)."""
    if not (ledger.goes_on and ledger.has_room):
        return False
    size = sizes.wanted(ledger).ensemble_size
    is_full_size = ledger.quorum.ensemble_size == size
    is_lasting = is_full_size and ledger.names_only(cluster.lasting_members())
    return is_lasting or len(cluster.candidates(enough=size, needed=size)) < size


def may_be_smaller(log: LogRecord) -> bool:
    """Whether a ledger of ``log`` may be made on fewer bookies than wanted (rule 5)."""
    return not (log.settings.is_strict or log.settings.guarantees_write_quorum)


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
