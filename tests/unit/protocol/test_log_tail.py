"""The open end of a log: its tail, runs of streaming queries, truncation, the seal."""

import pickle
from dataclasses import replace

import pytest

from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerExistsError,
    LedgerFencedError,
    NoSuchLedgerError,
    OutcomeUnknownError,
)
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerSettings, LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import DroppedLedgers, LogSettings
from bkspark.protocol.log.ledger_list import LoggedLedger
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.stream_run import QUERIES_MAX, RUNS_MAX, StreamRun, app_id, with_run
from tests.log_with import log_with

from .test_log import EMPTY, FIRST, LOG, SECOND, ledger, splice

OPEN = LedgerState.OPEN
OPENED = log_with(LOG, tail=(4,))
ROLLING = log_with(LOG, tail=(4, 5))
SEALED = replace(LOG, is_sealed=True)


# --- what is valid ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"tail": (4, 5, 6)},
        {"tail": (4, 4)},
        {"tail": (1,)},
        {"tail": (3,)},
        {"tail": (4,), "is_sealed": True},
        {"tail": (4,), "is_tombstone": True},
        {"retention_bytes": -1},
        {"retention_ms": -1},
    ],
)
def test_an_impossible_tail_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        log_with(LOG, **changes)


def test_the_tail_begins_at_the_end_of_the_closed_ledgers() -> None:
    assert (ROLLING.end_offset, ROLLING.length_bytes) == (15, 150)
    assert ROLLING.listed_ids == (1, 2, 4, 5)
    assert pickle.loads(pickle.dumps(ROLLING)) == ROLLING


# --- opening and rolling ---------------------------------------------------------------------


def test_a_ledger_is_listed_before_it_is_written_to() -> None:
    assert LOG.with_tail(ledger(4, state=OPEN)) == OPENED
    assert LOG.with_tail(ledger(4, state=OPEN), schema=b"new").schema == b"new"


def test_listing_twice_is_listing_once() -> None:
    assert OPENED.with_tail(ledger(4, state=OPEN)) is OPENED
    assert ROLLING.with_tail(ledger(5, state=OPEN), own=4) is ROLLING


def test_the_own_writer_rolls() -> None:
    assert OPENED.with_tail(ledger(5, state=OPEN), own=4) == ROLLING


@pytest.mark.parametrize(
    ("log", "own"),
    [(OPENED, None), (ROLLING, None), (OPENED, 7), (ROLLING, 4), (ROLLING, 5), (LOG, 4)],
)
def test_nobody_goes_behind_a_tail_that_is_not_theirs(log: LogRecord, own: int | None) -> None:
    """RB-20b: the list has changed, so somebody else has opened the log."""
    with pytest.raises(LedgerFencedError, match="opened by another writer"):
        log.with_tail(ledger(6, state=OPEN), own=own)


@pytest.mark.parametrize("state", [LedgerState.CLOSED, LedgerState.IN_RECOVERY])
def test_a_ledger_that_was_taken_over_is_not_listed_as_open(state: LedgerState) -> None:
    metadata = ledger(4) if state is LedgerState.CLOSED else ledger(4, state=OPEN)
    with pytest.raises(LedgerFencedError, match=f"ledger 4 is {state.value}"):
        LOG.with_tail(replace(metadata, state=state))


def test_a_dropped_ledger_is_never_listed() -> None:
    with pytest.raises(OutcomeUnknownError, match="ledger 3 was dropped"):
        LOG.with_tail(ledger(3, state=OPEN))


def test_a_ledger_of_another_digest_type_is_not_listed() -> None:
    with pytest.raises(InvalidRequestError, match="digestType"):
        LOG.with_tail(replace(ledger(4, state=OPEN), settings=LedgerSettings()))


# --- settling --------------------------------------------------------------------------------


def test_closed_ledgers_of_the_tail_get_their_places() -> None:
    after = ROLLING.with_closed(ledger(4), ledger(5, 2))
    places = (LoggedLedger(4, 15, 4, 40), LoggedLedger(5, 19, 2, 20))
    assert after == log_with(LOG, ledgers=(FIRST, SECOND, *places))


