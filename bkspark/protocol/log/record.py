"""A log: a list of ledgers under one compare-and-set record."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace

from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerExistsError,
    LedgerFencedError,
    MetadataVersionError,
    NoSuchLedgerError,
    OutcomeUnknownError,
)
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log import ledger_list
from bkspark.protocol.log.contents import (
    Committed,
    LedgerList,
    LogContents,
    LogSettings,
    Retention,
    Times,
)
from bkspark.protocol.log.ledger_list import (
    LOST_ENTRIES,
    LoggedLedger,
    LogPage,
    PageContents,
    Stretch,
    pages_of,
)
from bkspark.protocol.log.stream_run import StreamRun, queries_of, require_not_orphaned, with_run
from bkspark.protocol.log.tier import SEGMENTS_KEPT, SEGMENTS_OF_PAGE, SegmentsPage, Tier
from bkspark.protocol.log.transactions import forgotten_queries, remembering

# --- record --------------------------------------------------------------------------------------
# A log: a list of ledgers under one compare-and-set record.
#
# Rule 1. ``ledgers`` are CLOSED, so their ends are known and later offsets are fixed. No change of
# the record may put a ledger after one that is not CLOSED, except in the *tail*: up to two last
# ledgers without a fixed end. These are the ledger being written, and the previous ledger while the
# writer rolls. So a client that opens the log fences the whole tail (RB-20: the last two).
#
# Rule 2. A dropped ledger never joins: a commit that hung and resumes late is refused (H5).
#
# Rule 3. An application's transaction version only grows. A ledger with a version not above the
# last one is already committed (as in Delta), and is only dropped. ``transactions`` bounds how many
# versions a log remembers.
#
# Rule 4. Overwriting starts a new generation with offsets from 0; transactions survive.
#
# Rule 5. After a deletion or an aborted first write, a name keeps a *tombstone*. Readers see no
# log, but the tombstone remembers the generations, the dropped ledgers and the queries that wrote
# to the log. The first ledger that joins creates the log (anew), as does a client that creates an
# empty log.
#
# Rule 6. Truncation hides whole ranges of offsets at once, and never passes a ledger that is not
# CLOSED. In a ledger that continues in later terms, truncation may reach entries confirmed by the
# ledger's metadata alone. The last ledger stays. A sealed log takes no more ledgers.


UNSTAMPED = 0
"""In place of a time until the record is ``stamped``."""


@dataclass(frozen=True, slots=True)
class LogRecord(LogContents):
    """One version of a log's record, with all changes to the next version."""

    # --- a closed ledger joins -----------------------------------------------------------------

    def with_ledger(
        self,
        ledger: LedgerMetadata,
        *,
        schema: bytes,
        transaction: Transaction | None,
        overwrite: bool = False,
        is_unbounded: bool | None = None,
    ) -> "LogRecord":
        """Return the log with ``ledger`` at its end, or alone in a new generation.

        A tombstone becomes a log with the ledger's settings.

        If the log has the ledger already, nothing changes, so a repeated call is harmless. If its
        transaction has committed (rule 3), the ledger is only dropped, overwrite or not.

        Args:
            ledger: read after this version of the log, so that the caller sees DELETING if a
                deletion already removed the ledger from ``dropped``.
            is_unbounded: whether the log must be unbounded; None for either.

        Raises:
            OutcomeUnknownError: the ledger was dropped meanwhile, so its rows will never be read.
            InvalidRequestError: the ledger is not CLOSED, or the log's tail is not (rule 1).
            LedgerClosedError: the log is sealed.
        """
        if self.lists(ledger.ledger_id):
            return self
        if self.has_committed(transaction):
            return self.without(ledger.ledger_id)
        self._require_joinable(ledger)
        _require_closed(ledger, self.name)
        if self.tail:
            raise InvalidRequestError(f"log {self.name}: the ledgers {self.tail} are not closed")
        base = self._base_for(ledger, overwrite=overwrite, is_unbounded=is_unbounded)
        done = {} if transaction is None else {transaction.app_id: transaction.version}
        return replace(base, schema=schema)._joined(ledger, done)

    def without(self, ledger_id: int) -> "LogRecord":
        """Return the log with ``ledger_id`` dropped for ever, unless already joined."""
        is_known = self.has_dropped(ledger_id) or self.lists(ledger_id)
        return self if is_known else replace(self, dropped=self.dropped.with_more([ledger_id]))

    # --- the tail ------------------------------------------------------------------------------

    def with_tail(
        self, ledger: LedgerMetadata, *, schema: bytes | None = None, own: int | None = None
    ) -> "LogRecord":
        """Return the log with the OPEN ``ledger`` as its last; writing begins only after that.

        If the tail has the ledger already, the log stays unchanged.

        Args:
            ledger: read after this version of the log.
            schema: the log's new schema, if the schema changes.
            own: for a roll, the only tail ledger, which its own writer will close after this.

        Raises:
            LedgerFencedError: another client has opened the log since, or taken ``ledger`` over.
            OutcomeUnknownError: the ledger was dropped.
            LedgerClosedError: the log is sealed.
            InvalidRequestError: the ledger has other settings than the log.
        """
        if ledger.ledger_id in self.tail:
            return self
        self._require_joinable(ledger)
        if self.tail != (() if own is None else (own,)):
            raise LedgerFencedError(
                f"log {self.name} was opened by another writer",
                hint="if this program is still to write, open the log again",
            )
        if ledger.state is not LedgerState.OPEN:
            raise LedgerFencedError(
                f"ledger {ledger.ledger_id} is {ledger.state.value}: another client took it "
                f"over before it joined log {self.name}"
            )
        self._require_settings_of(ledger)
        listed = replace(self.listed, tail=(*self.tail, ledger.ledger_id))
        return replace(self, listed=listed, schema=schema or self.schema)

    def with_closed(self, *ledgers: LedgerMetadata) -> "LogRecord":
        """Return the log with these CLOSED ``ledgers`` moved from its tail to fixed places.

        Ledgers no longer in the tail are ignored. Empty ledgers get no place (RB-21).

        Raises:
            InvalidRequestError: a ledger is not CLOSED, or an earlier one is missing (rule 1).
        """
        known = {ledger.ledger_id: ledger for ledger in ledgers}
        log = self
        while log.tail and log.tail[0] in known:
            ledger = known[log.tail[0]]
            _require_closed(ledger, self.name)
            rest = replace(log.listed, tail=log.tail[1:])
            log = replace(log, listed=rest)._joined(ledger, ledger.transactions)
        if known.keys() & set(log.tail):
            raise InvalidRequestError(f"log {self.name}: ledger {log.tail[0]} is not closed yet")
        return log

    def with_stream(self, run: StreamRun) -> "LogRecord":
        """Return the log with ``run`` as the current run of its query (see ``stream_run``).

        Raises:
            LedgerFencedError: a newer run has taken over.
            NoSuchLedgerError: a deletion of a log of this name removed rows of the query.
        """
        committed = self.committed
        require_not_orphaned(run, committed.orphaned_queries, self.name)
        streams = with_run(committed.streams, run)
        if streams == committed.streams:
            return self
        return replace(self, committed=replace(committed, streams=streams))

    # --- the log as a whole --------------------------------------------------------------------

    def still_of(self, generation: int) -> "LogRecord":
        """Return the record unchanged if the log is still at ``generation`` (rule 4).

        Raises:
            MetadataVersionError: the log was overwritten, or deleted and made anew, since.
        """
        if self.generation != generation:
            raise MetadataVersionError(
                f"log {self.name!r} was overwritten, or deleted and created again: it is at "
                f"generation {self.generation}, not {generation} any more",
                hint="nothing was changed; run this again if the new log is the right one",
            )
        return self

    def truncated(self, before_offset: int, confirmed: int = 0) -> "LogRecord":
        """Return the log without its entries below ``before_offset``; never restores any.

        Ledgers wholly below the offset are dropped and noted for deletion, except the last ledger.

        Args:
            confirmed: the offset up to which the tail's first ledger may be hidden.

        Raises:
            InvalidRequestError: the offset is past the closed ledgers and ``confirmed`` (rule 6).
        """
        if before_offset <= self.first_offset:
            return self
        end = max(self.end_offset, confirmed)
        if before_offset > end:
            raise InvalidRequestError(
                f"log {self.name} can be truncated up to offset {end}, not {before_offset}",
                hint="the last ledger is still written to: roll the log first, or fence its "
                f"writer: `bkspark ledger recover {self.tail[0]}`"
                if self.tail
                else "",
            )
        stretches = ledger_list.opened_at(self.stretches, before_offset, self.source)
        kept = tuple(one for one in stretches if one.end_offset > before_offset)
        if not kept and not self.tail:
            kept = stretches[-1:]
        gone = stretches[: len(stretches) - len(kept)]
        ids = ledger_list.ids_of(gone)
        listed = self.listed.with_stretches(kept)
        version = listed.first_version + ledger_list.versions_of(gone)
        dropped = self.dropped.with_tail(max(0, before_offset - self.end_offset))
        pages = ledger_list.pages_of(gone)
        if self.tier is not None and before_offset >= self.tier.freed:
            ids, pages = (*ids, *self.waiting_ids), (*pages, *self.waiting_pages)
        tier = None if self.tier is None else self.tier.hidden_below(before_offset)
        return replace(
            self,
            listed=replace(listed, first_version=version, tier=tier),
            first_offset=before_offset,
            times=replace(self.times, truncated_ms=UNSTAMPED),
            dropped=dropped.with_more_to_delete(ids, pages),
        )

    def sealed(self) -> "LogRecord":
        """Return the log closed to all further ledgers.

        Raises:
            InvalidRequestError: the log's tail is not closed.
        """
        return replace(self, is_sealed=True)

    def converted(self, *, is_unbounded: bool) -> "LogRecord":
        """Return the log, whose next ledger continues in later terms, or no longer does.

        Raises:
            LedgerClosedError: the log is sealed.
        """
        self._require_unsealed()
        return replace(self, settings=replace(self.settings, is_unbounded=is_unbounded))

    def created(self, settings: LogSettings, schema: bytes) -> "LogRecord":
        """Return an empty log with these settings, made from a tombstone.

        Raises:
            LedgerExistsError: there is a log of this name.
        """
        if not self.is_tombstone:
            raise LedgerExistsError(
                f"there is a log {self.name!r} already",
                hint=self.settings.way_to_use(self.name, settings),
            )
        return replace(
            self,
            is_tombstone=False,
            generation=self.generation + 1,
            settings=settings,
            schema=schema,
        )

    def forgetting(self, deleted: Iterable[int]) -> "LogRecord":
        """Return the record without these ledgers; as DELETING ledgers they cannot join."""
        left = self.dropped.forgetting(set(deleted), self.source)
        return replace(self, dropped=left)

    def with_more_to_delete(self) -> "LogRecord":
        """Return the record with a page of ledgers to delete opened, if the record has such a page.

        Call this after all of ``to_delete`` are deleted.
        """
        opened = self.dropped.with_page_opened(self.source)
        return self if opened is self.dropped else replace(self, dropped=opened)

    def stamped(self, changed_ms: int) -> "LogRecord":
        """Return the record with the time of its change, for display and for retention by age.

        A ledger's time is never before its predecessor's time. So a slow clock never makes a ledger
        older than earlier ledgers ("retention", rule 4).
        """
        ledgers: list[LoggedLedger] = []
        newest_ms = 0
        for ledger in self.ledgers:
            newest_ms = max(newest_ms, ledger.closed_ms or changed_ms)
            ledgers.append(ledger if ledger.closed_ms else replace(ledger, closed_ms=newest_ms))
        truncated_ms = self.times.truncated_ms
        times = Times(
            self.times.created_ms or changed_ms,
            changed_ms,
            changed_ms if truncated_ms == UNSTAMPED else truncated_ms,
        )
        return replace(self, times=times, listed=replace(self.listed, ledgers=tuple(ledgers)))

    def vacated(self) -> "LogRecord":
        """Return the tombstone of a deleted log, with its queries and its ledgers to delete."""
        emptied, before = self._emptied(), self.committed
        known = before.transactions
        queries = queries_of(before.streams, known)
        orphaned = tuple(dict.fromkeys((*before.orphaned_queries, *queries)))
        return replace(
            emptied,
            dropped=emptied.dropped.all_to_delete(),
            committed=Committed(forgotten_queries(known), {}, orphaned, before.strays_below),
            is_tombstone=True,
            schema=b"",
            is_sealed=False,
            retention=Retention(),
        )

    @classmethod
    def tombstone(cls, name: str, quorum: Quorum) -> "LogRecord":
        """Return the record of a name that never had a log."""
        return cls(name, LogSettings(quorum), schema=b"", is_tombstone=True, generation=0)

    @classmethod
    def of(cls, record: "LogRecord | None", name: str, quorum: Quorum) -> "LogRecord":
        """Return ``record``, or the record of a name that never had a log."""
        return cls.tombstone(name, quorum) if record is None else record

    def with_tier(self, tier: Tier | None) -> "LogRecord":
        """Return the log with this tier ("offloading" has the changes of a tier)."""
        return replace(self, listed=replace(self.listed, tier=tier))

    # --- parts of the above --------------------------------------------------------------------

    def _require_joinable(self, ledger: LedgerMetadata) -> None:
        if self.has_dropped(ledger.ledger_id):
            raise OutcomeUnknownError(
                f"ledger {ledger.ledger_id} was dropped from log {self.name}, by an abort, a "
                "truncation, an overwrite, a compaction, or a collection that counted its "
                "write as abandoned",
                hint="no row of this write is in the log now, unless the log was compacted: "
                "find out what removed them, then run the write again",
            )
        self._require_unsealed()

    def _require_unsealed(self) -> None:
        if self.is_sealed:
            raise LedgerClosedError(
                f"log {self.name} is sealed", hint="it can only be read; write to another log"
            )

    def _require_settings_of(self, ledger: LedgerMetadata) -> None:
        """Check that the ledger was made for this log, not for a deleted log of its name."""
        own, given = self.settings, ledger.settings
        settings = (
            ("digestType", own.digest.digest_type, given.digest.digest_type),
            ("quorum sizes", astuple(own.quorum), astuple(sizes.wanted(ledger))),
            ("guaranteed copies", own.guarantees_write_quorum, given.guarantees_write_quorum),
            ("minDistinct", dict(own.min_distinct), dict(given.min_distinct)),
        )
        for what, ours, theirs in settings:
            if ours != theirs:
                raise InvalidRequestError(
                    f"log {self.name} has {what} {ours}, not {theirs}: another client created "
                    "it first",
                    hint="no row of this write is in the log; run the write again",
                )

    def _base_for(
        self, ledger: LedgerMetadata, *, overwrite: bool, is_unbounded: bool | None
    ) -> "LogRecord":
        if self.is_tombstone:
            settings = LogSettings.of(ledger, is_unbounded=bool(is_unbounded))
            return self.created(settings, self.schema)
        self._require_settings_of(ledger)
        self.settings.require_unbounded(self.name, is_unbounded)
        if overwrite:
            return replace(self._emptied(), generation=self.generation + 1)
        return self

    def _joined(self, ledger: LedgerMetadata, done: Mapping[str, int]) -> "LogRecord":
        """Return the log with the closed ``ledger`` at its end, and its transactions ``done``.

        A ledger without entries is dropped and noted for deletion.
        """
        known = replace(self.committed, transactions=remembering(self.transactions, done))
        log = replace(self, committed=known)
        if ledger.last_entry_id is None or ledger.last_entry_id == INVALID_ENTRY_ID:
            dropped = log.dropped.with_more_to_delete([ledger.ledger_id])
            return replace(log, dropped=dropped)
        # The list's times never go back, whatever the clocks of the writers told.
        times = ledger.times.not_before(self.last_ms)
        place = LoggedLedger(
            *(ledger.ledger_id, self.end_offset, ledger.last_entry_id + 1),
            length_bytes=ledger.length_bytes or 0,
            first_ms=times.first_ms,
            last_ms=times.last_ms,
        )
        listed = replace(log.listed, ledgers=(*log.ledgers, place))
        return replace(log, listed=listed, dropped=log.dropped.with_tail(0))

    def _emptied(self) -> "LogRecord":
        dropped = self.dropped.with_more(
            (*self.ids_at_hand, *self.waiting_ids),
            (*ledger_list.pages_of(self.older), *self.waiting_pages),
        )
        version = self.listed.first_version + ledger_list.versions_of(self.stretches)
        return replace(
            self,
            listed=LedgerList(first_version=version, source=self.source),
            first_offset=0,
            dropped=dropped.with_tail(0),
            times=replace(self.times, truncated_ms=None),
        )


