"""The records of logs, with the older ledgers of each log on separate pages.

A record is shortened before it is stored: new pages are stored durably first, and then the record
that names the new pages is replaced ("paging", rule 2). So code that changes a log needs no
knowledge of pages, and no stored record names a missing page.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from logging import WARNING
from typing import Generic, TypeAlias, TypeVar

from bkspark import environment
from bkspark.cluster.log_messages import tell
from bkspark.cluster.records import Records, Versioned
from bkspark.errors import CorruptDataError, InvalidRequestError, NoSuchEntryError
from bkspark.format import layout, log_page, log_record, tier_record
from bkspark.format.tier_record import DigestsPage
from bkspark.metadata.contract import MetadataStore
from bkspark.protocol import bounds
from bkspark.protocol.log.ledger_list import LogPage, PageContents
from bkspark.protocol.log.record import PAGE_LENGTH, LogRecord, Paged, paged
from bkspark.protocol.log.tier import SegmentsPage, Tier, TierSegment
from bkspark.storage.address import shown_url

logger = logging.getLogger(__name__)

# --- remembered pages ----------------------------------------------------------------------------


PageKey: TypeAlias = tuple[str, str, str, str]
"""Metadata store, cluster, log and page."""

REMEMBERED_MAX = 512
"""Pages of a kind that a process keeps in memory: a few megabytes, for any number of logs."""

Page = TypeVar("Page")


class RememberedPages(Generic[Page]):
    """The pages last seen by this process. Pages never change, so a copy stays valid for ever."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: OrderedDict[PageKey, Page] = OrderedDict()

    def get(self, key: PageKey) -> Page | None:
        with self._lock:
            if key in self._pages:
                self._pages.move_to_end(key)
            return self._pages.get(key)

    def note(self, key: PageKey, page: Page) -> None:
        with self._lock:
            self._pages[key] = page
            while len(self._pages) > REMEMBERED_MAX:
                self._pages.popitem(last=False)


# --- tier pages ----------------------------------------------------------------------------------
# The pages of one log's tier: older segments, and digests of the rows of segments.
#
# A page has a random name, is durable before a record names it, and never changes. A client makes a
# page after it has read the log's record, and names it by compare-and-set against the record read:
# a collection relies on that ("spent pages", rule 2).


_Named: TypeAlias = tuple[str, SegmentsPage]
_NamedDigests: TypeAlias = tuple[str, DigestsPage]


class SegmentsMemory(RememberedPages[SegmentsPage]):
    """The pages of segments: retention walks them at each roll."""


class TierPages:
    """Reads and makes the pages of one log's tier.

    Raises (every method):
        CorruptDataError: a page is missing or damaged.
        OutcomeUnknownError: the metadata store gave no sure answer.
    """

    def __init__(self, store: MetadataStore, cluster_id: str, log_name: str) -> None:
        self._log_name = log_name
        self._store = store
        self._place = (store.uri, cluster_id, log_name)

        def key(name: str) -> str:
            return layout.tier_page_key(log_name, name)

        self._segments: Records[_Named] = Records(
            store,
            cluster_id,
            key,
            lambda made, _nonce: tier_record.encode_page(log_name, *made),
            lambda name, data: (name, tier_record.decode_page(log_name, name, data)),
        )
        self._digests: Records[_NamedDigests] = Records(
            store,
            cluster_id,
            key,
            lambda made, _nonce: tier_record.encode_digests(log_name, *made),
            lambda name, data: (name, tier_record.decode_digests(log_name, name, data)),
        )

    def make_segments(self, name: str, page: SegmentsPage) -> None:
        """Store a new page of segments, durably."""
        self._segments.create(name, (name, page))

    def make_digests(self, name: str, page: DigestsPage) -> None:
        """Store a new page of digests, durably."""
        self._digests.create(name, (name, page))

    def names(self) -> list[str]:
        """Names of all stored pages, whether a record names them or not."""
        found = self._store.list(f"{layout.TIER_PAGES_PREFIX}/{self._log_name}")
        return [name for name in found if layout.is_log_page(name)]

    def remove(self, name: str) -> None:
        """Remove, for ever, a page that no record can name any more."""
        self._store.delete(layout.tier_page_key(self._log_name, name))

    def named_by(self, tier: Tier) -> set[str]:
        """Names of all pages that a tier needs; reads its pages of segments."""
        found = {segment.digests for segment in self.every_segment(tier)}
        older = tier.older
        while older:
            found.add(older)
            older = self.segments(older).older
        return found

    def segments(self, name: str) -> SegmentsPage:
        memory = environment.the_one(SegmentsMemory)
        known = memory.get((*self._place, name))
        if known is None:
            seen = self._segments.get(name)
            if seen is None:
                raise self._missing(name)
            known = seen.value[1]
            memory.note((*self._place, name), known)
        return known

    def digests(self, name: str) -> DigestsPage:
        seen = self._digests.get(name)
        if seen is None:
            raise self._missing(name)
        return seen.value[1]

    def every_segment(self, tier: Tier) -> Iterator[TierSegment]:
        """Yield all segments, newest first; read each page when it is needed."""
        yield from reversed(tier.segments)
        older = tier.older
        while older:
            page = self.segments(older)
            yield from reversed(page.segments)
            older = page.older

    def _missing(self, name: str) -> CorruptDataError:
        return CorruptDataError(
            f"page {name} of the tier of log {self._log_name!r} is missing",
            hint="bring the metadata store back as it was",
        )


