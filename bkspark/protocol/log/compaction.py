"""Compaction: merges small ledgers of a log into a large ledger.

Rule 1. A run consists of closed ledgers that are neighbours in the log. One larger ledger takes
their places by one compare-and-set, only if exactly these ledgers still are there without others
between them. So if a concurrent truncation, overwrite or compaction came first, the new ledger
never joins; if it comes later, it finds the run already replaced.

Rule 2. The new ledger has as many entries as the run, and its entry ``n`` is the entry of offset
``first_offset + n``. So every offset keeps its entry.

Rule 3. The replaced ledgers are dropped for ever, and not noted for deletion: running reads may
finish. A collection frees the ledgers after a time for such readers.

Rule 4. The new place is as old as the youngest ledger of the run, so retention by age deletes no
entry too early. If a ledger's time is unknown, so is the new time. The payload is the sum over the
run, so retention by size counts the same bytes. The first and the last entry keep the times of
their commits, and the ledger's record says which entries were committed by which time. Versions
stay: the place stands for all ledgers that joined there.

Rule 5. A run lies between two borders of the log's tier: ledgers leave the list for the table up to
such a border.

Rule 6. A place on a page is replaced on a new page, and all pages above are made anew, one per
level. A page that is replaced completely goes, unless the run ends there. So the record gets no
longer.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from bkspark.errors import InvalidRequestError, MetadataVersionError, OutcomeUnknownError
from bkspark.protocol.bounds import TARGET_BYTES
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import (
    INVALID_ENTRY_ID,
    STEPS_MAX,
    CommitTimes,
    LedgerMetadata,
    LedgerState,
    TimeStep,
)
from bkspark.protocol.log import ledger_list
from bkspark.protocol.log.ledger_list import (
    LOST_ENTRIES,
    LoggedLedger,
    LogPage,
    PageContents,
    PageSource,
    Stretch,
)
from bkspark.protocol.log.record import LogRecord

RUN_LENGTH_MAX = STEPS_MAX
"""Ledgers of a run; bounds, with the target, the work lost if the compare-and-set fails."""

MakePage: TypeAlias = Callable[[PageContents], LogPage]
"""Makes a page durable, under a unique name ("paging", rule 2)."""


@dataclass(frozen=True, slots=True)
class MergeRange:
    """Neighbouring ledgers to merge: those with the offsets ``[begin, end)``."""

    begin: int
    end: int
    ledger_count: int
    length_bytes: int


def runs_of(log: LogRecord, target_bytes: int = TARGET_BYTES) -> Iterator[MergeRange]:
    """Yield runs of the ledgers at most half as large as ``target_bytes``, in order.

    A merged run is larger than half the target, unless the run held all small ledgers between
    larger ledgers. So a compacted log has no runs, except among ledgers added later. The ledger at
    the beginning of a truncated log stays. Reads the log's pages in sequence.
    """
    begun: list[LoggedLedger] = []
    length = 0
    borders = log.tier.borders if log.tier is not None else frozenset[int]()
    for place in log.ledgers_in(log.first_offset, log.end_offset):
        is_small = place.length_bytes * 2 <= target_bytes and place.first_offset >= log.first_offset
        is_small = is_small and place.entry_count < LOST_ENTRIES
        has_room = length + place.length_bytes <= target_bytes and len(begun) < RUN_LENGTH_MAX
        has_room = has_room and place.first_offset not in borders
        if not (is_small and has_room):
            yield from _run(begun)
            begun, length = [], 0
        if is_small:
            begun.append(place)
            length += place.length_bytes
    yield from _run(begun)


def _run(places: Sequence[LoggedLedger]) -> Iterator[MergeRange]:
    """Yield the run of ``places``; a single ledger makes no run."""
    if len(places) > 1:
        length = sum(place.length_bytes for place in places)
        yield MergeRange(places[0].first_offset, places[-1].end_offset, len(places), length)


def compacted(
    log: LogRecord, run: Sequence[LoggedLedger], ledger: LedgerMetadata, make_page: MakePage
) -> LogRecord:
    """Return ``log`` with ``ledger`` in the places of ``run``, whose ledgers are dropped.

    If the log has the ledger already, the log stays unchanged.

    Args:
        run: places as read from the log, at least one.
        ledger: has the entries of the run, in order; read after this version of the log.

    Raises:
        MetadataVersionError: the log no longer has exactly these ledgers in sequence (rule 1).
        OutcomeUnknownError: the ledger was dropped.
        InvalidRequestError: the ledger is not CLOSED, has other settings than the log, or another
            number of entries (rule 2).
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
            hint="this part was not compacted; run the command again",
        )
    if log.tier is not None and log.tier.crosses(begin, end):
        raise MetadataVersionError(
            f"log {log.name!r} was offloaded from offset {begin} to {end - 1} meanwhile",
            hint="this part was not compacted; run the command again",
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
            f"ledger {ledger.ledger_id} is {ledger.state.value}, and only a CLOSED ledger can "
            f"replace others in log {log.name}"
        )
    of_ledger = (sizes.wanted(ledger), ledger.settings.digest.digest_type)
    if of_ledger != (log.quorum, log.digest.digest_type):
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id} has other settings than log {log.name}"
        )
    last = INVALID_ENTRY_ID if ledger.last_entry_id is None else ledger.last_entry_id
    if last + 1 != entry_count:
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id} has {last + 1} entries, but the ledgers that it is to "
            f"replace in log {log.name} have {entry_count}"
        )


