"""One commit process goes on in the tail of the one before, whoever comes between."""

from collections.abc import Iterator

import pytest

from bkspark import environment
from bkspark.bookie import memory
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.environment import RealEnvironment
from bkspark.errors import (
    InvalidTermError,
    LedgerFencedError,
    NoSuchLedgerError,
    UnauthorizedError,
)
from bkspark.format import arrow_schema, layout
from bkspark.ledger.deleting import delete_log
from bkspark.ledger.recovery.recover import recover
from bkspark.log.rolling import RollPolicy
from bkspark.log.streams.commit import TailWriterCache, abort
from bkspark.log.streams.micro_batch import StreamPart
from bkspark.log.tail import LogTail, RowsToWrite
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.log.stream_run import StreamRun
from tests.integration.rig import SCHEMA, Rig
from tests.integration.stream_driver import (
    QUERY,
    Driver,
    expected,
    settled_rows,
    tail_of,
    the_log,
    without_later_writers,
)
from tests.integration.waiting import wait_until
from tests.kit.faulty import Operation, no_fault
from tests.thorough import always

ROWS = RowsToWrite(arrow_schema.encode(SCHEMA))


@pytest.fixture
def rig(memory_rig: Rig) -> Rig:
    return memory_rig


class Clock(RealEnvironment):
    """The wall clock and the monotonic one, which go only when they are told to."""

    ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    def forward(self, minutes: int) -> None:
        self.ms += minutes * 60_000


@pytest.fixture
def clock() -> Iterator[Clock]:
    with environment.use(clock := Clock()):
        yield clock


def rested(driver: Driver) -> Driver:
    """The same run in a new process; the one before has let go of its tail, as it was idle."""
    driver.held.rest()
    return driver.with_new_process()


def all_files(rig: Rig) -> dict[str, dict[str, bytes]]:
    """What the bookies hold, all of them in memory."""
    disks = {url: memory.find_disk(url) for url in rig.urls.values()}
    return {
        url: {name: bytes(file.data) for name, file in disk.files.items()}
        for url, disk in disks.items()
        if disk is not None
    }


def ledger_count(rig: Rig) -> int:
    with Cluster(rig.uri) as cluster:
        return len(cluster.ledger_ids())


# --- as many ledgers as rolling makes ------------------------------------------------------------


def test_batches_far_apart_share_a_ledger(rig: Rig) -> None:
    driver = Driver(rig)
    for batch_id in range(12):
        assert rested(driver).run(batch_id) == [True]
    assert (ledger_count(rig), len(the_log(rig).listed_ids)) == (1, 1)
    tail = tail_of(rig)
    assert (tail.term, len(tail.fragments), tail.state) == (12, 12, LedgerState.OPEN)
    assert settled_rows(rig) == expected(*range(12))


@pytest.mark.parametrize(
    ("minutes", "ledgers"),
    always([(50, 2)], [(2, 5), (20, 4), (50, 2), (90, 2)], are_rows=True),
)
def test_ledgers_are_as_many_as_hours_whatever_the_trigger_interval(
    rig: Rig, clock: Clock, minutes: int, ledgers: int
) -> None:
    """Five hours with a batch every so many minutes, each committed by a process of its own."""
    driver, batch_count = Driver(rig), 5 * 60 // minutes
    for batch_id in range(batch_count):
        rested(driver).run(batch_id)
        clock.forward(minutes)
    assert settled_rows(rig) == expected(*range(batch_count))
    assert ledger_count(rig) == ledgers
    assert not the_log(rig).dropped.ids


def test_a_ledger_has_any_number_of_writers(rig: Rig) -> None:
    driver = Driver(rig, limits=RollPolicy(max_seconds=1e9))
    for batch_id in range(40):
        driver.with_new_process().run(batch_id)
    assert (ledger_count(rig), tail_of(rig).term) == (1, 40)
    assert settled_rows(rig) == expected(*range(40))


def test_a_ledger_is_full_however_many_processes_filled_it(rig: Rig) -> None:
    three = sum(r.length_bytes for n in range(3) for r in Driver(rig).planned(n).reports)
    driver = Driver(rig, limits=RollPolicy(max_bytes=three))
    for batch_id in range(7):
        rested(driver).run(batch_id)
    assert [ledger.entry_count for ledger in the_log(rig).ledgers] == [30, 30]
    assert settled_rows(rig) == expected(*range(7))


def test_batches_without_rows_leave_no_ledgers(rig: Rig) -> None:
    """Neither the first ones, nor those behind a roll, whatever process commits them."""
    driver = Driver(rig, limits=RollPolicy(max_records=1))
    for batch_id in range(24):
        rows = None if batch_id % 8 == 7 else [[], []]
        assert rested(driver).commit(driver.planned(batch_id, rows)) == (rows is None)
    assert (ledger_count(rig), len(the_log(rig).dropped.ids)) == (3, 0)
    assert settled_rows(rig) == expected(7, 15, 23)