# --- log records ---------------------------------------------------------------------------------


NamedPage: TypeAlias = tuple[LogPage, PageContents]

BYTES_MAX = bounds.LOG_RECORD_BYTES_MAX

_BRING_BACK = "bring the metadata store back as it was"


class PageMemory(RememberedPages[NamedPage]):
    """The pages of the logs' lists.

    Attributes:
        page_length: of the pages made by this process.
    """

    def __init__(self, page_length: int = PAGE_LENGTH) -> None:
        super().__init__()
        self.page_length = page_length


class LogPages:
    """The pages of one log: a ``PageSource``.

    A page that the log has dropped may be collected while a reader holds an old record that names
    the page. The newest record tells a dropped page from a lost page.
    """

    def __init__(self, store: MetadataStore, cluster_id: str, log_name: str) -> None:
        self._log_name = log_name
        self._store = store
        self._cluster_id = cluster_id
        self._place = (store.uri, cluster_id, log_name)
        self._records: Records[NamedPage] = Records(
            store,
            cluster_id,
            lambda name: layout.log_page_key(log_name, name),
            lambda made, _nonce: log_page.encode(log_name, made[0].name, made[1]),
            lambda name, data: _named(name, log_page.decode(log_name, name, data)),
        )

    def contents(self, page: LogPage) -> PageContents:
        known = self._known(page)
        if known is not None:
            return known
        if self._has_let_go_of(page):
            raise NoSuchEntryError(
                f"log {self._log_name!r} has dropped offsets {page.first_offset} to "
                f"{page.end_offset - 1} since this process read its record, and they were "
                "collected",
                hint="read the log's record again",
            )
        raise CorruptDataError(
            f"page {page.name} of log {self._log_name!r} is missing, with the places of "
            f"{page.ledger_count} ledgers",
            hint=_BRING_BACK,
        )

    def names(self) -> list[str]:
        """Names of all stored pages, whether a record names them or not."""
        found = self._store.list(f"{layout.LOG_PAGES_PREFIX}/{self._log_name}")
        return [name for name in found if layout.is_log_page(name)]

    def found(self, name: str) -> PageContents | None:
        """The contents of a page by its name alone; None if the page is certainly absent.

        Raises:
            CorruptDataError: the page is damaged.
        """
        seen = self._records.get(name)
        return None if seen is None else seen.value[1]

    def remove(self, name: str) -> None:
        """Remove, for ever, a page that no record can name any more."""
        self._store.delete(layout.log_page_key(self._log_name, name))

    def make(self, made: NamedPage) -> None:
        """Store a new page, durably.

        Raises:
            LedgerExistsError: another page has this name.
            OutcomeUnknownError: the page is stored or not; no record names it.
        """
        self._records.create(made[0].name, made)
        environment.the_one(PageMemory).note((*self._place, made[0].name), made)

    def _known(self, page: LogPage) -> PageContents | None:
        memory, key = environment.the_one(PageMemory), (*self._place, page.name)
        known = memory.get(key)
        if known is None:
            seen = self._records.get(page.name)
            if seen is None:
                return None
            known = seen.value
            memory.note(key, known)
        if known[0] != page:
            raise CorruptDataError(
                f"page {page.name} of log {self._log_name!r} does not hold what its record says",
                hint=_BRING_BACK,
            )
        return known[1]

    def _has_let_go_of(self, page: LogPage) -> bool:
        """Whether the log's newest record certainly does not name a missing page."""
        seen = LogRecords(self._store, self._cluster_id).get(self._log_name)
        if seen is None:
            return False
        record = seen.value
        now = replace(record, listed=replace(record.listed, source=_PagesAtHand(self._known)))
        try:
            return page.name not in {one.name for one in now.every_page()}
        except CorruptDataError:
            return False


