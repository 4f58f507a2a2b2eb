"""Continue the ledger at a log's end with a new writer, in a new term.

A ledger that later writers may continue (``goes_on``) needs no successor when the writer changes,
and the log's list stays the same. The new term fences the old writer, recovery decides its
undecided entries, and the ledger is OPEN again for the new writer
(``ledger.recovery.taking_over``). So a log whose writers take turns does not get one ledger for
each of them.

Rule 1. All checks that can refuse the new writer come before the fence. A query's run is also
registered before the fence, so an older run fences no writer. A ledger that cannot store the rows
is not continued: its columns differ, or its rows are inline and the new rows are in entry logs, or
the reverse.

Rule 2. The writer reads the list again after the takeover, and writes only if the ledger is alone
at the log's end. Otherwise another client has opened, rolled, overwritten or deleted the log in
between, and has fenced this writer or will fence it. A newer run of the query also ends this
writer, even if this writer has fenced the newer run: a run that was registered and then paused
before its takeover writes nothing (RB-45). The takeover then leaves an OPEN ledger without a
writer, as after the death of a writer.

The list is also stored again, by compare-and-set. The reason: a deletion of the log fences the
writer first, and a takeover undoes that fence. The new version makes the deletion's own
compare-and-set fail, so the deletion fences this writer too.

Rule 3. Records stay short: a ledger with many fragments is not continued. The next client that
opens the log closes the ledger and adds a new one, which is then continued.

Rule 4. Only closed ledgers are repaired or moved off a bookie. So a ledger is not continued if a
member is gone for good or was closed by an operator. The next roll or takeover closes the ledger,
and its copies can be made on other bookies while the log is written to. Exception: if there are
too few bookies for a new ledger, the old one is used as long as possible. A writer whose bookie
failed does not continue its ledger either (``own_tail``).

Rule 5. A fragment has as many members as the ledger had when it was created. So the log leaves a
ledger when fewer bookies than that are usable: the ledger is closed, and a smaller one follows. The
log also leaves a ledger that was made on fewer bookies than wanted, once there are enough bookies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned, back_off
from bkspark.errors import (
    LedgerClosedError,
    MetadataVersionError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.ledger.creating import stores_inline
from bkspark.ledger.recovery.recover import take_over
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import FIRST, ConfirmedEnd, LedgerMetadata, LedgerState
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.stream_run import StreamRun
from bkspark.protocol.log.transactions import remembering

if TYPE_CHECKING:
    import pyarrow as pa

# --- writable tail -------------------------------------------------------------------------------
# A log's open end, as a client gets it by opening the log for writing.


@dataclass(frozen=True, slots=True)
class OpenTail:
    """The open ledger at a log's end, for the writer that opened it.

    Attributes:
        log: the record that lists the ledger, with all earlier ledgers closed. ``end_offset`` is
            the offset of the ledger's entry 0; ``transactions`` are all that were committed before.
        begun: the members' journals; empty for an adopted ledger.
        standing: the ledger's state, if earlier writers have written to it.
        unjoined: ids of bookies that the writer must not ask to join (R19).
    """

    ledger: Versioned[LedgerMetadata]
    log: Versioned[LogRecord]
    begun: Begun = field(default_factory=Begun, compare=False)
    standing: ConfirmedEnd = FIRST
    unjoined: frozenset[str] = frozenset()

    @property
    def began(self) -> ConfirmedEnd:
        """Where the writer begins: no record of the ledger is made before the log's last time."""
        return self.standing.not_before(self.log.value.last_ms)

    @property
    def first_offset(self) -> int:
        """The log offset of the ledger's entry 0."""
        return self.log.value.end_offset


# --- continuing ----------------------------------------------------------------------------------


TRIES_MAX = 20
"""A writer tries this often to store the list again, then opens the log instead."""