def test_the_second_may_stay_open() -> None:
    after = ROLLING.with_closed(ledger(4))
    assert (after.tail, after.end_offset) == ((5,), 19)


def test_ledgers_that_are_settled_already_are_left_alone() -> None:
    once = ROLLING.with_closed(ledger(4))
    assert once.with_closed(ledger(4)) == once
    assert LOG.with_closed() is LOG


def test_an_empty_ledger_takes_no_place() -> None:
    """RB-21."""
    after = ROLLING.with_closed(ledger(4, 0), ledger(5, 2))
    assert after.ledgers == (FIRST, SECOND, LoggedLedger(5, 15, 2, 20))
    assert (after.dropped.ids, after.dropped.to_delete) == ((3, 4), (4,))


def test_a_ledger_without_an_end_is_not_settled() -> None:
    with pytest.raises(InvalidRequestError, match="only a CLOSED"):
        ROLLING.with_closed(ledger(4, state=OPEN))


def test_nothing_is_settled_behind_a_ledger_without_an_end() -> None:
    with pytest.raises(InvalidRequestError, match="ledger 4 is not closed yet"):
        ROLLING.with_closed(ledger(5))


def test_settling_merges_transactions_and_never_goes_back() -> None:
    metadata = replace(ledger(4), transactions={"app": 6, "stream/q": 3})
    assert OPENED.with_closed(metadata).transactions == {"app": 7, "stream/q": 3}
    newer = replace(ledger(4, 0), transactions={"app": 9})
    assert OPENED.with_closed(newer).transactions == {"app": 9}


@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_is_spliced_behind_an_open_tail(overwrite: bool) -> None:
    with pytest.raises(InvalidRequestError, match="not closed"):
        splice(OPENED, ledger(6), overwrite=overwrite)


def test_a_listed_ledger_is_not_dropped_by_an_abort() -> None:
    assert OPENED.without(4) is OPENED


def test_a_deleted_log_drops_its_tail_too() -> None:
    after = log_with(ROLLING, streams={"q": ("r",)}, retention_ms=5).vacated()
    assert (after.tail, after.dropped.ids, after.committed.streams) == ((), (3, 1, 2, 4, 5), {})
    assert after.retention.milliseconds is None
    assert after.committed.orphaned_queries == ("q",)
    assert not SEALED.vacated().is_sealed


# --- runs of streaming queries -----------------------------------------------------------------


def test_the_newest_run_of_a_query_takes_over() -> None:
    once = OPENED.with_stream(StreamRun("q", "r1"))
    assert once.with_stream(StreamRun("q", "r1")) is once
    twice = once.with_stream(StreamRun("other", "r9")).with_stream(StreamRun("q", "r2"))
    assert twice.committed.streams == {"q": ("r1", "r2"), "other": ("r9",)}
    with pytest.raises(LedgerFencedError, match="a newer run of query q") as caught:
        twice.with_stream(StreamRun("q", "r1"))
    assert caught.value.hint.endswith("if the newer run has ended too, start the query again")


def test_a_deleted_log_remembers_whose_rows_it_had() -> None:
    marks = {app_id("forgotten"): 4, app_id("q"): 2, "batches": 9}
    after = log_with(LOG, transactions=marks, streams={"q": ("r",), "open": ("r",)}).vacated()
    assert after.committed.orphaned_queries == ("forgotten", "q", "open")
    anew = after.created(LogSettings(Quorum(3, 3, 2)), b"new")
    for query_id in after.committed.orphaned_queries:
        with pytest.raises(NoSuchLedgerError, match="new checkpoint"):
            anew.with_stream(StreamRun(query_id, "r2"))
    later = anew.with_stream(StreamRun("fresh", "r"))
    assert later.vacated().committed.orphaned_queries == ("forgotten", "q", "open", "fresh")


