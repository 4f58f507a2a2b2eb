"""Recover the end of a log: close its tail, recover one ledger, find what a fenced writer wrote.

Rule 1. A recovery closes a ledger for good, except the active tail of an unbounded log. That ledger
is fenced and recovered like others, and no acknowledged entry is lost, but afterwards it is OPEN
again, in the next term, for the log's next writer. Until then it has no writer.

Rule 2. The operator may ask to close the active tail too (*sealed*). Its copies can then be
repaired and moved, and the log's next writer adds a new ledger.

Rule 3. The active tail is also closed if the operator accepts the loss of entries: its last record
may be lost, and without that record no writer can continue the ledger. No writer can ask the
operator to accept a loss.

Rule 4. The log's record decides whether a ledger is the open end of an unbounded log. If the record
cannot be read, nothing is done.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bkspark import environment
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.cluster.records import Versioned, wait_after_losses
from bkspark.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerExistsError,
    MetadataVersionError,
    NoSuchEntryError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.ledger.creating import log_of
from bkspark.ledger.handles.promise import Unacknowledged
from bkspark.metadata import freshness
from bkspark.protocol.ledger.deletion import oldest_owner
from bkspark.protocol.ledger.evidence import first_behind
from bkspark.protocol.ledger.metadata import FIRST_TERM, LedgerMetadata, LedgerState
from bkspark.protocol.log.record import LogRecord, missing_end

# Recoveries are imported by the functions that make one: Spark starts a process for each commit,
# and few of them recover a ledger.
if TYPE_CHECKING:
    from bkspark.ledger.recovery.recover import RecoveryReport
    from bkspark.ledger.recovery.recoverer import Consent
    from bkspark.ledger.recovery.running import Runner

# --- closing a tail ------------------------------------------------------------------------------
# Fence, recover and close the ledgers of a log's tail before another ledger follows.
#
# Always the whole tail (RB-44). The tail has two ledgers while a writer rolls: the writer may still
# append to the first of them when the second is on the list (BookKeeper's protocol, "Opening a
# log"; RB-20, H41).

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
    began: freshness.Freshness | None = None,
) -> Versioned[LogRecord]:
    """Close the tail and ``change`` the log in one compare-and-set; retry if it is lost.

    Args:
        change: gets the record with an empty tail, or None if there is no record. May be called
            again with a newer record. Returns its argument if there is nothing to do.
        began: how new the first look at the record must be; None for now, as the others.
    """
    for attempt in range(TRIES_MAX):
        with freshness.at(None if attempt else began):
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
            wait_after_losses(attempt)
    raise duel(log_name)


def with_listed_tail(cluster: Cluster, log: LogRecord) -> LogRecord:
    """Return ``log`` with those ledgers of its tail listed that are CLOSED; fences no writer.

    A ledger stays in the tail if its writer ended without a successor, and a recovery closed it.
    """
    for ledger_id in log.tail:
        found = cluster.ledgers.get(str(ledger_id))
        if found is None or found.value.state is not LedgerState.CLOSED:
            break
        log = log.with_closed(found.value)
    return log


def with_closed_tail(cluster: Cluster, log: LogRecord, password: Password) -> LogRecord:
    """Fence, recover and close the log's tail; return ``log`` with the closed ledgers listed."""
    from bkspark.ledger.recovery.recover import recover

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


# --- one ledger ----------------------------------------------------------------------------------


def recover_ledger(
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    *,
    seals: bool = False,
    run: "Runner | None" = None,
    tell: Callable[[str], None] | None = None,
    accepts_loss: "Consent | None" = None,
    seen: Versioned[LedgerMetadata] | None = None,
) -> "RecoveryReport":
    """Fence the ledger's writer; close the ledger at the last possibly acknowledged entry.

    The open end of an unbounded log is OPEN again after that entry (``report.is_open``), unless
    entries are given up.

    Args:
        seals: whether the open end of an unbounded log is closed too.
        run, tell: see ``recover``.
        accepts_loss: asked before entries are given up; None to refuse every loss.
        seen: the ledger as the caller has just read it; None to read it.

    Raises:
        As ``recover`` and ``take_over``.
    """
    from bkspark.ledger.recovery.recover import never, recover, take_over

    accepts = _asked_once(accepts_loss or never)
    opened: RecoveryReport | None = None
    seen = seen or cluster.ledger(ledger_id)
    if not seals and is_gone_on_with(cluster, seen.value):
        try:
            taken = take_over(
                cluster, ledger_id, password, run=run, tell=tell, accepts_loss=accepts
            )
        except LedgerClosedError:  # sealed meanwhile: its record has the end
            pass
        else:
            taken.begun.close()
            opened, seen = taken.report, None
            if opened.lost_from is None:
                return opened
    closed = recover(
        cluster, ledger_id, password, run=run, tell=tell, accepts_loss=accepts, seen=seen
    )
    if opened is None:
        return closed
    end, notes = closed.last_entry_id, [*opened.notes, *closed.notes]
    return replace(opened, last_entry_id=end, notes=notes, is_open=False)


def _asked_once(accepts_loss: "Consent") -> "Consent":
    """Wrap ``accepts_loss`` so that an accepted loss is not asked about again."""
    accepted: set[str] = set()

    def accepts(loss: str) -> bool:
        if loss not in accepted and accepts_loss(loss):
            accepted.add(loss)
        return loss in accepted

    return accepts


def is_gone_on_with(cluster: Cluster, ledger: LedgerMetadata) -> bool:
    """Whether the log's next writer continues this ledger.

    Raises:
        BookKeeperError: the log's record cannot be read.
    """
    name = log_of(ledger)
    if name is None or not ledger.goes_on or ledger.state is LedgerState.CLOSED:
        return False
    seen = cluster.logs.get(name)
    return seen is not None and seen.value.is_unbounded and ledger.ledger_id in seen.value.tail


