"""What the record of a log says, and what must hold of every version of it.

How one version becomes the next is in ``log``.

Rule 1. Offsets are dense: each closed ledger begins where the one before it ended. Behind them
comes the tail.

Rule 2. A ledger is in one place only: on the list, or among the dropped ones, for ever.

Rule 3. Some of the dropped ledgers are *to be deleted*: a truncation has hidden all of their
entries, or the log was deleted, or they were closed without an entry. That is noted by the very
compare-and-set that drops them, so
whoever is interrupted, or cannot delete one, leaves a list behind for whoever comes next. What an
abort or an overwrite drops is not on it: that takes a decision of its own.

Rule 4. Closed ledgers are numbered as they join, for as long as the log's name is known: a ledger's
*version* never changes and is given to no other, whatever is truncated, overwritten or deleted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log.stream_run import Streams

TAIL_MAX = 2
"""The ledger that is written to, and the one before it while its writer rolls."""


@dataclass(frozen=True, slots=True)
class LoggedLedger:
    """A closed ledger's place in a log: offsets ``[first_offset, first_offset + entry_count)``.

    Attributes:
        closed_ms: when it was first seen among the closed ones, which only retention by age looks
            at; 0 if that was not noted.
    """

    ledger_id: int
    first_offset: int
    entry_count: int
    length_bytes: int
    closed_ms: int = 0

    @property
    def end_offset(self) -> int:
        return self.first_offset + self.entry_count


@dataclass(frozen=True, slots=True)
class LogContents:
    """One version of a log's record.

    Attributes:
        is_vacant: there is no such log ("log", rule 5).
        generation: of the contents; one more after each overwrite and each creation.
        ledgers: in offset order, without gaps.
        first_offset: first readable offset; entries below are truncated.
        schema: Arrow schema of the log as an IPC schema message; opaque here.
        quorum, digest: settings the log was created with.
        transactions: last committed version per application.
        dropped: ledgers that must never join the list (again), until they are deleted.
        tail: ids of the ledgers behind ``ledgers``; the first of them begins at ``end_offset``.
        is_sealed: nothing joins any more.
        streams: per streaming query the runs that have written, the current one last.
        retention_bytes, retention_ms: how much to keep, and how long; None for ever.
        orphaned_queries: whose rows went with a deleted log of this name ("stream_run", rule 3).
        first_version: of the first of ``ledgers``, or of the next one to join (rule 4).
        truncated_ms: when entries were last truncated; None if none are.
        to_delete: those of the dropped ledgers that are not needed and not deleted yet (rule 3).
    """

    name: str
    quorum: Quorum
    digest: DigestSpec
    schema: bytes
    is_vacant: bool = False
    generation: int = 1
    ledgers: tuple[LoggedLedger, ...] = ()
    first_offset: int = 0
    transactions: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[int, ...] = ()
    created_ms: int = 0
    changed_ms: int = 0
    tail: tuple[int, ...] = ()
    is_sealed: bool = False
    streams: Streams = field(default_factory=dict)
    retention_bytes: int | None = None
    retention_ms: int | None = None
    to_delete: tuple[int, ...] = ()
    orphaned_queries: tuple[str, ...] = ()
    first_version: int = 0
    truncated_ms: int | None = None

    def __post_init__(self) -> None:
        expected = self.ledgers[0].first_offset if self.ledgers else 0
        for ledger in self.ledgers:
            if ledger.first_offset != expected or ledger.entry_count < 1:
                raise InvalidRequestError(f"log {self.name}: offsets are not dense")
            expected = ledger.end_offset
        begin = self.ledgers[0].first_offset if self.ledgers else self.first_offset
        if not 0 <= begin <= self.first_offset <= self.end_offset:
            raise InvalidRequestError(
                f"log {self.name}: first offset {self.first_offset} is outside of its ledgers, "
                f"{begin} to {self.end_offset}"
            )
        known = [*self.listed_ids, *self.dropped]
        if len(set(known)) != len(known):
            raise InvalidRequestError(f"log {self.name}: a ledger is listed or dropped twice")
        if min(known, default=0) < 0:
            raise InvalidRequestError(f"log {self.name}: there is no ledger {min(known)}")
        if not set(self.to_delete) <= set(self.dropped):
            raise InvalidRequestError(f"log {self.name}: a ledger is to be deleted, not dropped")
        if self.first_version < 0:
            raise InvalidRequestError(f"log {self.name}: there is no version {self.first_version}")
        if len(self.tail) > TAIL_MAX or (self.tail and (self.is_sealed or self.is_vacant)):
            raise InvalidRequestError(f"log {self.name}: it cannot have the tail {self.tail}")
        if min(self.retention_bytes or 0, self.retention_ms or 0) < 0:
            raise InvalidRequestError(
                f"log {self.name}: retention cannot be negative", hint="None keeps for ever"
            )

    # --- looking ---------------------------------------------------------------------------

    @property
    def end_offset(self) -> int:
        """The offset behind the closed ledgers, where the tail begins."""
        return self.ledgers[-1].end_offset if self.ledgers else self.first_offset

    @property
    def length_bytes(self) -> int:
        """Payload bytes of the closed ledgers."""
        return sum(ledger.length_bytes for ledger in self.ledgers)

    @property
    def listed_ids(self) -> tuple[int, ...]:
        """All ledgers of the log in order, the tail's included."""
        return (*(ledger.ledger_id for ledger in self.ledgers), *self.tail)

    def has_committed(self, transaction: Transaction | None) -> bool:
        """Whether this write of the application, or a later one, is in the log already."""
        if transaction is None:
            return False
        last = self.transactions.get(transaction.app_id)
        return last is not None and last >= transaction.version
