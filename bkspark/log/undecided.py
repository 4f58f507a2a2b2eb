"""Find the outcome of entries whose writer was fenced before they were acknowledged.

A fenced writer's entry may be in the log: the recovery that fenced the writer keeps every entry it
finds (RB-35). A client that appends such entries again without checking may store them twice.
"""

from contextlib import suppress
from dataclasses import dataclass

from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    LedgerClosedError,
    NoSuchEntryError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.ledger.recovery.recover import recover, take_over
from bkspark.protocol.ledger.deletion import oldest_owner
from bkspark.protocol.ledger.evidence import first_behind
from bkspark.protocol.ledger.metadata import FIRST_TERM, LedgerMetadata, LedgerState

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


def with_outcome(error: BaseException, log_name: str, undecided: Undecided | None) -> BaseException:
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
    try:
        return recover(cluster, ledger_id, password).last_entry_id
    except NoSuchLedgerError:
        tombstone = cluster.ledgers.get(str(ledger_id))
        if tombstone is None or tombstone.value.last_entry_id is None:
            raise
        return tombstone.value.last_entry_id