def continue_tail(
    cluster: Cluster,
    log_name: str,
    password: Password,
    run: StreamRun | None = None,
    schema: "pa.Schema | None" = None,
) -> OpenTail | None:
    """Become the only writer of the ledger at the log's end, in its next term.

    Args:
        run: the run of the streaming query that will write.
        schema: schema of the coming rows in entry logs; None for inline rows.

    Returns:
        The open tail. None if the log has no ledger to continue, or if the log changed meanwhile:
        the caller then opens the log (``opening``).

    Raises:
        LedgerFencedError: a newer run of the query has taken over. No writer was fenced, unless the
            newer run came in between; the newer run then has to take over again.
        NotEnoughBookiesError: the tail cannot be recovered, or there are too few bookies for a
            fragment and no smaller ledger may follow.
        NoSuchLedgerError: there is no such log.
        UnauthorizedError: the password is missing or wrong; no writer was fenced.
        OutcomeUnknownError: other clients took over repeatedly, or the outcome of this takeover is
            unknown.
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
    """Become the only writer of ``ledger``, the tail of the log version ``seen``."""
    log_name, ledger_id = seen.value.name, ledger.ledger_id
    make_digester(seen.value.digest, password)
    if run is not None and not _register_run(cluster, seen, run):
        return None
    try:
        taken = take_over(cluster, ledger_id, password)
    except (LedgerClosedError, NoSuchLedgerError):  # another client opened the log in between
        return None
    try:
        done = taken.standing.transactions
        log = _confirm_in_log_record(cluster, log_name, ledger_id, run, done)
    except BaseException:
        taken.begun.close()
        raise
    if log is None:
        taken.begun.close()
        return None
    return OpenTail(taken.seen, log, taken.begun, taken.standing, taken.unjoined)


def _confirm_in_log_record(
    cluster: Cluster,
    log_name: str,
    ledger_id: int,
    run: StreamRun | None,
    done: Mapping[str, int],
) -> Versioned[LogRecord] | None:
    """Store the log's record again, if the ledger is alone at the log's end; None if not.

    Args:
        done: transactions of the ledger. The log's record keeps them from now on, since records of
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


def takes(ledger: LedgerMetadata, schema: "pa.Schema | None") -> bool:
    """Whether ``ledger`` can store rows of ``schema`` in entry logs (None: inline rows)."""
    if schema is None:
        return stores_inline(ledger)
    from bkspark.format import arrow_schema  # `status` imports this module without Arrow

    stored = arrow_schema.decode(ledger.settings.schema)
    return not stores_inline(ledger) and arrow_schema.fits(stored, schema)


def going_on(
    cluster: Cluster, log: LogRecord, schema: "pa.Schema | None" = None
) -> LedgerMetadata | None:
    """Return the only ledger at the log's end, if a new writer may continue it with these rows.

    None if the ledger is closed, does not take the rows, or needs a successor (``may_go_on``).
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
    """Whether ``ledger`` may be continued with another fragment (rules 3 to 5)."""
    if not (ledger.goes_on and ledger.has_room):
        return False
    size = sizes.wanted(ledger).ensemble_size
    is_full_size = ledger.quorum.ensemble_size == size
    is_lasting = is_full_size and Locations(ledger).names_only(cluster.lasting_members())
    return is_lasting or len(cluster.refresh_candidates(enough=size, needed=size)) < size


def may_be_smaller(log: LogRecord) -> bool:
    """Whether a ledger of ``log`` may be made on fewer bookies than wanted (rule 5)."""
    return not (log.settings.is_strict or log.settings.guarantees_write_quorum)


def _register_run(cluster: Cluster, log: Versioned[LogRecord], run: StreamRun) -> bool:
    """Make ``run`` the query's current run; False if the log changed or the outcome is unknown."""
    after = log.value.with_stream(run)
    if after == log.value:
        return True
    try:
        cluster.logs.replace(log.value.name, after.stamped(environment.now_ms()), log)
    except (MetadataVersionError, OutcomeUnknownError):
        return False
    return True