def _require_closed(ledger: LedgerMetadata, log_name: str) -> None:
    if ledger.state is not LedgerState.CLOSED:
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id} is {ledger.state.value}, and only a CLOSED ledger can "
            f"join log {log_name}"
        )


# --- lost ----------------------------------------------------------------------------------------
# Gives a ledger at a log's end whose metadata record is gone for good a place in the log.
#
# Rule 1. The end of such a ledger is unknown, and acknowledged entries may lie anywhere in it. So
# the place has more offsets than the ledger can have had entries, and no offset of the ledger is
# given to another entry. Readers treat the place as a loss; later ledgers follow after the place.
#
# Rule 2. The place is made only if the ledger's record is certainly absent and the log still names
# the ledger: then no writer can acknowledge an entry in the ledger any more (R4).


def with_lost(log: LogRecord, ledger_id: int) -> LogRecord:
    """Return ``log`` with a lost place for the ledger with which its tail begins.

    If the tail does not have the ledger, the log stays unchanged.

    Raises:
        InvalidRequestError: an earlier ledger of the tail has to be closed first.
    """
    if ledger_id not in log.tail:
        return log
    if ledger_id != log.tail[0]:
        raise InvalidRequestError(
            f"log {log.name} was not changed: ledger {log.tail[0]} comes before ledger "
            f"{ledger_id} and is not closed",
            hint=f"run `bkspark ledger recover {log.tail[0]} --seal`, then this command again",
        )
    place = LoggedLedger(
        *(ledger_id, log.end_offset, LOST_ENTRIES, 0), first_ms=log.last_ms, last_ms=log.last_ms
    )
    listed = replace(log.listed, tail=log.tail[1:], ledgers=(*log.ledgers, place))
    return replace(log, listed=listed, dropped=log.dropped.with_tail(0))