def test_a_process_rests_by_itself_and_goes_on_by_itself(rig: Rig) -> None:
    driver = Driver(rig)
    driver.held = TailWriterCache(rest_after_seconds=0.01)
    driver.run(0)
    wait_until(lambda: not driver.held._tails)
    assert driver.run(1) == [True]
    assert (ledger_count(rig), tail_of(rig).term) == (1, 2)
    driver.held.rest()


def test_a_run_that_follows_another_in_one_process_goes_on_in_its_tail(rig: Rig) -> None:
    """As when a query is started for what is available now, again and again."""
    older, newer = Driver(rig), Driver(rig)
    newer.held = older.held
    assert older.run(0) == newer.run(1) == [True]
    assert ledger_count(rig) == 1
    with pytest.raises(LedgerFencedError, match="newer run"):
        older.run(2)
    assert settled_rows(rig) == expected(0, 1)


def test_a_batch_is_known_to_be_there_after_each_hand_over(rig: Rig) -> None:
    driver = Driver(rig)
    for batch_id in range(3):
        assert rested(driver).run(batch_id) == [True]
        assert rested(driver).run(batch_id) == [False]
    assert settled_rows(rig) == expected(0, 1, 2)


def test_what_a_stream_opens_is_gone_on_with(rig: Rig) -> None:
    """Its batch was planned for a tail that somebody has closed, so nothing can be adopted."""
    driver = Driver(rig)
    driver.run(0)
    late = driver.planned(1)
    settled_rows(rig)
    assert driver.with_new_process().commit(late)
    assert driver.with_new_process().run(2) == [True]
    assert (ledger_count(rig), tail_of(rig).term) == (2, 2)
    assert settled_rows(rig) == expected(0, 1, 2)


def test_queries_that_take_turns_share_a_ledger(rig: Rig) -> None:
    one, other = Driver(rig), Driver(rig, query_id="other")
    for batch_id in range(3):
        assert one.run(2 * batch_id) == other.run(2 * batch_id + 1) == [True]
    assert (ledger_count(rig), tail_of(rig).term) == (1, 6)
    assert settled_rows(rig) == expected(*range(6))
    assert the_log(rig).transactions == {f"stream/{QUERY}": 4, "stream/other": 5}


def test_who_comes_too_late_to_give_the_log_its_ledger_goes_on_in_its_tail(rig: Rig) -> None:
    """Somebody has dropped the batch's own one meanwhile, so its rows are written once more."""
    first, late = Driver(rig), Driver(rig, query_id="other")
    batch = late.planned(1)
    first.run(0)
    abort(late.request, [StreamPart(batch.run, 1, batch.staging, r) for r in batch.reports])
    assert late.commit(batch)
    assert tail_of(rig).term == 2
    assert settled_rows(rig) == expected(0, 1)
    assert len(the_log(rig).ledgers) == 1


# --- who dies, and who comes between -------------------------------------------------------------


def test_a_process_that_is_killed_before_it_rests_is_gone_on_behind(rig: Rig) -> None:
    driver = Driver(rig)
    rested(driver).run(0)
    driver.with_new_process().run(1)
    assert driver.with_new_process().run(1, 2) == [False, True]
    assert ledger_count(rig) == 1
    assert settled_rows(rig) == expected(0, 1, 2)


