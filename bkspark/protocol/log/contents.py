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

Rule 5. What there may be many of is on pages ("ledger_list"), which ``paging`` makes: all but the
newest ledgers, and most of the dropped ones. Behind a page there is always a ledger that is not on
one.

Rule 6. Where no closed ledgers are left, the log may begin inside of its tail: so many entries of
that are hidden as ``dropped`` says, and the tail itself begins in front of the log.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.ledger.settings import DigestSpec
from bkspark.protocol.log import ledger_list
from bkspark.protocol.log.dropped import DroppedLedgers
from bkspark.protocol.log.ledger_list import (
    LedgerList,
    LoggedLedger,
    Page,
    PageSource,
    Stretch,
)
from bkspark.protocol.log.settings import LogSettings
from bkspark.protocol.log.stream_run import Streams
from bkspark.protocol.log.transactions import has_committed

TAIL_MAX = 2
"""The ledger that is written to, and the one before it while its writer rolls."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What was written under names that are remembered, whatever is truncated or overwritten.

    Attributes:
        transactions: last committed version per application, as much as is remembered.
        streams: per streaming query the runs that have written, the current one last.
        strays_below: a ledger with a lower id that says it was made for the log may have been in
            it, though nothing names it: the log's record was unreadable once, and set aside.
        orphaned_queries: whose rows went with a deleted log of this name ("stream_run", rule 3).
    """

    transactions: Mapping[str, int] = field(default_factory=dict)
    streams: Streams = field(default_factory=dict)
    orphaned_queries: tuple[str, ...] = ()
    strays_below: int = 0