def missing_end(log_name: str, error: NoSuchLedgerError) -> NoSuchLedgerError:
    """Return the error for a log that still names the missing ledger of ``error`` at its end."""
    return NoSuchLedgerError(
        f"log {log_name!r} ends in a ledger whose metadata record is missing: {error.args[0]}",
        hint="`bkspark metadata damaged` names the record, and says how the log can continue",
    )


# --- paging --------------------------------------------------------------------------------------
# Paging: keeps a log's record short by moving old parts to pages ("ledger_list").
#
# Rule 1. Of each kind a record holds up to ``kept_max``: places of the newest ledgers, pages of
# each height, ids of dropped ledgers. Any excess goes to pages of ``length``, oldest first. So the
# number of levels grows with the logarithm of the ledgers, and a change of the record makes a page
# only every ``length`` ledgers. A truncation within a page puts the rest of the page, and of the
# pages above, before the others: less than ``length`` of each height. Pages of one log may have
# different lengths: each reference states its page's content.
#
# Rule 2. A page gets a random name, is made once under the name, and is durable before the
# compare-and-set that names the page. A client that loses the compare-and-set leaves an unnamed
# page; the next attempt makes a page with other contents under another name. So a reference never
# denotes another page.


PAGE_LENGTH = 64
"""A page of places is some 6 kB, a full record some 20 kB for each level."""