def times_of(run: Sequence[LoggedLedger]) -> CommitTimes:
    """Return when the first and the last entry of ``run`` were committed."""
    return CommitTimes(run[0].first_ms, max(place.last_ms for place in run))


def time_steps_of(run: Sequence[LoggedLedger]) -> tuple[TimeStep, ...]:
    """Return a step for each ledger of ``run`` with later entries than the ledger before it.

    A ledger's step has the time of the ledger's last entry.
    """
    found: list[TimeStep] = []
    for place in run:
        if not found or place.last_ms > found[-1].ms:
            found.append(TimeStep(place.first_offset - run[0].first_offset, place.last_ms))
    return tuple(found) if len(found) > 1 else ()


def _place_of(run: Sequence[LoggedLedger], ledger: LedgerMetadata) -> LoggedLedger:
    """Return the place of ``ledger`` (rule 4)."""
    closed, times = [place.closed_ms for place in run], times_of(run)
    return LoggedLedger(
        ledger.ledger_id,
        run[0].first_offset,
        sum(place.entry_count for place in run),
        sum(place.length_bytes for place in run),
        max(closed) if all(closed) else 0,
        ledger_list.versions_of(run) - 1,
        *(times.first_ms, times.last_ms),
    )


def _with_place(
    stretches: Iterable[Stretch], place: LoggedLedger, make_page: MakePage, source: PageSource
) -> tuple[Stretch, ...]:
    """Return ``stretches`` with ``place`` instead of the ledgers with its offsets (rule 6).

    The place takes the position of the last replaced ledger, so the log's end stays where it was.
    """
    begin, end = place.first_offset, place.end_offset
    found: list[Stretch] = []
    for one in stretches:
        if one.end_offset <= begin or end <= one.first_offset:
            found.append(one)
        elif not isinstance(one, LogPage):
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
    ledgers = tuple(one for one in parts if not isinstance(one, LogPage))
    return PageContents(ledgers=ledgers, pages=ledger_list.pages_of(parts))


def _within(
    stretches: Iterable[Stretch], begin: int, end: int, source: PageSource
) -> Iterator[Stretch]:
    """Yield the stretches of ``[begin, end)``; open pages that also have other ledgers."""
    for one in stretches:
        if one.end_offset <= begin or end <= one.first_offset:
            continue
        if isinstance(one, LogPage) and (one.first_offset < begin or end < one.end_offset):
            yield from _within(source.contents(one).stretches, begin, end, source)
        else:
            yield one
