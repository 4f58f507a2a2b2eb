"""Ledgers that were made for a log and never joined it: of killed drivers, or of living ones.

Nothing tells the two apart but the log's record. Whoever comes first there has his way, and the
other is told.
"""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from bkspark import environment, verbs
from bkspark.admin.collecting import collection
from bkspark.admin.collecting.freeing import GarbageKind
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import BookKeeperError, NoSuchLedgerError, OutcomeUnknownError
from bkspark.format import layout
from bkspark.log.batch.commit import commit
from bkspark.log.batch.target import BatchTarget
from bkspark.log.rolling import RollPolicy
from bkspark.log.streams import appending
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.log_scenes import NAME, SILENT, fill, values
from tests.integration.rig import Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows
from tests.kit.faulty import Crash, Fault, Moment, Operation, crash_at, no_fault
from tests.thorough import always

from .garbage import files_of, gone, ids_in_metadata, raw_ledger

PARTITIONS = partitions_of(3, 5)
OTHERS = partitions_of(4, first=50)
STEP = 7
FIRSTS = always((0,), range(STEP))
LONG_STEP = 29
LONG_FIRSTS = always((0,), (0, 11, 20))


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


def collected(rig: Rig) -> Report:
    report = verbs.collect(rig.uri, abandoned_after=0, no_lease=True)
    assert report.left == []
    return report


def before(rig: Rig, number: int, reports: list[Report]) -> Callable[..., Fault | None]:
    """A whole collection, without grace, right before the operation of this number."""

    def decide(now: int, _operation: Operation) -> Fault | None:
        if now == number:
            rig.faults.decide = no_fault
            reports.append(collected(rig))
        return None

    return decide


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collections are begun a second after what is there was made."""
    now_ms = environment.now_ms
    later = SimpleNamespace(now_ms=lambda: now_ms() + 1000)
    monkeypatch.setattr(collection, "environment", later)


# --- killed drivers -------------------------------------------------------------------------------


def test_what_a_killed_driver_has_left_is_freed_after_the_grace_and_not_before(rig: Rig) -> None:
    rig.write(PARTITIONS)
    target = rig.target()
    rig.tasks(target, OTHERS)
    assert verbs.collect(rig.uri).plan["ledgers"] == 0
    assert verbs.collect(rig.uri, abandoned_after=3600).plan["ledgers"] == 0
    report = collected(rig)
    assert (report.plan[GarbageKind.UNNAMED.value], report.done["ledgers"]) == (1, 1)
    assert files_of(rig, target.ledger_id) == []
    assert gone(rig) == {target.ledger_id}
    record = rig.log()
    assert record is not None
    assert not record.has_any_dropped
    assert rig.rows() == flat(PARTITIONS)


WEEK_MS = 7 * 86_400_000


def made_by_a_clock(rig: Rig, off_ms: int, monkeypatch: pytest.MonkeyPatch) -> BatchTarget:
    """The ledger of a write whose driver has a clock that is wrong by so much."""
    now_ms = environment.now_ms
    with monkeypatch.context() as wrong:
        wrong.setattr(environment, "now_ms", lambda: now_ms() + off_ms)
        return rig.target()


def test_a_commit_says_that_its_write_was_taken_for_abandoned(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock is all that tells when the only ledger was made."""
    target = made_by_a_clock(rig, -WEEK_MS - 1000, monkeypatch)
    reports = rig.tasks(target, OTHERS)
    assert verbs.collect(rig.uri).done["ledgers"] == 1
    with pytest.raises(NoSuchLedgerError) as refused:
        commit(target, reports)
    for said in (f"ledger {target.ledger_id} of this write to log", "--abandoned-after", "clock"):
        assert said in str(refused.value)


def micro_batch(rig: Rig) -> Callable[[], object]:
    driver = Driver(rig)
    planned = driver.planned(0)
    return lambda: driver.commit(planned)


def append(rig: Rig) -> Callable[[], object]:
    target, staging = appending.prepare(rig.request(is_unbounded=True))
    reports = rig.tasks(target, OTHERS)
    return lambda: appending.commit(target, staging, reports)