@dataclass(frozen=True)
class _PagesAtHand:
    """A ``PageSource`` whose missing pages raise a short error."""

    known: Callable[[LogPage], PageContents | None]

    def contents(self, page: LogPage) -> PageContents:
        found = self.known(page)
        if found is None:
            raise CorruptDataError(f"page {page.name} is missing")
        return found


def _named(name: str, contents: PageContents) -> NamedPage:
    return contents.named(name), contents


def _decoded(store: MetadataStore, cluster_id: str, name: str, data: bytes) -> LogRecord:
    return log_record.decode(name, data, LogPages(store, cluster_id, name))


def _shortened(record: LogRecord, new_name: Callable[[], str]) -> Paged:
    return paged(record, new_name, environment.the_one(PageMemory).page_length)


def with_source(store: MetadataStore, cluster_id: str, record: LogRecord) -> LogRecord:
    pages = LogPages(store, cluster_id, record.name)
    return replace(record, listed=replace(record.listed, source=pages))


class LogRecords(Records[LogRecord]):
    """Records of logs by name; a read record can fetch its pages, a stored record is short."""

    def __init__(self, store: MetadataStore, cluster_id: str) -> None:
        # No method of its own: a store that is dropped goes with its last user (``timed_store``).
        decode = partial(_decoded, store, cluster_id)
        super().__init__(store, cluster_id, layout.log_key, log_record.encode, decode)

    def pages(self, name: str) -> LogPages:
        """The pages of a log, by name."""
        return LogPages(self._store, self._cluster_id, name)

    def tier_pages(self, name: str) -> TierPages:
        """The pages of a log's tier, by the log's name."""
        return TierPages(self._store, self._cluster_id, name)

    def page_maker(self, log: LogRecord) -> Callable[[PageContents], LogPage]:
        """Return a function that stores a page of ``log`` durably, before a record can name the
        page.
        """
        pages = LogPages(self._store, self._cluster_id, log.name)

        def make(contents: PageContents) -> LogPage:
            made = _named(layout.log_page_name(log.generation, environment.token()), contents)
            pages.make(made)
            return made[0]

        return make

    def require_room(self, seen: Versioned[LogRecord], schema: bytes) -> None:
        """Check that the log's record has room for ``schema``, before a writer sends rows.

        Raises:
            InvalidRequestError: the part of the record outside pages has grown too large.
        """
        data = seen.stored.value
        if len(data) + len(schema) > BYTES_MAX:  # perhaps of a version without pages
            short = _shortened(seen.value, lambda: layout.log_page_name(0, "0" * 32))
            data = log_record.encode(short.record, "")
        if len(data) + len(schema) > BYTES_MAX:
            raise InvalidRequestError(
                f"the record of log {seen.value.name!r} would have "
                f"{len(data) + len(schema):,} bytes, and at most {BYTES_MAX:,} are safe in "
                "every metadata store",
                hint="the record holds the columns, and the names of applications (txnAppId) "
                "and streaming queries that wrote to the log: use a new log, with fewer "
                "of them",
            )

    def update(
        self,
        name: str,
        transform: Callable[[LogRecord | None], LogRecord],
        *,
        seen: Versioned[LogRecord] | None = None,
    ) -> Versioned[LogRecord]:
        """As of ``Records``; warn if the log has left rows behind in a table."""
        read: list[LogRecord | None] = []

        def change(record: LogRecord | None) -> LogRecord:
            read[:] = [record]
            return transform(record)

        after = super().update(name, change, seen=seen)
        _tell_of_table(read[0], after.value)
        return after

    def replace(
        self, name: str, value: LogRecord, seen: Versioned[LogRecord]
    ) -> Versioned[LogRecord]:
        """As of ``Records``; warn if the log has left rows behind in a table."""
        after = super().replace(name, value, seen)
        _tell_of_table(seen.value, value)
        return after

    def _put(self, name: str, value: LogRecord, expected: int | None) -> Versioned[LogRecord]:
        short = _shortened(
            with_source(self._store, self._cluster_id, value),
            lambda: layout.log_page_name(value.generation, environment.token()),
        )
        pages = LogPages(self._store, self._cluster_id, name)
        for made in short.pages:
            pages.make(made)
        for page_name, segments in short.segments:
            self.tier_pages(name).make_segments(page_name, segments)
        return super()._put(name, short.record, expected)


def _tell_of_table(before: LogRecord | None, after: LogRecord) -> None:
    """Say where the table is of a log that was deleted or overwritten: it stays."""
    if before is None or before.tier is None:
        return
    if after.is_tombstone or after.generation != before.generation:
        tell(
            logger,
            "the table of log %r at %s stays, with the rows that were copied to it: remove its "
            "folder if they are not needed; no other log can have it",
            *(before.name, shown_url(before.tier.table_url)),
            level=WARNING,
        )