def test_the_runs_of_a_query_are_bounded() -> None:
    streams = {}
    for number in range(RUNS_MAX + 1):
        streams = dict(with_run(streams, StreamRun("q", f"r{number}")))
    assert streams["q"] == tuple(f"r{number}" for number in range(1, RUNS_MAX + 1))


def test_the_queries_are_bounded_and_who_began_a_run_last_stays() -> None:
    streams = {}
    for number in range(QUERIES_MAX):
        streams = dict(with_run(streams, StreamRun(f"q{number}", "r")))
    assert len(streams) == QUERIES_MAX
    streams = dict(with_run(streams, StreamRun("q0", "again")))
    streams = dict(with_run(streams, StreamRun("other", "r")))
    assert list(streams) == [*(f"q{n}" for n in range(2, QUERIES_MAX)), "q0", "other"]
    assert streams["q0"] == ("r", "again")


# --- truncation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "ledgers", "dropped"),
    [
        (1, (FIRST, SECOND), ()),
        (9, (FIRST, SECOND), ()),
        (10, (SECOND,), (1,)),
        (14, (SECOND,), (1,)),
        (15, (SECOND,), (1,)),
    ],
)
def test_whole_ledgers_go_and_the_rest_is_hidden(
    before: int, ledgers: tuple[LoggedLedger, ...], dropped: tuple[int, ...]
) -> None:
    after = LOG.truncated(before)
    assert after == log_with(
        LOG,
        ledgers=ledgers,
        first_offset=before,
        dropped=DroppedLedgers((3, *dropped), dropped),
        first_version=len(dropped),
        truncated_ms=0,
    )
    assert after.stamped(77).stamped(78).times.truncated_ms == 77
    assert (after.end_offset, LOG.first_offset) == (15, 0)


def test_what_truncation_hides_is_to_be_deleted_until_it_is() -> None:
    hidden = log_with(LOG, tail=(4,)).truncated(10).truncated(15)
    assert (hidden.dropped.ids, hidden.dropped.to_delete) == ((3, 1, 2), (1, 2))
    done = hidden.forgetting([1, 3])
    assert (done.dropped.ids, done.dropped.to_delete) == ((2,), (2,))


def test_what_a_deleted_log_had_is_to_be_deleted_also_under_its_next_owner() -> None:
    again = ROLLING.vacated().created(LogSettings(Quorum(1, 1, 1)), b"new")
    assert again.dropped.to_delete == again.dropped.ids == (3, 1, 2, 4, 5)


def test_what_an_overwrite_or_an_abort_drops_is_not_deleted_by_itself() -> None:
    assert splice(LOG, ledger(4), 8, overwrite=True).dropped.to_delete == ()
    assert LOG.without(4).dropped.to_delete == ()


def test_truncation_gives_nothing_back() -> None:
    after = LOG.truncated(12)
    assert after.truncated(12) is after
    assert after.truncated(3) is after
    assert LOG.truncated(0) is LOG


def test_offsets_go_on_behind_a_log_that_was_truncated_whole() -> None:
    emptied = OPENED.truncated(15)
    assert (emptied.ledgers, emptied.first_offset, emptied.end_offset) == ((), 15, 15)
    assert emptied.with_closed(ledger(4)).ledgers == (LoggedLedger(4, 15, 4, 40),)


@pytest.mark.parametrize(("log", "hint"), [(LOG, ""), (OPENED, "roll the log first")])
def test_truncation_never_goes_past_the_closed_ledgers(log: LogRecord, hint: str) -> None:
    with pytest.raises(InvalidRequestError, match="up to offset 15") as caught:
        log.truncated(16)
    assert hint in caught.value.hint


def test_a_truncated_ledger_does_not_come_back() -> None:
    with pytest.raises(OutcomeUnknownError):
        splice(LOG.truncated(10), ledger(1))


def test_deleted_ledgers_are_forgotten() -> None:
    assert LOG.truncated(10).forgetting([1, 9]).dropped.ids == (3,)


# --- creating and sealing ------------------------------------------------------------------------