@dataclass
class Paged:
    """A short record, and the pages it needs.

    Attributes:
        length: items on each new page, >= 1.
        pages: pages to store before the record, in this order.
        segments: pages of segments of the tier to store before the record, by name.
    """

    record: LogRecord
    new_name: Callable[[], str]
    length: int
    pages: list[tuple[LogPage, PageContents]] = field(default_factory=list)
    segments: list[tuple[str, SegmentsPage]] = field(default_factory=list)

    @property
    def kept_max(self) -> int:
        """Most items of each kind in a record: paging then leaves room for ``length`` more."""
        return 2 * self.length

    def page(self, contents: PageContents) -> LogPage:
        made = contents.named(self.new_name())
        self.pages.append((made, contents))
        return made


def paged(record: LogRecord, new_name: Callable[[], str], length: int = PAGE_LENGTH) -> Paged:
    """Return ``record`` with any excess moved to pages; the same record without excess.

    Args:
        new_name: makes a unique page name.
        length: items on each new page.
    """
    result = Paged(record, new_name, length)
    _page_ledgers(result)
    _page_dropped(result)
    _page_segments(result)
    return result


def _page_ledgers(result: Paged) -> None:
    record = result.record
    if len(record.ledgers) > result.kept_max:
        # A place on a page keeps its time for ever. Places without one were closed before the last
        # change, by a version that noted no time.
        record = record.stamped(record.times.changed_ms)
        older, ledgers = record.older, record.ledgers
        while len(ledgers) > result.kept_max:
            older = (*older, result.page(PageContents(ledgers=ledgers[: result.length])))
            ledgers = ledgers[result.length :]
        record = replace(record, listed=replace(record.listed, older=older, ledgers=ledgers))
    older = _with_taller(result, record.older)
    result.record = replace(record, listed=replace(record.listed, older=older))