def test_batches_go_into_a_tail_whose_recoverer_was_killed(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    with Cluster(rig.uri) as cluster:
        ledger_id = str(tail_of(rig).ledger_id)
        cluster.ledgers.update(ledger_id, lambda ledger: ledger and ledger.in_recovery("f" * 32))
    assert driver.with_new_process().run(1) == [True]
    assert (ledger_count(rig), tail_of(rig).term) == (1, 3)
    assert settled_rows(rig) == expected(0, 1)


def test_who_was_overtaken_is_never_acknowledged_again(rig: Rig) -> None:
    """A commit that hung, in the process that rested, or its journal's late end."""
    driver = Driver(rig)
    driver.run(0)
    (late,) = driver.held._tails.values()
    batch = driver.planned(1)
    for channel in late._writer._channels.values():
        channel.cleanup.pop_all()  # it keeps its journals open
    driver.held.rest()
    assert driver.with_new_process().commit(batch)
    with pytest.raises(InvalidTermError, match="term 2"):
        late.commit(batch)
    with pytest.raises(LedgerFencedError):
        late.close_ledger("it is full")
    assert driver.run(2) == [True]
    assert settled_rows(rig) == expected(0, 1, 2)


def test_a_bookie_that_is_away_is_no_reason_to_wait(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    driver.held.rest()
    with rig.faults.installed():
        rig.faults.down = {tail_of(rig).last_fragment.ensemble[0].bookie_id}
        assert driver.with_new_process().run(1) == [True]
    rig.faults.forget()
    assert settled_rows(rig) == expected(0, 1)


# --- what others see -----------------------------------------------------------------------------


def test_a_ledger_in_which_others_went_on_is_closed_for_good_by_a_recovery(rig: Rig) -> None:
    driver = Driver(rig)
    rested(driver).run(0)
    rested(driver).run(1)
    driver.held.rest()
    ledger_id = tail_of(rig).ledger_id
    with Cluster(rig.uri) as cluster:
        assert recover(cluster, ledger_id, rig.request().password).last_entry_id == 19
        closed = cluster.ledger(ledger_id).value
    assert closed.state is LedgerState.CLOSED
    assert closed.transactions == {"stream/query-1": 1}
    assert settled_rows(rig) == expected(0, 1)


def test_a_tail_that_no_later_writer_continues_is_closed_where_it_stood(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    without_later_writers(rig)
    old, batch = tail_of(rig).ledger_id, driver.planned(1)
    assert batch.staging.ledger_id == old
    assert driver.with_new_process().commit(batch)
    assert rig.ledger(old).last_entry_id == 9
    assert (tail_of(rig).goes_on, ledger_count(rig)) == (True, 2)
    assert driver.with_new_process().run(1) == [False]
    assert settled_rows(rig) == expected(0, 1)


def test_a_ledger_without_an_entry_of_its_last_writer_is_closed_where_it_stood(rig: Rig) -> None:
    """Its last fragment has no entry, and its writer dies."""
    driver = Driver(rig)
    driver.run(0)
    driver.held.rest()
    batch = driver.planned(1)
    with Cluster(rig.uri) as cluster:
        name, password, home = rig.log_name, rig.request().password, batch.staging.ledger_id
        found = LogTail(cluster, name, password, ROWS, run=batch.run).continue_ledger()
        assert found is not None
        assert found.standing.last_entry_id == 9
        assert recover(cluster, home, password).last_entry_id == 9
    assert settled_rows(rig) == expected(0)
    assert driver.with_new_process().commit(batch)
    assert settled_rows(rig) == expected(0, 1)


def test_a_log_that_is_made_anew_while_its_tail_is_taken_over(rig: Rig) -> None:
    """The list has it no more, and its metadata is not deleted yet."""
    driver = Driver(rig)
    driver.run(0)
    driver.held.rest()
    batch = driver.planned(1)
    home = batch.staging.ledger_id

    def vacate(_number: int, operation: Operation) -> None:
        if (operation.call, operation.name) == ("put", layout.ledger_key(home)):
            rig.faults.decide = no_fault
            with Cluster(rig.uri) as cluster:
                seen = cluster.log(rig.log_name)
                log = seen.value
                anew = log.vacated().created(log.settings, log.schema)
                cluster.logs.replace(rig.log_name, anew, seen)

    rig.faults.decide = vacate
    with rig.faults.installed(), Cluster(rig.uri) as cluster:
        name, password = rig.log_name, rig.request().password
        with pytest.raises(NoSuchLedgerError, match="start the query with a new checkpoint"):
            LogTail(cluster, name, password, ROWS, run=batch.run).continue_ledger()
    assert rig.ledger(home).term == 2
    with pytest.raises(NoSuchLedgerError, match="start the query with a new checkpoint"):
        driver.with_new_process().commit(batch)
    assert settled_rows(rig) == []


def test_nobody_goes_on_in_the_tail_of_a_log_that_was_deleted(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    driver.held.rest()
    batch = driver.planned(1)
    with Cluster(rig.uri) as cluster:
        delete_log(cluster, rig.log_name)
        with pytest.raises(NoSuchLedgerError):
            LogTail(
                cluster, rig.log_name, rig.request().password, ROWS, run=batch.run
            ).continue_ledger()


@pytest.mark.parametrize("password", [Password(), Password(literal="wrong")])
def test_a_wrong_password_takes_nothing_over(rig: Rig, password: Password) -> None:
    driver = Driver(rig, options={"digest_type": "MAC", "password": Password(literal="right")})
    driver.run(0)
    rested(driver)
    before = tail_of(rig), the_log(rig), all_files(rig)
    with Cluster(rig.uri) as cluster, pytest.raises(UnauthorizedError):
        LogTail(
            cluster, rig.log_name, password, ROWS, run=StreamRun(QUERY, "later")
        ).continue_ledger()
    assert (tail_of(rig), the_log(rig), all_files(rig)) == before
