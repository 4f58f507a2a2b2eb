"""What became of entries whose writer was fenced before they were acknowledged.

"Fenced" does not mean "not written": the recovery that fenced the writer may have kept what it
found (RB-35). Whoever adds such entries again without asking may have them twice.
"""

from dataclasses import dataclass

from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import NoSuchLedgerError, NotEnoughBookiesError, OutcomeUnknownError
from bkspark.ledger.recovery.recover import recover


@dataclass(frozen=True, slots=True)
class Undecided:
    """Entries of a log that were sent and not acknowledged: one ledger's last ones.

    Attributes:
        first_entry_id: in the ledger.
        first_offset: of that entry, if it is in the log.
        entry_count: >= 1; in the order in which they were appended.
    """

    ledger_id: int
    first_entry_id: int
    first_offset: int
    entry_count: int

    def __str__(self) -> str:
        last = self.first_offset + self.entry_count - 1
        if self.entry_count == 1:
            return f"offset {last} is undecided"
        return f"offsets {self.first_offset} to {last} are undecided"


def resolve(cluster: Cluster, undecided: Undecided, password: Password) -> range:
    """Recover the ledger, if nobody has, and return the offsets of those entries that it holds.

    They are the first so many of the undecided ones; the others will never be in the log. A ledger
    that was deleted since still tells where it ended, so entries that the log has had and has let
    go are among those returned.

    Raises:
        InvalidRequestError: ``undecided`` is nothing of the kind.
        NoSuchLedgerError: the ledger was deleted before it was closed, or has been collected since,
            so nobody can tell.
        NotEnoughBookiesError: it cannot be decided yet; says which bookies are waited for.
    """
    arguments.instance(
        "what is undecided must be what writer.undecided says",
        undecided,
        Undecided,
        hint="where that is None, every entry that was sent is acknowledged",
    )
    end = _last_entry_of(cluster, undecided.ledger_id, password) + 1
    count = min(undecided.entry_count, max(0, end - undecided.first_entry_id))
    return range(undecided.first_offset, undecided.first_offset + count)


def with_outcome(error: BaseException, log_name: str, undecided: Undecided | None) -> BaseException:
    """``error`` of a writer of the log, with what is undecided by it, so nobody adds it twice."""
    if undecided is None or not isinstance(error, OutcomeUnknownError | NotEnoughBookiesError):
        return error
    told = error.reworded(
        f"{error.args[0]}; in log {log_name} {undecided}",
        hint="log.resolve_outcome(writer.undecided) recovers and tells what is in the log",
    )
    told.__cause__ = error
    return told


def _last_entry_of(cluster: Cluster, ledger_id: int, password: Password) -> int:
    try:
        return recover(cluster, ledger_id, password).last_entry_id
    except NoSuchLedgerError:
        tombstone = cluster.ledgers.get(str(ledger_id))
        if tombstone is None or tombstone.value.last_entry_id is None:
            raise
        return tombstone.value.last_entry_id