# --- outcome of undecided entries ----------------------------------------------------------------
# A fenced writer's entry may be in the log although it was not acknowledged: the recovery that
# fenced the writer keeps every entry it finds (RB-35). A client that appends such entries again
# without checking may store them twice.


_LEAVING_OPEN = (NotEnoughBookiesError, NothingSentError, OutcomeUnknownError)


@dataclass(frozen=True, slots=True)
class Undecided:
    """Entries of a log that a writer sent and no ack quorum acknowledged.

    The entries are the last of one ledger, in the order of their appends.

    Attributes:
        first_entry_id: id of the first undecided entry in the ledger.
        first_offset: offset of the first undecided entry, if it is in the log.
        entry_count: number of undecided entries, at least 1.
        term: the writer's term.
    """

    ledger_id: int
    first_entry_id: int
    first_offset: int
    entry_count: int
    term: int = FIRST_TERM

    def __str__(self) -> str:
        last = self.first_offset + self.entry_count - 1
        if self.entry_count == 1:
            return f"offset {last} is undecided"
        return f"offsets {self.first_offset} to {last} are undecided"


def resolve(cluster: Cluster, undecided: Undecided, password: Password) -> range:
    """Recover the ledger if needed, and return the offsets of the entries that the ledger holds.

    The ledger of an unbounded log is OPEN afterwards, in the next term, without a writer. If
    another writer has taken the ledger over before, its fragments show the outcome, and nothing is
    changed.

    The returned offsets begin with the first entry and have no gap. The other entries will never be
    in the log. A deleted ledger's record still shows where the ledger ended, so the result includes
    entries that were in the log and were deleted since.

    Raises:
        InvalidRequestError: ``undecided`` is not a value of ``writer.undecided``.
        NoSuchLedgerError: the ledger was deleted before it was closed, or was collected since. The
            outcome is unknown for good.
        NoSuchEntryError: the log was truncated after those entries. The outcome is unknown for
            good.
        NotEnoughBookiesError: the outcome is not known yet. The message names the bookies that
            could decide it.
    """
    arguments.instance(
        "resolve_outcome takes the value of writer.undecided",
        undecided,
        Undecided,
        hint="if that value is None, all entries that were sent are acknowledged",
    )
    end = _end_of(cluster, undecided, password)
    count = min(undecided.entry_count, max(0, end - undecided.first_entry_id))
    return range(undecided.first_offset, undecided.first_offset + count)


def undecided_of(first_offset: int, left: Unacknowledged) -> Undecided | None:
    """Return a writer's entries without an acknowledgement; None if there are none.

    Args:
        first_offset: the offset of the ledger's entry 0.
    """
    if left.entry_count < 1:
        return None
    offset = first_offset + left.first_entry_id
    return Undecided(left.ledger_id, left.first_entry_id, offset, left.entry_count, left.term)


def with_outcome(
    error: BookKeeperError, log_name: str, undecided: Undecided | None
) -> BookKeeperError:
    """Add the undecided offsets to a writer's ``error``, so that no client appends them twice."""
    if undecided is None or not isinstance(error, _LEAVING_OPEN):
        return error
    known = error
    if isinstance(error, NothingSentError):  # the writer had sent entries before
        known = error.in_doubt(f"log {log_name}")
    told = known.reworded(
        f"{known.args[0]}; in log {log_name} {undecided}",
        hint="log.resolve_outcome(writer.undecided) recovers the ledger and returns which "
        "entries are in the log",
    )
    told.__cause__ = error
    return told


def _end_of(cluster: Cluster, undecided: Undecided, password: Password) -> int:
    """Return the id after the writer's last entry in the ledger."""
    from bkspark.ledger.recovery.recover import take_over

    while True:
        seen = cluster.ledgers.get(str(undecided.ledger_id))
        if seen is None or not seen.value.goes_on:
            return _last_entry_of(cluster, undecided.ledger_id, password) + 1
        end = _end_of_term(seen.value, undecided)
        if end is not None:
            return end
        with suppress(LedgerClosedError, NoSuchLedgerError):  # then its record has the end
            taken = take_over(cluster, undecided.ledger_id, password)
            taken.begun.close()


def _end_of_term(ledger: LedgerMetadata, undecided: Undecided) -> int | None:
    """Return the id after the last entry of the writer's term; None if the end is not decided yet.

    Raises:
        NoSuchLedgerError: the ledger was deleted before the end was decided.
        NoSuchEntryError: the fragments that show the end were truncated.
    """
    term, begin = undecided.term, ledger.first_available
    if undecided.first_entry_id < begin and oldest_owner(ledger) > term:
        raise NoSuchEntryError(
            f"ledger {ledger.ledger_id} begins at entry {begin} now: earlier entries of term "
            f"{term} were truncated, and nothing shows how many they were"
        )
    found = first_behind(ledger, term)
    if found is None and ledger.last_entry_id is not None:
        return ledger.last_entry_id + 1
    if found is None and ledger.state is LedgerState.DELETING:
        raise NoSuchLedgerError(
            f"ledger {ledger.ledger_id} was deleted before the end of term {term} was decided"
        )
    return found


def _last_entry_of(cluster: Cluster, ledger_id: int, password: Password) -> int:
    from bkspark.ledger.recovery.recover import recover

    try:
        return recover(cluster, ledger_id, password).last_entry_id
    except NoSuchLedgerError:
        tombstone = cluster.ledgers.get(str(ledger_id))
        if tombstone is None or tombstone.value.last_entry_id is None:
            raise
        return tombstone.value.last_entry_id