def test_an_empty_log_is_created_once() -> None:
    quorum, digest = Quorum(5, 3, 2), DigestSpec("MAC", "09", "08")
    vacant = replace(LogRecord.tombstone("events", Quorum(1, 1, 1)), dropped=DroppedLedgers((3,)))
    created = vacant.created(LogSettings(quorum, digest), b"s")
    assert (created.quorum, created.digest, created.schema) == (quorum, digest, b"s")
    assert (created.is_tombstone, created.generation, created.dropped.ids) == (False, 1, (3,))
    with pytest.raises(LedgerExistsError, match="there is a log 'events'"):
        created.created(LogSettings(quorum, digest), b"s")


def test_a_sealed_log_takes_nothing_any_more() -> None:
    assert LOG.sealed() == SEALED
    for join in (
        lambda: splice(SEALED, ledger(4)),
        lambda: splice(SEALED, ledger(4), overwrite=True),
        lambda: SEALED.with_tail(ledger(4, state=OPEN)),
    ):
        with pytest.raises(LedgerClosedError, match="sealed"):
            join()


def test_a_log_with_an_open_tail_is_not_sealed() -> None:
    with pytest.raises(InvalidRequestError):
        OPENED.sealed()


def test_a_sealed_log_still_knows_what_was_committed_and_can_be_truncated() -> None:
    assert splice(SEALED, ledger(4), 7) == replace(SEALED, dropped=DroppedLedgers((3, 4)))
    assert SEALED.truncated(10).is_sealed
    assert EMPTY.sealed().end_offset == 0


# --- a log that begins inside of its tail ----------------------------------------------------

UNBOUNDED = replace(OPENED, settings=replace(LOG.settings, is_unbounded=True))


def test_what_is_confirmed_of_a_tail_that_goes_on_can_be_hidden() -> None:
    end = UNBOUNDED.end_offset
    after = UNBOUNDED.truncated(end + 3, end + 5)
    assert (after.first_offset, after.end_offset, after.dropped.of_tail) == (end + 3, end, 3)
    assert (after.ledgers, after.tail) == ((), UNBOUNDED.tail)
    assert after.dropped.to_delete == (1, 2)
    further = after.truncated(end + 5, end + 5)
    assert (further.first_offset, further.end_offset, further.dropped.of_tail) == (end + 5, end, 5)
    assert further.truncated(end + 1, end + 9) is further
    with pytest.raises(InvalidRequestError, match=f"up to offset {end + 5}, not {end + 6}"):
        further.truncated(end + 6, end + 5)
    assert UNBOUNDED.truncated(end, end + 5).dropped.of_tail == 0
    assert UNBOUNDED.truncated(end - 1, end + 5).dropped.of_tail == 0


def test_its_tail_is_closed_at_its_own_offsets() -> None:
    end = UNBOUNDED.end_offset
    log = UNBOUNDED.truncated(end + 3, end + 5).forgetting([1])
    assert log.dropped.of_tail == 3
    closed = log.with_closed(ledger(4, 10))
    [place] = closed.ledgers
    assert (place.first_offset, closed.end_offset) == (end, end + 10)
    assert (closed.first_offset, closed.dropped.of_tail) == (end + 3, 0)


def test_an_overwrite_or_a_deletion_forgets_that_it_began_there() -> None:
    end = UNBOUNDED.end_offset
    log = UNBOUNDED.truncated(end + 3, end + 5)
    assert log.vacated().dropped.of_tail == log._emptied().dropped.of_tail == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"dropped": DroppedLedgers(of_tail=1)},
        {"dropped": DroppedLedgers(of_tail=-1)},
        {"ledgers": (), "first_offset": 9, "dropped": DroppedLedgers(of_tail=10)},
        {"ledgers": (), "first_offset": 9, "dropped": DroppedLedgers(of_tail=-1)},
        {
            "ledgers": (),
            "first_offset": 9,
            "dropped": DroppedLedgers(of_tail=1),
            "settings": LOG.settings,
        },
    ],
)
def test_a_beginning_that_cannot_be_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        log_with(UNBOUNDED, **changes)
