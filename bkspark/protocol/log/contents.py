"""The content of a log's record, and the invariants of every version.

``record`` has the changes from one version to the next.

Rule 1. Offsets are dense: each closed ledger begins at its predecessor's end. The tail follows the
last closed ledger.

Rule 2. A ledger is in a single place for ever: on the list, or among the dropped ledgers.

Rule 3. Some dropped ledgers are *to be deleted*: a truncation has hidden all their entries, or the
log was deleted, or the ledger was closed without an entry. The compare-and-set that drops a ledger
also notes the deletion. So if a client is interrupted, or cannot delete a ledger, the next client
finds the list. Ledgers dropped by an abort or an overwrite are not on the list: their deletion is a
separate decision.

Rule 4. Closed ledgers are numbered as they join, for as long as the log's name is known. A ledger's
*version* never changes and is never reused, after truncation, overwrite or deletion.

Rule 5. Long lists are on pages ("ledger_list"), made by ``paging``: all except the newest ledgers,
and most dropped ledgers. After the last page there is always a ledger outside pages.

Rule 6. Without closed ledgers, the log may begin inside its tail: ``dropped`` states how many
entries of the tail are hidden, and the tail itself begins before the log.

Rule 7. A log with a *tier* may begin before its ledgers: the offsets below ``tier.freed`` are in a
table, and then the list begins there, or the tail does. So the log's offsets are truncated, in the
table, in ledgers, in the tail, in this order and without gaps. A ledger that left the list for the
table counts as dropped until it is deleted ("tier", rule 2).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bkspark.errors import InvalidRequestError, NoSuchEntryError
from bkspark.protocol import apart
from bkspark.protocol.apart import Distinct
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log import ledger_list
from bkspark.protocol.log.ledger_list import (
    LoggedLedger,
    LogPage,
    PageSource,
    Stretch,
)
from bkspark.protocol.log.stream_run import Streams
from bkspark.protocol.log.tier import Tier
from bkspark.protocol.log.transactions import has_committed

# --- settings ------------------------------------------------------------------------------------
# The settings of a new log.


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The settings a log is created with, for all its ledgers; only ``is_unbounded`` can change.

    Attributes:
        quorum: the sizes wanted for the log's ledgers.
        guarantees_write_quorum: whether the log's ledgers guarantee their write quorum.
        is_unbounded: whether the log's last ledger continues in later terms: each writer takes the
            ledger over from the previous writer, and adds no further ledger. Only this setting can
            be ``converted``; earlier ledgers stay unchanged.
        is_strict: whether no ledger of the log may be made on fewer bookies than wanted.
        min_distinct: labels whose values differ in each write set of the log's ledgers ("apart").
    """

    quorum: Quorum
    digest: DigestSpec = field(default_factory=DigestSpec)
    guarantees_write_quorum: bool = False
    is_unbounded: bool = False
    is_strict: bool = False
    min_distinct: Distinct = field(default_factory=dict, hash=False)

    @property
    def permits_smaller(self) -> bool:
        """Whether a ledger of the log may be made on fewer bookies than wanted."""
        return not (self.is_strict or self.guarantees_write_quorum)

    @classmethod
    def of(cls, ledger: LedgerMetadata, *, is_unbounded: bool) -> "LogSettings":
        """Return the settings of a log made for ``ledger``, its first ledger."""
        given = ledger.settings
        like = (sizes.wanted(ledger), given.digest, given.guarantees_write_quorum)
        return cls(*like, is_unbounded, given.is_strict, given.min_distinct)

    def require_unbounded(self, log_name: str, wanted: bool | None) -> None:
        """Check that the log is unbounded, or chained, as the writer ``wanted``; None for either.

        Raises:
            InvalidRequestError: the log is of the other kind.
        """
        if wanted is None or wanted == self.is_unbounded:
            return
        kinds = ("chained (a row of ledgers)", "unbounded (one ledger)")
        raise InvalidRequestError(
            f"log {log_name!r} is {kinds[self.is_unbounded]}, not {kinds[wanted]}",
            hint="leave unbounded out, or convert the log first: "
            f"{conversion(log_name, is_unbounded=wanted)}",
        )

    def strictness(self, log_name: str, wanted: bool | None) -> bool:
        """Whether a write that says ``wanted`` (or None) must make no smaller ledger.

        Raises:
            InvalidRequestError: the log is strict, and the write asked for the opposite.
        """
        if self.is_strict and wanted is False:
            raise InvalidRequestError(
                f"log {log_name!r} was created strict: no write to it makes a smaller ledger",
                hint="leave strict out",
            )
        return self.is_strict or bool(wanted)

    def distinctness(self, log_name: str, wanted: Distinct | None) -> Distinct:
        """Return what the log's write sets must have, for a write that says ``wanted``, or None.

        Raises:
            InvalidRequestError: the log was created with other values.
        """
        if wanted is not None and dict(wanted) != dict(self.min_distinct):
            own, other = (apart.shown(x) or "none" for x in (self.min_distinct, wanted))
            raise InvalidRequestError(
                f"log {log_name!r} was created with minDistinct {own}, not {other}",
                hint="leave minDistinct out",
            )
        return self.min_distinct

    def way_to_use(self, log_name: str, wanted: "LogSettings") -> str:
        """Return a hint for a client that wanted a new log of this name with other settings."""
        hint = "open it, or choose another name"
        if wanted.is_unbounded and not self.is_unbounded:
            hint += f"; {conversion(log_name, is_unbounded=True)} makes it unbounded"
        return hint