def _with_taller(result: Paged, stretches: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """Return ``stretches`` with at most ``kept_max`` pages of each height in sequence."""
    length, height, done = result.length, 0, tuple(stretches)
    while height <= max(map(_height, done), default=-1):
        begin, end = _row(done, height)
        while end - begin > result.kept_max:
            page = result.page(PageContents(pages=pages_of(done[begin : begin + length])))
            done = (*done[:begin], page, *done[begin + length :])
            begin, end = begin + 1, end - length + 1
        height += 1
    return done


def _row(stretches: Sequence[Stretch], height: int) -> tuple[int, int]:
    """Return the range of the last pages of ``height``, after all higher pages."""
    end = len(stretches)
    while end and _height(stretches[end - 1]) < height:
        end -= 1
    begin = end
    while begin and _height(stretches[begin - 1]) == height:
        begin -= 1
    return begin, end


def _height(stretch: Stretch) -> int:
    return stretch.height if isinstance(stretch, LogPage) else -1


def _page_dropped(result: Paged) -> None:
    dropped = result.record.dropped
    noted = set(dropped.to_delete)
    kept = tuple(one for one in dropped.ids if one not in noted)
    kept, kept_pages = _with_pages_of_ids(result, kept)
    left, left_pages = _with_pages_of_ids(result, dropped.to_delete)
    shortened = replace(
        dropped,
        ids=(*kept, *left) if kept_pages or left_pages else dropped.ids,
        to_delete=left,
        pages=_sorted(result, (*dropped.pages, *kept_pages)),
        pages_to_delete=_sorted(result, (*dropped.pages_to_delete, *left_pages)),
    )
    result.record = replace(result.record, dropped=shortened)


def _with_pages_of_ids(
    result: Paged, ids: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[LogPage, ...]]:
    pages: list[LogPage] = []
    while len(ids) > result.kept_max:
        pages.append(result.page(PageContents(ids=ids[: result.length])))
        ids = ids[result.length :]
    return ids, tuple(pages)


def _sorted(result: Paged, pages: tuple[LogPage, ...]) -> tuple[LogPage, ...]:
    """Return ``pages`` with the highest first: dropped ledgers have no order of their own."""
    by_height = sorted(pages, key=lambda page: -page.height)
    return pages_of(_with_taller(result, by_height))


def _page_segments(result: Paged) -> None:
    """Move the oldest segments without a ledger to pages ("tier", rule 4)."""
    tier = result.record.tier
    while tier is not None and len(tier.segments) > SEGMENTS_KEPT:
        page = SegmentsPage(tier.segments[:SEGMENTS_OF_PAGE], tier.older)
        if page.segments[-1].end > tier.released:
            break
        name = result.new_name()
        result.segments.append((name, page))
        tier = replace(tier, segments=tier.segments[SEGMENTS_OF_PAGE:], older=name)
    result.record = result.record.with_tier(tier)
