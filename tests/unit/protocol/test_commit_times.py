"""When entries were committed: times never go back, and no decision depends on them."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkspark.ledger.handles.how_far import MemberAnswers, _Look
from bkspark.ledger.journals.journal_pages import JournalEnd
from bkspark.ledger.journals.member_journals import MemberEnd
from bkspark.log.reading.offset_by_time import first_entry_since
from bkspark.protocol.bounds import NUMBER_MAX
from bkspark.protocol.ledger.metadata import (
    FIRST,
    STEPS_MAX,
    CommitTimes,
    ConfirmedEnd,
    LedgerMetadata,
    TimeStep,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, Made
from bkspark.protocol.log import compaction
from bkspark.protocol.log.compaction import compacted, time_steps_of
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.ledger_list import (
    NO_PAGES,
    LoggedLedger,
    LogPage,
    PageContents,
    first_since,
    pages_of,
)
from bkspark.protocol.log.record import LogRecord, with_lost
from bkspark.protocol.recovery.steps import Close
from bkspark.protocol.writer.adding import PendingAdds
from bkspark.protocol.writer.steps import (
    Acknowledge,
    Append,
    Checked,
    CheckMetadata,
    Instruction,
    Stored,
    Submitted,
)
from bkspark.protocol.writer.writing import LedgerWriter
from tests.log_with import log_with
from tests.protocol.script import ledger_of, member
from tests.unit.protocol.test_paging import EMPTY, Shelf

CLOCKS = st.lists(st.integers(-5, 30), min_size=1, max_size=12)
ALONE = Quorum(1, 1, 1)


@pytest.mark.parametrize(
    ("told", "kept"),
    [(7, 7), (0, 0), (-1, 0), (NUMBER_MAX, NUMBER_MAX), (NUMBER_MAX + 1, NUMBER_MAX)],
)
def test_a_clock_out_of_bounds_counts_as_the_bound(told: int, kept: int) -> None:
    assert CommitTimes.at(told) == CommitTimes(kept, kept)


def pushed(pending: PendingAdds, clocks: Sequence[int]) -> list[CommitTimes]:
    return [pending.push(2, times=CommitTimes.at(clock)).times for clock in clocks]


def test_a_clock_that_is_set_back_does_not_set_back_the_ledger() -> None:
    told = pushed(PendingAdds(ALONE), [50, 70, 20, 69, 71])
    assert [one.last_ms for one in told] == [50, 70, 70, 70, 71]
    assert {one.first_ms for one in told} == {50}


@given(CLOCKS, st.integers(0, 30), st.booleans())
def test_times_never_go_back_whatever_clocks_tell(
    clocks: list[int], before: int, is_first: bool
) -> None:
    last = -1 if is_first else 9
    pending = PendingAdds(ALONE, last_add_confirmed=last, times=CommitTimes(before, before))
    told = pushed(pending, clocks)
    times = [before, *(one.last_ms for one in told)]
    assert times == sorted(times)
    first_ms = max(before, *clocks[:1]) if is_first else before
    assert {one.first_ms for one in told} == {first_ms}


def test_only_what_is_acknowledged_has_the_ledger_s_times() -> None:
    """A confirmation and the closed ledger repeat them."""
    pending = PendingAdds(ALONE)
    pushed(pending, [50, 70])
    assert pending.times == CommitTimes()
    next(iter(pending)).counted.add(0)
    ticket = pending.ticket()
    assert ticket is not None
    pending.acknowledge(ticket)
    assert pending.times == CommitTimes(50, 50)
    assert pending.push(1, times=CommitTimes.at(60)).times == CommitTimes(50, 70), "one is pending"


def run(writer: LedgerWriter, clocks: Sequence[int]) -> list[Instruction]:
    """What a writer with one bookie does for one entry at each of ``clocks``."""
    done: list[Instruction] = []
    for number, clock in enumerate(clocks):
        done += writer.receive(Submitted(1, 10, times=CommitTimes.at(clock)))
        done += writer.receive(Stored(0, "a", number, number))
        check = done[-1]
        assert isinstance(check, CheckMetadata)
        done += writer.receive(Checked(check.ticket))
    return done


def without_times(steps: Sequence[Instruction]) -> list[Instruction]:
    def blank(step: Instruction) -> Instruction:
        match step:
            case Append():
                return replace(step, add=replace(step.add, times=CommitTimes()))
            case Acknowledge():
                return Acknowledge(tuple(replace(add, times=CommitTimes()) for add in step.adds))
        return step

    return [blank(step) for step in steps]


@given(CLOCKS)
def test_no_step_of_a_writer_depends_on_a_time(clocks: list[int]) -> None:
    ledger = ledger_of(ALONE, ["a"])
    one, other = LedgerWriter(ledger), LedgerWriter(ledger)
    assert without_times(run(one, clocks)) == without_times(run(other, [0] * len(clocks)))
    assert deepcopy(one).state == other.state


def test_a_closed_ledger_has_the_times_of_its_first_and_its_last_entry() -> None:
    ledger = ledger_of(ALONE, ["a"])
    writer = LedgerWriter(ledger)
    run(writer, [50, 40, 60])
    writer.receive(Submitted(1, 10, times=CommitTimes.at(99)))  # without an ack
    assert writer.closed(ledger).times == CommitTimes(50, 60)


@pytest.mark.parametrize("has_last", [True, False])
def test_a_recovery_takes_them_from_the_last_record(has_last: bool) -> None:
    ledger = ledger_of(ALONE, ["a"]).in_recovery("b" * 32)
    times = CommitTimes(50, 60)
    last = AddRecord(
        *(ledger.ledger_id, 1, ledger.token, 3, 4, 2, 50, ALONE, (-1,)), made=Made(0, times)
    )
    close = Close(ledger.term, ledger.token, 4, last if has_last else None)
    assert close.applied_to(ledger).times == (times if has_last else CommitTimes())


def test_who_begins_a_ledger_is_not_before_the_log() -> None:
    assert FIRST.not_before(40).times == CommitTimes(40, 40)
    assert ConfirmedEnd(3, times=CommitTimes(50, 60)).not_before(40).times == CommitTimes(50, 60)
    assert ConfirmedEnd(3, times=CommitTimes(30, 60)).not_before(40).times == CommitTimes(40, 60)


# --- the log's list ------------------------------------------------------------------------------

LOG = LogRecord("log", LogSettings(Quorum(3, 3, 2)), schema=b"")


def closed(ledger_id: int, first_ms: int, last_ms: int) -> LedgerMetadata:
    ledger = replace(ledger_of(LOG.quorum, ["a", "b", "c"]), ledger_id=ledger_id)
    times = CommitTimes(first_ms, last_ms)
    told = {"term": ledger.term, "token": ledger.token}
    return ledger.closed(last_entry_id=3, length_bytes=40, times=times, **told)


def joined(log: LogRecord, *ledgers: LedgerMetadata) -> LogRecord:
    for ledger in ledgers:
        log = log.with_ledger(ledger, schema=b"", transaction=None)
    return log


def times_of(log: LogRecord) -> list[tuple[int, int]]:
    return [(place.first_ms, place.last_ms) for place in log.ledgers]


def test_a_place_has_the_times_of_its_ledger() -> None:
    log = joined(LOG, closed(1, 50, 60), closed(2, 60, 80))
    assert (times_of(log), log.last_ms) == ([(50, 60), (60, 80)], 80)
    assert LOG.last_ms == 0


def test_the_list_never_goes_back_though_a_ledger_s_writer_did_not_know_the_one_before() -> None:
    log = joined(LOG, closed(1, 50, 60), closed(2, 20, 30), closed(3, 20, 90), closed(4, 0, 0))
    assert times_of(log) == [(50, 60), (60, 60), (60, 90), (90, 90)]
    rolled = log_with(log, tail=(5,)).with_closed(closed(5, 10, 95))
    assert times_of(rolled)[-1] == (90, 95)


def test_a_ledger_that_is_lost_stands_where_the_log_was() -> None:
    log = with_lost(log_with(joined(LOG, closed(1, 50, 60)), tail=(2,)), 2)
    assert times_of(log) == [(50, 60), (60, 60)]


def test_a_compacted_ledger_keeps_the_times_of_what_it_replaces() -> None:
    log = joined(LOG, closed(1, 5, 6), closed(2, 50, 60), closed(3, 70, 80), closed(4, 90, 95))
    merged = replace(closed(9, 500, 500), last_entry_id=7)
    after = compacted(log, log.ledgers[1:3], merged, _no_page)
    assert times_of(after) == [(5, 6), (50, 80), (90, 95)]


@pytest.mark.parametrize(
    ("times", "steps"),
    [
        ([(5, 6), (7, 7), (7, 9)], [(0, 6), (4, 7), (8, 9)]),
        ([(5, 6), (6, 6), (7, 7)], [(0, 6), (8, 7)]),
        ([(5, 6), (6, 6)], []),
        ([(5, 5)], []),
    ],
)
def test_each_ledger_with_later_entries_makes_a_step(
    times: list[tuple[int, int]], steps: list[tuple[int, int]]
) -> None:
    run = [LoggedLedger(n, 100 + 4 * n, 4, 1, 0, 0, *one) for n, one in enumerate(times)]
    assert [(step.first_entry_id, step.ms) for step in time_steps_of(run)] == steps
    assert compaction.times_of(run) == CommitTimes(times[0][0], times[-1][1])
    assert not steps or steps[-1][1] == compaction.times_of(run).last_ms


@pytest.mark.parametrize(("ms", "first"), [(0, 4), (10, 4), (11, 6), (20, 6), (21, 8)])
def test_the_first_entry_of_a_record_since_then(ms: int, first: int) -> None:
    plain = AddRecord(7, 1, "a" * 32, 4, 7, 3, 9, ALONE, (-1,), made=Made(0, CommitTimes(1, 20)))
    steps = (TimeStep(4, 10), TimeStep(6, 20))
    record = replace(plain, made=Made(0, CommitTimes(1, 20), steps))
    assert record.first_entry_since(ms) == first
    assert plain.first_entry_since(ms) == (8 if ms > 20 else 4)


def test_a_compaction_writes_no_more_steps_than_are_read() -> None:
    assert compaction.RUN_LENGTH_MAX <= STEPS_MAX


def _no_page(_contents: PageContents) -> LogPage:
    raise AssertionError("there are no pages")


def test_a_page_has_the_times_of_its_first_and_its_last_ledger() -> None:
    places = tuple(LoggedLedger(n, n, 1, 1, 0, 0, 10 * n, 10 * n + 5) for n in range(1, 4))
    low = PageContents(ledgers=places).named("low")
    assert (low.first_ms, low.last_ms) == (10, 35)
    next_one = replace(low, name="next", first_offset=4, first_ms=40, last_ms=60)
    high = PageContents(pages=(low, next_one)).named("high")
    assert (high.first_ms, high.last_ms) == (10, 60)
    assert (PageContents(ids=(1, 2)).named("ids").last_ms) == 0


# --- an open ledger ------------------------------------------------------------------------------


@pytest.mark.parametrize("has_more", [True, False])
def test_a_record_says_nothing_of_entries_after_those_that_it_confirms(has_more: bool) -> None:
    """The last fragment shows that they are confirmed; the record may be older than they are."""
    one = ledger_of(ALONE, ["a"])
    ensemble = one.last_fragment.ensemble
    ledger = one.with_ensemble(2, (member("b"),), term=one.term, token=one.token)
    ledger = ledger if has_more else one
    times = CommitTimes(50, 50)
    record = AddRecord(7, 1, one.token, 1, 1, 0, 9, ALONE, (-1,), made=Made(0, times))
    look = _Look(ledger, {})
    names = ledger.last_fragment.ensemble if has_more else ensemble
    look.take(MemberAnswers({names[0]: MemberEnd({"journal": JournalEnd(record, 10)})}, {}))
    found = look.readable()
    assert found.last_entry_id == (1 if has_more else 0)
    assert found.times == (CommitTimes() if has_more else times)


# --- the search ----------------------------------------------------------------------------------


def stretches_of(times: Sequence[tuple[int, int]]) -> tuple[LoggedLedger, ...]:
    return tuple(LoggedLedger(n, n, 1, 1, 0, 0, *one) for n, one in enumerate(times))


@pytest.mark.parametrize(
    ("ms", "found"),
    [(0, 0), (10, 0), (11, 0), (20, 0), (21, 2), (30, 2), (31, 3), (99, 4), (100, -1)],
)
def test_the_first_ledger_with_an_entry_since_then(ms: int, found: int) -> None:
    places = stretches_of([(10, 20), (20, 20), (30, 30), (30, 40), (99, 99)])
    place = first_since(places, ms, NO_PAGES)
    assert (-1 if place is None else place.ledger_id) == found


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(0, 41), st.integers(1, 3))
def test_a_ledger_is_found_below_pages_as_in_one_list(
    ends: list[int], ms: int, length: int
) -> None:
    places = stretches_of([(end, end) for end in sorted(ends)])
    shelf = Shelf()
    shelf.length = length
    short = shelf.short(log_with(EMPTY, ledgers=places))
    height = max((page.height for page in pages_of(short.older)), default=0)
    shelf.looks = 0
    assert first_since(short.stretches, ms, shelf) == first_since(places, ms, NO_PAGES)
    assert shelf.looks <= height, "one page a level"


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=20), st.integers(0, 10))
def test_the_first_entry_since_then_is_found_by_halving(
    groups: list[tuple[int, int]], ms: int
) -> None:
    records, first, now = list[AddRecord](), 0, 0
    for size, later in groups:
        now += later
        made = Made(0, CommitTimes(0, now))
        last = first + size - 1
        records.append(AddRecord(7, 1, "a" * 32, first, last, -1, 9, ALONE, (-1,), made=made))
        first = last + 1
    asked: list[int] = []

    def record_of(entry_id: int) -> AddRecord:
        asked.append(entry_id)
        return next(one for one in records if entry_id <= one.last_entry_id)

    wanted = next((one.first_entry_id for one in records if one.times.last_ms >= ms), first)
    assert first_entry_since(ms, 0, first, record_of) == wanted
    assert len(asked) <= first.bit_length() + 1
    assert first_entry_since(0, first // 2, first, record_of) == first // 2, "not before its begin"
