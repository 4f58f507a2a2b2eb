"""Small ledgers of a log become one large one: which, and how the log's record says so.

Rule 1. A run is of closed ledgers that are neighbours in the log. One larger ledger takes their
places by one compare-and-set, and only if exactly these still are there, with nothing between them:
so whoever truncates, overwrites or compacts the same meanwhile has either come first, and the new
ledger never joins, or finds it done.

Rule 2. The new ledger has as many entries as they had, and its entry ``n`` is the entry of offset
``first_offset + n``. So offsets, and what is at each, stay as they are.

Rule 3. The ledgers that are replaced are dropped for ever, and not noted to be deleted: whoever set
out to read them goes on. A collection frees them when such readers had their time.

Rule 4. The new place is as old as the youngest in it: retention by age lets nothing go too early.
If that is not known of one, it is not known. Its payload is what theirs was, so retention by size
counts what it counted. Versions stay: the place stands for all ledgers that have joined there.

Rule 5. A place on a page is replaced on a new page: those that name it are made anew too, one each
level. Pages of which everything is replaced, but for the last, go. So the record gets no longer.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from bkspark.errors import InvalidRequestError, MetadataVersionError, OutcomeUnknownError
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, LedgerState
from bkspark.protocol.log import ledger_list
from bkspark.protocol.log.ledger_list import (
    LoggedLedger,
    Page,
    PageContents,
    PageSource,
    Stretch,
)
from bkspark.protocol.log.record import LogRecord

TARGET_BYTES = 64 * 2**20
"""Payload of a ledger that is large enough."""

RUN_LENGTH_MAX = 1024
"""Of ledgers: what is written in vain, if the compare-and-set is lost, is bounded by number too."""

MakePage: TypeAlias = Callable[[PageContents], Page]
"""Makes a page durable, under a name that no page has ("paging", rule 2)."""


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbours that are to become one ledger: those with the offsets ``[begin, end)``."""

    begin: int
    end: int
    ledger_count: int
    length_bytes: int


def runs_of(log: LogRecord, target_bytes: int = TARGET_BYTES) -> Iterator[Run]:
    """Runs of the ledgers that are at most half as large as ``target_bytes``, in order.

    What comes of a run is more than half, unless it was all that there is between larger ones: so
    a log that was compacted has no runs left, but for what was added since. The ledger in which a
    truncated log begins is left alone. Reads the log's pages one after the other.
    """
    begun: list[LoggedLedger] = []
    length = 0
    for place in log.ledgers_in(log.first_offset, log.end_offset):
        is_small = place.length_bytes * 2 <= target_bytes and place.first_offset >= log.first_offset
        has_room = length + place.length_bytes <= target_bytes and len(begun) < RUN_LENGTH_MAX
        if not (is_small and has_room):
            yield from _run(begun)
            begun, length = [], 0
        if is_small:
            begun.append(place)
            length += place.length_bytes
    yield from _run(begun)


def _run(places: Sequence[LoggedLedger]) -> Iterator[Run]:
    """One ledger alone is none."""
    if len(places) > 1:
        length = sum(place.length_bytes for place in places)
        yield Run(places[0].first_offset, places[-1].end_offset, len(places), length)


def compacted(
    log: LogRecord, run: Sequence[LoggedLedger], ledger: LedgerMetadata, make_page: MakePage
) -> LogRecord:
    """Return ``log`` with ``ledger`` in the places of those of ``run``, which are dropped.

    Does nothing to a log that has the ledger already.

    Args:
        run: places as they were read from the log, one or more.
        ledger: with their entries, in their order; read after this version of the log was.

    Raises:
        MetadataVersionError: the log does not have exactly these in a row any more (rule 1).
        OutcomeUnknownError: the ledger was dropped.
        InvalidRequestError: it is not CLOSED, has other settings than the log, or another number
            of entries (rule 2).
    """
    if log.lists(ledger.ledger_id):
        return log
    if log.has_dropped(ledger.ledger_id):
        raise OutcomeUnknownError(f"ledger {ledger.ledger_id} was dropped from log {log.name}")
    begin, end = run[0].first_offset, run[-1].end_offset
    if tuple(log.ledgers_in(begin, end)) != tuple(run):
        raise MetadataVersionError(
            f"log {log.name!r} was truncated, overwritten or compacted from offset {begin} to "
            f"{end - 1} meanwhile",
            hint="nothing was done there; run it again for what is there now",
        )
    _require_same(log, ledger, end - begin)
    place = _place_of(run, ledger)
    stretches = _with_place(log.stretches, place, make_page, log.source)
    gone = tuple(_within(log.stretches, begin, end, log.source))
    return replace(
        log,
        listed=log.listed.with_stretches(stretches),
        dropped=log.dropped.with_more(ledger_list.ids_of(gone), ledger_list.pages_of(gone)),
    )


def _require_same(log: LogRecord, ledger: LedgerMetadata, entry_count: int) -> None:
    if ledger.state is not LedgerState.CLOSED:
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id} is {ledger.state.value}, and only a CLOSED one can take "
            f"the place of others in log {log.name}"
        )
    of_ledger = (sizes.wanted(ledger), ledger.settings.digest.digest_type)
    if of_ledger != (log.quorum, log.digest.digest_type):
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id} has other settings than log {log.name}"
        )
    last = INVALID_ENTRY_ID if ledger.last_entry_id is None else ledger.last_entry_id
    if last + 1 != entry_count:
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id} has {last + 1} entries, and those that it is to replace "
            f"in log {log.name} have {entry_count}"
        )


def _place_of(run: Sequence[LoggedLedger], ledger: LedgerMetadata) -> LoggedLedger:
    """Rule 4."""
    times = [place.closed_ms for place in run]
    return LoggedLedger(
        ledger.ledger_id,
        run[0].first_offset,
        sum(place.entry_count for place in run),
        sum(place.length_bytes for place in run),
        max(times) if all(times) else 0,
        ledger_list.versions_of(run) - 1,
    )


def _with_place(
    stretches: Iterable[Stretch], place: LoggedLedger, make_page: MakePage, source: PageSource
) -> tuple[Stretch, ...]:
    """``stretches`` with ``place`` instead of the ledgers that have its offsets (rule 5).

    It stands where the last of them stood, so that what had the end of the log still has it.
    """
    begin, end = place.first_offset, place.end_offset
    found: list[Stretch] = []
    for one in stretches:
        if one.end_offset <= begin or end <= one.first_offset:
            found.append(one)
        elif not isinstance(one, Page):
            if one.end_offset == end:
                found.append(place)
        elif one.first_offset < begin or end <= one.end_offset:
            found.append(
                make_page(_page_with_place(source.contents(one), place, make_page, source))
            )
    return tuple(found)


def _page_with_place(
    contents: PageContents, place: LoggedLedger, make_page: MakePage, source: PageSource
) -> PageContents:
    parts = _with_place(contents.stretches, place, make_page, source)
    ledgers = tuple(one for one in parts if not isinstance(one, Page))
    return PageContents(ledgers=ledgers, pages=ledger_list.pages_of(parts))


def _within(
    stretches: Iterable[Stretch], begin: int, end: int, source: PageSource
) -> Iterator[Stretch]:
    """The ledgers that have ``[begin, end)``, on pages where these have no others."""
    for one in stretches:
        if one.end_offset <= begin or end <= one.first_offset:
            continue
        if isinstance(one, Page) and (one.first_offset < begin or end < one.end_offset):
            yield from _within(source.contents(one).stretches, begin, end, source)
        else:
            yield one
