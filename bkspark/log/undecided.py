"""The outcome of entries whose writer was fenced before they were acknowledged.

A fenced writer's entry may be in the log: the recovery that fenced the writer keeps what it finds
(RB-35). A client that adds such entries again without asking may have them twice.
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
from bkspark.ledger.recovery.recover import recover
from bkspark.ledger.recovery.taking_over import take_over
from bkspark.protocol.ledger.metadata import FIRST_TERM, LedgerMetadata, LedgerState
from bkspark.protocol.ledger.ownership import first_behind

_LEAVING_OPEN = (NotEnoughBookiesError, NothingSentError, OutcomeUnknownError)


@dataclass(frozen=True, slots=True)
class Undecided:
    """Entries of a log that a writer sent, and that were not acknowledged.

    They are the last entries of one ledger, in the order in which they were appended.

    Attributes:
        first_entry_id: the id of the first of them in the ledger.
        first_offset: the offset of the first of them, if it is in the log.
        entry_count: how many they are, at least 1.
        term: the term of their writer.
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
    """Recover the ledger, unless another client has, and return the offsets that it holds of the
    entries.

    The ledger of an unbounded log is OPEN after that, in the next term, without a writer. If
    another writer has taken it over before, its fragments tell the outcome, and nothing is changed.

    The offsets are those of the first entries, without a gap. The other entries will never be in
    the log. A deleted ledger's record still says where the ledger ended. So entries that were in
    the log, and were deleted since, are among those returned.

    Raises:
        InvalidRequestError: ``undecided`` is not what ``writer.undecided`` gave.
        NoSuchLedgerError: the ledger was deleted before it was closed, or was collected since. The
            outcome is unknown for good.
        NoSuchEntryError: the log was truncated after those entries. The outcome is unknown for
            good.
        NotEnoughBookiesError: it cannot be decided yet. The message names the bookies that could
            tell.
    """
    arguments.instance(
        "what is undecided must be what writer.undecided says",
        undecided,
        Undecided,
        hint="where that is None, every entry that was sent is acknowledged",
    )
    end = _end_of(cluster, undecided, password)
    count = min(undecided.entry_count, max(0, end - undecided.first_entry_id))
    return range(undecided.first_offset, undecided.first_offset + count)


def with_outcome(error: BaseException, log_name: str, undecided: Undecided | None) -> BaseException:
    """``error`` of a writer of the log, with what is undecided by it, so nobody adds it twice."""
    if undecided is None or not isinstance(error, _LEAVING_OPEN):
        return error
    known = error
    if isinstance(error, NothingSentError):  # the writer had sent entries before
        known = error.in_doubt(f"log {log_name}")
    told = known.reworded(
        f"{known.args[0]}; in log {log_name} {undecided}",
        hint="log.resolve_outcome(writer.undecided) recovers and tells what is in the log",
    )
    told.__cause__ = error
    return told


def _end_of(cluster: Cluster, undecided: Undecided, password: Password) -> int:
    """The id behind the last entry that its writer has in the ledger."""
    while True:
        seen = cluster.ledgers.get(str(undecided.ledger_id))
        if seen is None or not seen.value.goes_on:
            return _last_entry_of(cluster, undecided.ledger_id, password) + 1
        end = _end_of_term(seen.value, undecided)
        if end is not None:
            return end
        with suppress(LedgerClosedError, NoSuchLedgerError):  # then it says where it ends
            taken = take_over(cluster, undecided.ledger_id, password)
            taken.begun.close()


def _end_of_term(ledger: LedgerMetadata, undecided: Undecided) -> int | None:
    """The id behind the last one that its term owns; None if that is not decided yet.

    Raises:
        NoSuchLedgerError: the ledger was deleted before it was.
        NoSuchEntryError: the fragments that say so were truncated.
    """
    term, begin = undecided.term, ledger.first_available
    if undecided.first_entry_id < begin and ledger.fragments[0].owner > term:
        raise NoSuchEntryError(
            f"ledger {ledger.ledger_id} begins at entry {begin} now: what term {term} had in front "
            "of that was truncated, and nobody can tell how much it was"
        )
    found = first_behind(ledger.fragments, term)
    if found is None and ledger.last_entry_id is not None:
        return ledger.last_entry_id + 1
    if found is None and ledger.state is LedgerState.DELETING:
        raise NoSuchLedgerError(
            f"ledger {ledger.ledger_id} was deleted before it was known what term {term} has "
            "left in it"
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