@pytest.mark.parametrize("kind", [micro_batch, append], ids=["stream", "append"])
def test_a_commit_into_a_tail_says_so_too(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, kind: Callable[[Rig], Callable[[], object]]
) -> None:
    """At once, and nothing of it is in the log; the same write with new tasks is."""
    now = environment.now_ms()
    with monkeypatch.context() as behind:
        behind.setattr(environment, "now_ms", lambda: now - WEEK_MS - 1000)
        commit_it = kind(rig)
    assert verbs.collect(rig.uri).done["ledgers"] == 1
    with pytest.raises(NoSuchLedgerError) as refused:
        commit_it()
    for said in ("ledger 0 of this write to log", "--abandoned-after", "clock"):
        assert said in str(refused.value)
    assert settled_rows(rig) == []
    kind(rig)()
    assert len(settled_rows(rig)) in (4, 10)


def test_a_clock_that_is_behind_abandons_nothing_where_others_are_right(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger with a smaller id was made before."""
    rig.write(PARTITIONS)
    target = made_by_a_clock(rig, -WEEK_MS - 1000, monkeypatch)
    reports = rig.tasks(target, OTHERS)
    assert verbs.collect(rig.uri).done["ledgers"] == 0
    commit(target, reports)
    assert rig.rows() == [*flat(PARTITIONS), *flat(OTHERS)]


def test_a_clock_that_is_ahead_keeps_nothing_else(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_by_a_clock(rig, 2 * WEEK_MS, monkeypatch)
    old = made_by_a_clock(rig, -WEEK_MS - 1000, monkeypatch)
    assert verbs.collect(rig.uri).done["ledgers"] == 1
    assert gone(rig) == {old.ledger_id}


def test_a_users_own_ledger_is_never_one_that_a_log_does_not_name(rig: Rig) -> None:
    ids = [raw_ledger(rig, is_closed=False), raw_ledger(rig)]
    assert collected(rig).plan["ledgers"] == 0
    assert ids_in_metadata(rig) == ids


@pytest.mark.parametrize("first", FIRSTS)
def test_a_driver_killed_at_any_operation_has_committed_or_leaves_nothing(
    make_rig: Callable[..., Rig], first: int
) -> None:
    number, outcomes, is_over = first, set(), False
    while not is_over:
        rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
        rig.write(PARTITIONS)
        with rig.faults.installed():
            rig.faults.decide = crash_at(number, Moment.AFTER)
            try:
                rig.write(OTHERS)
                is_over = True
            except (Crash, BookKeeperError):
                pass
        rows = rig.rows()
        collected(rig)
        assert rig.rows() == rows
        outcomes.add(len(rows))
        record = rig.log()
        assert record is not None
        assert ids_in_metadata(rig) == list(record.listed_ids)
        number += STEP
    assert outcomes == {8, 12}


# --- living ones ----------------------------------------------------------------------------------


def test_a_commit_behind_the_collection_is_refused_and_nothing_of_it_is_there(rig: Rig) -> None:
    rig.write(PARTITIONS)
    target = rig.target()
    reports = rig.tasks(target, OTHERS)
    collected(rig)
    with pytest.raises((NoSuchLedgerError, OutcomeUnknownError)):
        commit(target, reports)
    assert rig.rows() == flat(PARTITIONS)
    assert collected(rig).left == []


@pytest.mark.parametrize("first", FIRSTS)
def test_a_commit_with_a_collection_at_any_operation_is_whole_or_refused(
    make_rig: Callable[..., Rig], first: int
) -> None:
    number, outcomes, is_over = first, set(), False
    while not is_over:
        rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
        rig.write(PARTITIONS)
        ran: list[Report] = []
        with rig.faults.installed():
            rig.faults.decide = before(rig, number, ran)
            try:
                rig.write(OTHERS)
                expected = flat(PARTITIONS) + flat(OTHERS)
            except BookKeeperError:
                expected = flat(PARTITIONS)
        is_over = not ran
        assert rig.rows() == expected
        outcomes.add(len(expected))
        collected(rig)
        assert rig.rows() == expected
        number += STEP
    assert outcomes == {8, 12}


def test_who_joins_the_log_in_time_stays(rig: Rig) -> None:
    """Between the plan and what is done by it; and right before the log would drop it."""
    rig.write(PARTITIONS)
    target = rig.target()
    reports = rig.tasks(target, OTHERS)
    key = layout.log_key(rig.log_name)

    def decide(_number: int, operation: Operation) -> None:
        if (operation.call, operation.name) == ("put", key):
            rig.faults.decide = no_fault
            commit(target, reports)

    with rig.faults.installed():
        rig.faults.decide = decide
        report = collected(rig)
    assert (report.plan["unnamed"], report.done["ledgers"]) == (1, 0)
    assert rig.rows() == flat(PARTITIONS) + flat(OTHERS)
    assert rig.ledger(target.ledger_id).state is LedgerState.CLOSED


def test_its_log_drops_it_before_it_is_deleted(rig: Rig) -> None:
    target = rig.target()
    with rig.faults.installed():
        collected(rig)
    changes = [op.name for op in rig.faults.trace if op.call == "put"]
    assert changes[:2] == [layout.log_key(rig.log_name), layout.ledger_key(target.ledger_id)]


def test_a_roll_does_not_list_a_ledger_that_was_collected(rig: Rig) -> None:
    """Nor does it try that one again: the ledger before goes on, and the next roll makes another.

    The log is changed, so that the roll has to read it anew, and has forgotten what it dropped.
    """
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME)
        writer = log.writer(settings=SILENT)
        writer.append(b"one")

        def decide(_number: int, operation: Operation) -> None:
            if (operation.call, operation.name) == ("put", layout.log_key(NAME)):
                rig.faults.decide = no_fault
                collected(rig)

        rig.faults.decide = decide
        with pytest.raises((NoSuchLedgerError, OutcomeUnknownError)):
            writer.roll()
        writer.append(b"two")
        writer.roll()
        writer.append(b"three")
        writer.close()
        assert values(log) == [b"one", b"two", b"three"]
        assert log.record.ledger_count == 2


@pytest.mark.parametrize("first", LONG_FIRSTS)
def test_a_log_that_is_opened_rolled_and_written_to_beside_it_loses_nothing(
    make_rig: Callable[..., Rig], first: int
) -> None:
    """What was acknowledged is there; a writer that is refused can open the log again."""
    number, is_over = first, False
    while not is_over:
        rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
        ran: list[Report] = []
        acknowledged: list[bytes] = []
        with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
            log = keeper.create_log(NAME)
            rig.faults.forget()
            rig.faults.decide = before(rig, number, ran)
            try:
                with log.writer(settings=SILENT) as writer:
                    for value in (b"one", b"two", b"three"):
                        writer.append(value)
                        acknowledged.append(value)
                        writer.roll()
            except BookKeeperError:
                assert ran
            is_over = not ran
            log.writer(settings=SILENT).close()
            assert values(log)[: len(acknowledged)] == acknowledged
            end = log.end_offset
            assert fill(log, 1) == values(log, end)
        number += LONG_STEP


@pytest.mark.parametrize("first", LONG_FIRSTS)
def test_a_stream_with_a_collection_at_any_operation_has_each_batch_once(
    make_rig: Callable[..., Rig], first: int
) -> None:
    """A batch that is refused, for want of its ledger, is run again by a new run of the query."""
    number, is_over = first, False
    while not is_over:
        rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
        ran: list[Report] = []
        with rig.faults.installed():
            driver = Driver(rig, limits=RollPolicy(max_records=2))
            rig.faults.decide = before(rig, number, ran)
            done = 0  # Spark notes each batch, and begins again with the first that it has not
            try:
                for done in range(3):
                    driver.run(done)
            except BookKeeperError:
                assert ran
                Driver(rig).run(*range(done, 3))
        is_over = not ran
        assert settled_rows(rig) == expected(0, 1, 2)
        collected(rig)
        assert settled_rows(rig) == expected(0, 1, 2)
        number += LONG_STEP
    assert number > 60