@dataclass(frozen=True, slots=True)
class Times:
    """Wall clock of those who changed a log; 0 until it is noted.

    Attributes:
        truncated_ms: when entries were last truncated; None if none are.
    """

    created_ms: int = 0
    changed_ms: int = 0
    truncated_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of a log to keep, and how long; None for ever."""

    byte_count: int | None = None
    milliseconds: int | None = None

    @property
    def is_limited(self) -> bool:
        return self != Retention()


@dataclass(frozen=True, slots=True)
class LogContents:
    """One version of a log's record.

    Attributes:
        is_tombstone: there is no such log ("log", rule 5).
        generation: of the contents; one more after each overwrite and each creation.
        listed: its ledgers; the first of the tail begins at ``end_offset``.
        first_offset: first readable offset; entries below are truncated.
        schema: Arrow schema of the log as an IPC schema message; opaque here.
        settings: what the log was created with.
        dropped: those that must never join the list (again), until they are deleted.
        is_sealed: nothing joins any more.
    """

    name: str
    settings: LogSettings
    schema: bytes
    is_tombstone: bool = False
    generation: int = 1
    listed: LedgerList = field(default_factory=LedgerList)
    first_offset: int = 0
    committed: Committed = field(default_factory=Committed)
    dropped: DroppedLedgers = field(default_factory=DroppedLedgers)
    is_sealed: bool = False
    times: Times = field(default_factory=Times)
    retention: Retention = field(default_factory=Retention)

    def __post_init__(self) -> None:
        stretches = self.stretches
        try:
            ledger_list.require_dense(stretches)
        except InvalidRequestError as error:
            raise InvalidRequestError(f"log {self.name}: {error.args[0]}") from None
        if self.older and not (self.ledgers and ledger_list.pages_of(self.older)):
            raise InvalidRequestError(f"log {self.name}: older ledgers are not on pages")
        begin = stretches[0].first_offset if stretches else self.end_offset
        of_tail = self.dropped.of_tail
        if not 0 <= begin <= self.first_offset <= self.end_offset + of_tail:
            raise InvalidRequestError(
                f"log {self.name}: first offset {self.first_offset} is outside of its ledgers, "
                f"{begin} to {self.end_offset}"
            )
        if of_tail < 0 or (of_tail and (stretches or not self.is_unbounded)):
            raise InvalidRequestError(f"log {self.name}: it cannot begin inside of its tail")
        known = [*self.ids_at_hand, *self.dropped.ids]
        if len(set(known)) != len(known):
            raise InvalidRequestError(f"log {self.name}: a ledger is listed or dropped twice")
        if min(known, default=0) < 0:
            raise InvalidRequestError(f"log {self.name}: there is no ledger {min(known)}")
        if not set(self.dropped.to_delete) <= set(self.dropped.ids):
            raise InvalidRequestError(f"log {self.name}: a ledger is to be deleted, not dropped")
        version = self.listed.first_version
        if version < 0:
            raise InvalidRequestError(f"log {self.name}: there is no version {version}")
        if len(self.tail) > TAIL_MAX or (self.tail and (self.is_sealed or self.is_tombstone)):
            raise InvalidRequestError(f"log {self.name}: it cannot have the tail {self.tail}")
        if min(self.retention.byte_count or 0, self.retention.milliseconds or 0) < 0:
            raise InvalidRequestError(
                f"log {self.name}: retention cannot be negative", hint="None keeps for ever"
            )

    # --- looking ---------------------------------------------------------------------------

    @property
    def quorum(self) -> Quorum:
        return self.settings.quorum

    @property
    def digest(self) -> DigestSpec:
        return self.settings.digest

    @property
    def older(self) -> tuple[Stretch, ...]:
        return self.listed.older

    @property
    def ledgers(self) -> tuple[LoggedLedger, ...]:
        """The newest that are closed."""
        return self.listed.ledgers

    @property
    def tail(self) -> tuple[int, ...]:
        """Those behind them."""
        return self.listed.tail

    @property
    def source(self) -> PageSource:
        return self.listed.source

    @property
    def transactions(self) -> Mapping[str, int]:
        """The last committed version per application."""
        return self.committed.transactions

    @property
    def is_unbounded(self) -> bool:
        """Whether whoever writes next goes on in the ledger at its end (``LogSettings``)."""
        return self.settings.is_unbounded

    @property
    def end_offset(self) -> int:
        """The offset behind the closed ledgers, where the tail begins."""
        if self.ledgers:
            return self.ledgers[-1].end_offset
        return self.first_offset - self.dropped.of_tail

    @property
    def length_bytes(self) -> int:
        """Payload bytes of the closed ledgers."""
        return sum(stretch.length_bytes for stretch in self.stretches)

    @property
    def ledger_count(self) -> int:
        """How many closed ledgers there are."""
        return ledger_list.count_of(self.stretches)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All closed ledgers in order, the older ones on pages."""
        return self.listed.stretches

    @property
    def has_pages(self) -> bool:
        return bool(self.older or self.dropped.all_pages)

    def every_page(self) -> Iterator[Page]:
        """All pages that the record names, or that one of them does."""
        of_places = ledger_list.pages_of(self.older)
        return ledger_list.every_page((*of_places, *self.dropped.all_pages), self.source)

    def ledgers_in(self, begin: int, end: int) -> Iterator[LoggedLedger]:
        """The closed ledgers that have some of the offsets ``[begin, end)``, in order."""
        return ledger_list.ledgers_in(self.stretches, begin, end, self.source)

    def every_ledger(self) -> Iterator[LoggedLedger]:
        """All closed ledgers in order; costs as much as there are."""
        return self.ledgers_in(0, self.end_offset)

    def bytes_in(self, begin: int, end: int) -> int:
        """Payload of the offsets ``[begin, end)``, by the average of each ledger."""
        return ledger_list.bytes_in(self.stretches, begin, end, self.source)

    def lists(self, ledger_id: int) -> bool:
        """Whether a ledger is on the list, the tail included."""
        pages = ledger_list.pages_of(self.older)
        return ledger_id in self.ids_at_hand or ledger_list.have(pages, ledger_id, self.source)

    def has_dropped(self, ledger_id: int) -> bool:
        """Whether a ledger was dropped, and is not known to be deleted."""
        return self.dropped.has(ledger_id, self.source)

    @property
    def listed_ids(self) -> tuple[int, ...]:
        """All ledgers of the log in order, the tail's included; costs as much as there are."""
        return (*(ledger.ledger_id for ledger in self.every_ledger()), *self.tail)

    @property
    def has_any_dropped(self) -> bool:
        return bool(self.dropped.ids or self.dropped.all_pages)

    def every_dropped_id(self) -> Iterator[int]:
        """All dropped ledgers; costs as much as there are."""
        yield from self.dropped.ids
        yield from ledger_list.every_id(self.dropped.all_pages, self.source)

    @property
    def to_delete_count(self) -> int:
        """How many dropped ledgers are not needed and not deleted yet."""
        return len(self.dropped.to_delete) + ledger_list.count_of(self.dropped.pages_to_delete)

    def every_id_to_delete(self) -> Iterator[int]:
        """Those ledgers; costs as much as there are."""
        yield from self.dropped.to_delete
        yield from ledger_list.every_id(self.dropped.pages_to_delete, self.source)

    @property
    def ids_at_hand(self) -> tuple[int, ...]:
        """The listed ledgers that are on no page, the tail's included."""
        return (*ledger_list.ids_of(self.stretches), *self.tail)

    def has_committed(self, transaction: Transaction | None) -> bool:
        """Whether this write of the application, or a later one, is in the log already.

        Raises:
            OutcomeUnknownError: the log has forgotten that.
        """
        return has_committed(self.transactions, transaction)