def conversion(log_name: str, *, is_unbounded: bool) -> str:
    """Return the command that makes the log unbounded, or chained."""
    return f"bkspark log convert {log_name} {'--unbounded' if is_unbounded else '--chained'}"


# --- listed --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LedgerList:
    """The ledgers of a log, in order.

    Attributes:
        older: stretches before ``ledgers``: pages, preceded by ledgers from a page that a
            truncation opened; empty without pages.
        ledgers: the newest closed ledgers, in offset order, without gaps.
        tail: ids of the later ledgers, whose ends are unknown.
        first_version: the version of the first ledger, or of the next to join ("contents", rule 4).
        tier: the table with the log's first offsets; None without one (rule 7).
        source: fetches pages.
    """

    older: tuple[Stretch, ...] = ()
    ledgers: tuple[LoggedLedger, ...] = ()
    tail: tuple[int, ...] = ()
    first_version: int = 0
    tier: Tier | None = None
    source: PageSource = field(default=ledger_list.NO_PAGES, compare=False, repr=False)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All closed ledgers in order; older ledgers are on pages."""
        return (*self.older, *self.ledgers)

    def with_stretches(self, stretches: Sequence[Stretch]) -> "LedgerList":
        """Return the list with other ``stretches`` for all closed ledgers."""
        older, ledgers = ledger_list.split(stretches)
        return replace(self, older=older, ledgers=ledgers)


# --- dropped -------------------------------------------------------------------------------------
# Ledgers dropped by a log: none of them joins the log (again) until deleted.


@dataclass(frozen=True, slots=True)
class DroppedLedgers:
    """The dropped ledgers of one version of a log's record ("contents", rules 3 and 5).

    Attributes:
        ids: the ledgers that are on no page.
        to_delete: the ledgers of ``ids`` that are unneeded and not deleted yet.
        pages: pages of more ledgers, none to be deleted.
        pages_to_delete: pages of more ledgers, all to be deleted.
        of_tail: number of hidden entries at the beginning of the tail's first ledger, which stays.
    """

    ids: tuple[int, ...] = ()
    to_delete: tuple[int, ...] = ()
    pages: tuple[LogPage, ...] = ()
    pages_to_delete: tuple[LogPage, ...] = ()
    of_tail: int = 0

    @property
    def all_pages(self) -> tuple[LogPage, ...]:
        return (*self.pages, *self.pages_to_delete)

    def has(self, ledger_id: int, source: PageSource) -> bool:
        return ledger_id in self.ids or ledger_list.have(self.all_pages, ledger_id, source)

    def with_tail(self, of_tail: int) -> "DroppedLedgers":
        """Return these with ``of_tail`` hidden entries of the tail."""
        return replace(self, of_tail=of_tail)

    def with_more(self, ids: Iterable[int], pages: Iterable[LogPage] = ()) -> "DroppedLedgers":
        """Return these with more ledgers, not to be deleted, or not yet."""
        return replace(self, ids=(*self.ids, *ids), pages=(*self.pages, *pages))

    def with_more_to_delete(
        self, ids: Collection[int], pages: Iterable[LogPage] = ()
    ) -> "DroppedLedgers":
        """Return these with more ledgers, to be deleted."""
        return replace(
            self,
            ids=(*self.ids, *ids),
            to_delete=(*self.to_delete, *ids),
            pages_to_delete=(*self.pages_to_delete, *pages),
        )

    def all_to_delete(self) -> "DroppedLedgers":
        """Return these with all ledgers to be deleted."""
        pages = (*self.pages_to_delete, *self.pages)
        return DroppedLedgers(self.ids, self.ids, pages_to_delete=pages)

    def forgetting(self, gone: Collection[int], source: PageSource) -> "DroppedLedgers":
        """Return these without the ledgers ``gone``, and without pages of such ledgers only."""
        return replace(
            self,
            ids=tuple(x for x in self.ids if x not in gone),
            to_delete=tuple(x for x in self.to_delete if x not in gone),
            pages=ledger_list.not_all_in(self.pages, set(gone), source),
            pages_to_delete=ledger_list.not_all_in(self.pages_to_delete, set(gone), source),
        )

    def with_page_opened(self, source: PageSource) -> "DroppedLedgers":
        """Return these with pages to delete opened until a page shows ids of its own."""
        if not self.pages_to_delete:
            return self
        *others, page = self.pages_to_delete
        found = source.contents(page)
        ids = found.ids or ledger_list.ids_of(found.ledgers)
        opened = replace(self, pages_to_delete=tuple(others)).with_more_to_delete(ids, found.pages)
        return opened if ids else opened.with_page_opened(source)


# --- contents ------------------------------------------------------------------------------------


TAIL_MAX = 2
"""The ledger being written, and the previous ledger while its writer rolls."""


@dataclass(frozen=True, slots=True)
class Committed:
    """Names remembered across truncations and overwrites.

    Attributes:
        transactions: last committed version per application, as far as remembered.
        streams: per streaming query the runs that have written, the current run last.
        strays_below: a ledger with a lower id that was made for the log may have been in the log,
            although no record names the ledger: the log's record was once unreadable and was set
            aside.
        orphaned_queries: queries whose rows a deletion of a log of this name removed ("stream_run",
            rule 3).
    """

    transactions: Mapping[str, int] = field(default_factory=dict)
    streams: Streams = field(default_factory=dict)
    orphaned_queries: tuple[str, ...] = ()
    strays_below: int = 0


@dataclass(frozen=True, slots=True)
class Times:
    """Wall-clock times of the log's changes; 0 until noted.

    Attributes:
        truncated_ms: when entries were last truncated; None if never.
    """

    created_ms: int = 0
    changed_ms: int = 0
    truncated_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Retention:
    """How many bytes of a log to keep, and how long; None for ever."""

    byte_count: int | None = None
    milliseconds: int | None = None

    @property
    def is_limited(self) -> bool:
        return self != Retention()


@dataclass(frozen=True, slots=True)
class LogContents:
    """One version of a log's record.

    Attributes:
        is_tombstone: there is no such log ("record", rule 5).
        generation: number of the contents; each overwrite and each creation adds 1.
        listed: the log's ledgers; the first of the tail begins at ``end_offset``.
        first_offset: first readable offset; entries below are truncated.
        schema: Arrow schema of the log as an IPC schema message; opaque here.
        settings: the settings the log was created with.
        dropped: ledgers that must never join the list (again), until deleted.
        is_sealed: the log takes no more ledgers.
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
        is_tier_begun = self.first_offset < self.freed
        first = self.first_offset if is_tier_begun and begin == self.freed else begin
        if not 0 <= first <= self.first_offset <= self.end_offset + of_tail:
            raise InvalidRequestError(
                f"log {self.name}: first offset {self.first_offset} is outside of its ledgers, "
                f"{begin} to {self.end_offset}"
            )
        if of_tail < 0 or (of_tail and (stretches or not self.is_unbounded)):
            raise InvalidRequestError(f"log {self.name}: it cannot begin inside of its tail")
        self._require_tier(begin)
        known = [*self.ids_at_hand, *self.dropped.ids, *self.waiting_ids]
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

    def _require_tier(self, begin: int) -> None:
        """Check what rule 7 says; the list of ledgers begins at ``begin``."""
        tier = self.tier
        if tier is None:
            return
        if self.is_tombstone:
            raise InvalidRequestError(f"log {self.name}: a deleted log has no tier")
        if tier.begin > self.first_offset or (self.first_offset < tier.freed != begin):
            raise InvalidRequestError(
                f"log {self.name}: its tier has offsets {tier.begin} to {tier.freed}, and the log "
                f"begins at {self.first_offset}, its ledgers at {begin}"
            )
        if max(tier.copied, *tier.borders, 0) > max(self.end_offset, self.first_offset):
            raise InvalidRequestError(f"log {self.name}: its tier is longer than its ledgers")

    # --- looking ---------------------------------------------------------------------------

    @property
    def tier(self) -> Tier | None:
        """The table with the log's first offsets; None without one (rule 7)."""
        return self.listed.tier

    @property
    def freed(self) -> int:
        """Readable offsets below it are only in the tier's table; 0 without a tier."""
        return 0 if self.tier is None else self.tier.freed

    @property
    def waiting_ids(self) -> tuple[int, ...]:
        """The ledgers on no page that wait for a second look at the tier's table."""
        return () if self.tier is None else self.tier.waiting_ids

    @property
    def waiting_pages(self) -> tuple[LogPage, ...]:
        return () if self.tier is None else self.tier.waiting_pages

    @property
    def dropped_pages(self) -> tuple[LogPage, ...]:
        """The pages of ledgers that are dropped, or wait for a second look at the tier."""
        return (*self.dropped.all_pages, *self.waiting_pages)

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
        """The newest closed ledgers."""
        return self.listed.ledgers

    @property
    def tail(self) -> tuple[int, ...]:
        """The ids of the ledgers after the closed ledgers."""
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
        """Whether the next writer continues in the log's last ledger (``LogSettings``)."""
        return self.settings.is_unbounded

    @property
    def end_offset(self) -> int:
        """The offset after the closed ledgers, where the tail begins."""
        if self.ledgers:
            return self.ledgers[-1].end_offset
        begin = self.first_offset - self.dropped.of_tail
        return begin if self.tier is None else max(self.tier.freed, begin)

    def end_of_version(self, version: int) -> int:
        """Return the offset after the entries that the log had once it had ``version``.

        Raises:
            NoSuchEntryError: the log has no such version yet, or does not have it any more.
        """
        first, stretches = self.listed.first_version, self.stretches
        found = ledger_list.place_of_version(stretches, first, version, self.source)
        if found is not None and found[1] == version and found[0].end_offset > self.first_offset:
            return found[0].end_offset
        if found is not None and found[1] != version:
            raise NoSuchEntryError(
                f"version {version} of log {self.name!r} was compacted into version {found[1]}",
                hint=f"read version {found[1]}, or the time of the version with timestampAsOf",
            )
        newest = first + ledger_list.versions_of(stretches) - 1
        if version > newest:
            known = f"the newest one is {newest}" if stretches else "it has none now"
            raise NoSuchEntryError(
                f"log {self.name!r} has no version {version} yet: {known}",
                hint="a ledger has a version once it is closed; view=history shows the versions",
            )
        hint = "view=history shows the versions"
        if self.first_offset < self.freed and version < first:  # perhaps the table has its rows
            hint += "; rows that only the log's table has are read by offset or by time"
        raise NoSuchEntryError(
            f"version {version} of log {self.name!r} cannot be read any more: "
            f"{self.shown_oldest_version}",
            hint=hint,
        )

    @property
    def shown_oldest_version(self) -> str:
        """The oldest version that can be read, for messages."""
        first = self.listed.first_version
        found = ledger_list.place_of_version(self.stretches, first, first, self.source)
        if found is None or found[0].end_offset <= self.first_offset:
            return "no version can be read now"
        return f"the oldest version that can be read is {found[1]}"

    @property
    def last_ms(self) -> int:
        """The last time of the closed ledgers (``commit_times``); 0 without any."""
        if self.ledgers:
            return self.ledgers[-1].last_ms
        return 0 if self.tier is None else self.tier.of_freed.last_ms

    @property
    def length_bytes(self) -> int:
        """Payload bytes of the closed ledgers, without what is only in the tier's table."""
        return sum(stretch.length_bytes for stretch in self.stretches)

    @property
    def ledger_count(self) -> int:
        """The number of closed ledgers."""
        return ledger_list.count_of(self.stretches)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All closed ledgers in order; older ledgers are on pages."""
        return self.listed.stretches

    @property
    def has_pages(self) -> bool:
        return bool(self.older or self.dropped_pages)

    def every_page(self) -> Iterator[LogPage]:
        """Yield all pages below the record."""
        of_places = ledger_list.pages_of(self.older)
        return ledger_list.every_page((*of_places, *self.dropped_pages), self.source)

    def ledgers_in(self, begin: int, end: int) -> Iterator[LoggedLedger]:
        """Yield the closed ledgers with some of the offsets ``[begin, end)``, in order."""
        return ledger_list.ledgers_in(self.stretches, begin, end, self.source)

    def lost_in(self, begin: int, end: int) -> Iterator[LoggedLedger]:
        """Yield the lost places with some of the offsets ``[begin, end)``, in order."""
        return ledger_list.lost_in(self.stretches, begin, end, self.source)

    def lost_count(self, begin: int, end: int) -> int:
        """Return how many of the offsets ``[begin, end)`` belong to lost places."""
        places = self.lost_in(begin, end)
        return sum(min(end, one.end_offset) - max(begin, one.first_offset) for one in places)

    def every_ledger(self) -> Iterator[LoggedLedger]:
        """Yield all closed ledgers in order; reads every page of places."""
        return self.ledgers_in(0, self.end_offset)

    def bytes_in(self, begin: int, end: int) -> int:
        """Return the payload bytes of the offsets ``[begin, end)``, averaged within each ledger."""
        return ledger_list.bytes_in(self.stretches, begin, end, self.source)

    def lists(self, ledger_id: int) -> bool:
        """Whether a ledger is on the list, including the tail."""
        pages = ledger_list.pages_of(self.older)
        return ledger_id in self.ids_at_hand or ledger_list.have(pages, ledger_id, self.source)

    def has_dropped(self, ledger_id: int) -> bool:
        """Whether a ledger was dropped, and is not known to be deleted."""
        return self.dropped.has(ledger_id, self.source) or self.is_waiting(ledger_id)

    def is_waiting(self, ledger_id: int) -> bool:
        """Whether a dropped ledger must stay until the tier's table has been looked at again."""
        tier = self.tier
        return tier is not None and (
            ledger_id in tier.waiting_ids
            or ledger_list.have(tier.waiting_pages, ledger_id, self.source)
        )

    @property
    def listed_ids(self) -> tuple[int, ...]:
        """All ledgers of the log in order, including the tail; reads every page of places."""
        return (*(ledger.ledger_id for ledger in self.every_ledger()), *self.tail)

    @property
    def has_any_dropped(self) -> bool:
        return bool(self.dropped.ids or self.dropped.all_pages)

    def every_dropped_id(self) -> Iterator[int]:
        """Yield all dropped ledgers of which no copy is needed; reads every page of ids."""
        yield from self.dropped.ids
        yield from ledger_list.every_id(self.dropped.all_pages, self.source)

    def every_waiting_id(self) -> Iterator[int]:
        """Yield the dropped ledgers whose copies are kept for the tier; reads their pages."""
        yield from self.waiting_ids
        yield from ledger_list.every_id(self.waiting_pages, self.source)

    @property
    def to_delete_count(self) -> int:
        """The number of dropped ledgers that are unneeded and not deleted yet."""
        return len(self.dropped.to_delete) + ledger_list.count_of(self.dropped.pages_to_delete)

    def every_id_to_delete(self) -> Iterator[int]:
        """Yield the dropped ledgers to delete; reads every page of them."""
        yield from self.dropped.to_delete
        yield from ledger_list.every_id(self.dropped.pages_to_delete, self.source)

    @property
    def ids_at_hand(self) -> tuple[int, ...]:
        """The listed ledgers that are on no page, including the tail."""
        return (*ledger_list.ids_of(self.stretches), *self.tail)

    def has_committed(self, transaction: Transaction | None) -> bool:
        """Whether this write of the application, or a later write, is in the log already.

        Raises:
            OutcomeUnknownError: the log may have forgotten the query.
        """
        return has_committed(self.transactions, transaction)
