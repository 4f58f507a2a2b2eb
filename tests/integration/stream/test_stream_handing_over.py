"""A tail is laid down by one commit process and taken up by the next, whoever comes between."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from bkspark import environment
from bkspark.bookie import memory
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.environment import RealEnvironment
from bkspark.errors import BookKeeperError, LedgerFencedError, NoSuchLedgerError, UnauthorizedError
from bkspark.format import layout
from bkspark.ledger.deleting import delete_log
from bkspark.ledger.recovery.recover import recover
from bkspark.log.rolling import RollPolicy
from bkspark.log.streams.commit import TailWriterCache
from bkspark.log.streams.handing_over import take_up
from bkspark.protocol.ledger.metadata import TAKEN_UP_TERM_MAX, LedgerMetadata, LedgerState
from bkspark.protocol.log.stream_run import StreamRun
from bkspark.testing.faulty import Moment
from bkspark.testing.faulty_cluster import DecideOperation, Operation, crash_at, no_fault
from bkspark.testing.faulty_os import Crash
from tests.integration.rig import Rig, flat, partitions_of
from tests.integration.stream_driver import QUERY, Driver, expected, settled_rows, the_log
from tests.integration.waiting import wait_until
from tests.thorough import always


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
    """The same run in a new process; the one before has laid its tail down, as it was idle."""
    driver.held.rest()
    return driver.with_new_process()


def tail_of(rig: Rig) -> LedgerMetadata:
    with Cluster(rig.uri) as cluster:
        return cluster.ledger(the_log(rig).tail[-1]).value


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
    assert (tail.term, len(tail.fragments), tail.laid_down) == (12, 12, None)
    assert settled_rows(rig) == expected(*range(12))


@pytest.mark.parametrize(("minutes", "ledgers"), [(2, 5), (20, 4), (50, 2), (90, 2)])
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


def test_a_ledger_has_so_many_writers_at_most(rig: Rig) -> None:
    driver = Driver(rig, limits=RollPolicy(max_seconds=1e9))
    for batch_id in range(TAKEN_UP_TERM_MAX + 2):
        rested(driver).run(batch_id)
    assert (ledger_count(rig), tail_of(rig).term) == (2, 2)
    assert settled_rows(rig) == expected(*range(TAKEN_UP_TERM_MAX + 2))


def test_a_ledger_is_full_however_many_processes_filled_it(rig: Rig) -> None:
    driver = Driver(rig, limits=RollPolicy(max_records=3))
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
    wait_until(lambda: tail_of(rig).laid_down)
    assert driver.run(1) == [True]
    assert ledger_count(rig) == 1
    driver.held.rest()


def test_a_run_that_follows_another_in_one_process_takes_its_tail_up(rig: Rig) -> None:
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


# --- who dies, and who comes between -------------------------------------------------------------


def test_a_process_that_is_killed_before_it_rests_is_recovered_from(rig: Rig) -> None:
    driver = Driver(rig)
    rested(driver).run(0)
    driver.with_new_process().run(1)
    assert driver.with_new_process().run(1, 2) == [False, True]
    assert ledger_count(rig) == 3
    assert settled_rows(rig) == expected(0, 1, 2)


def test_who_has_laid_a_ledger_down_can_never_write_again(rig: Rig) -> None:
    """A commit that hung, in the process that rested, or its journal's late end."""
    driver = Driver(rig)
    driver.run(0)
    (late,) = driver.held._tails.values()
    batch = driver.planned(1)
    for channel in late._writer._channels.values():
        channel.cleanup.pop_all()  # it keeps its journals open
    driver.held.rest()
    before = all_files(rig)
    with pytest.raises(LedgerFencedError):
        late.commit(batch)
    with pytest.raises(LedgerFencedError):
        late.close_ledger("it is full")
    with pytest.raises(LedgerFencedError):
        late.lay_down()
    assert all_files(rig) == before
    assert rested(driver).run(1, 2) == [True, True]
    assert settled_rows(rig) == expected(0, 1, 2)


def test_a_ledger_with_a_record_without_an_ack_is_not_laid_down(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    (tail,) = driver.held._tails.values()
    tail._writer._machine.pending.push(1)
    driver.held.rest()
    assert tail_of(rig).laid_down is None
    assert driver.with_new_process().run(0, 1) == [False, True]
    assert (ledger_count(rig), settled_rows(rig)) == (2, expected(0, 1))


def test_a_bookie_that_is_away_is_no_reason_to_wait(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    driver.held.rest()
    with rig.faults.installed():
        rig.faults.down = {tail_of(rig).last_fragment.ensemble[0].bookie_id}
        assert driver.with_new_process().run(1) == [True]
    rig.faults.forget()
    assert settled_rows(rig) == expected(0, 1)


def stepping_in(number: int, steps: list[Callable[[], None]]) -> DecideOperation:
    """Take the step that is left just before operation ``number``."""

    def decide(now: int, _operation: Operation) -> None:
        if now >= number and steps:
            steps.pop()()

    return decide


def batch_append(rig: Rig, _driver: Driver) -> None:
    rig.write(partitions_of(4, first=1000))


def recovery(rig: Rig, _driver: Driver) -> None:
    with Cluster(rig.uri) as cluster:
        for ledger_id in the_log(rig).tail:
            recover(cluster, ledger_id, rig.request().password)


def newer_run(rig: Rig, driver: Driver) -> None:
    """It begins with the batch that is not in its checkpoint yet, and rests."""
    newer = Driver(rig)
    newer.run(1)
    newer.held.rest()


def same_run(rig: Rig, driver: Driver) -> None:
    """Spark has given the commit up and runs it again in another process, which rests."""
    other = Driver(rig, run_id=driver.run_id)
    other.run(1)
    other.held.rest()


def other_query(rig: Rig, _driver: Driver) -> None:
    other = Driver(rig, query_id="other")
    other.commit(other.planned(0, partitions_of(4, first=1000)))
    other.held.rest()


RIVALS = [batch_append, recovery, newer_run, same_run, other_query]


@pytest.mark.parametrize("rival", always([newer_run], RIVALS))
def test_a_rival_at_any_moment_of_a_hand_over_loses_and_doubles_nothing(
    make_rig: Callable[..., Rig], rival: Callable[[Rig, Driver], None]
) -> None:
    """Resting and the next commit, with the whole of the rival's work before each operation."""
    rig, number, is_done = make_rig(kind="memory", metadata="memory"), 0, False
    while not is_done:
        rig.log_name = f"log-{number}"
        driver = Driver(rig)
        driver.run(0)
        steps = [partial(rival, rig, driver)]
        rig.faults.forget()
        rig.faults.decide = stepping_in(number, steps)
        with rig.faults.installed():
            try:
                driver.held.rest()
                driver.with_new_process().run(1)
            except BookKeeperError:
                assert rival is newer_run
            is_done = bool(steps)
        rig.faults.forget()
        rows = settled_rows(rig)
        extra = [row for row in rows if row not in expected(0, 1)]
        assert extra == ([] if len(extra) == 0 else flat(partitions_of(4, first=1000)))
        assert [row for row in rows if row not in extra] == expected(0, 1)
        assert sorted(rows) == sorted(set(rows))
        number += 1
    assert number > 20


@pytest.mark.parametrize("moment", always([Moment.AFTER], [Moment.BEFORE, Moment.AFTER]))
def test_a_process_that_dies_at_any_moment_of_a_hand_over_loses_and_doubles_nothing(
    make_rig: Callable[..., Rig], moment: Moment
) -> None:
    rig, number, is_done = make_rig(kind="memory", metadata="memory"), 0, False
    while not is_done:
        rig.log_name = f"log-{number}"
        driver = Driver(rig)
        driver.run(0)
        rig.faults.forget()
        rig.faults.decide = crash_at(number, moment)
        with rig.faults.installed():
            try:
                driver.held.rest()
                driver.with_new_process().run(1)
                is_done = True
            except Crash:
                number += 1
        rig.faults.forget()
        driver.with_new_process().run(1, 2)
        driver.held.rest()
        assert Driver(rig).run(2, 3) == [False, True]
        assert settled_rows(rig) == expected(0, 1, 2, 3)
    assert number > 20


# --- what others see -----------------------------------------------------------------------------


def test_a_ledger_that_is_laid_down_is_read_to_its_end_and_closed_by_a_recovery(rig: Rig) -> None:
    driver = Driver(rig)
    rested(driver).run(0)
    rested(driver).run(1)
    driver.held.rest()
    ledger_id = tail_of(rig).ledger_id
    with Cluster(rig.uri) as cluster:
        assert recover(cluster, ledger_id, rig.request().password).last_entry_id == 19
        closed = cluster.ledger(ledger_id).value
    assert (closed.state, closed.laid_down) == (LedgerState.CLOSED, None)
    assert closed.transactions == {"stream/query-1": 1}
    assert settled_rows(rig) == expected(0, 1)


def test_a_ledger_that_was_only_taken_up_is_closed_where_it_stood(rig: Rig) -> None:
    """Its last fragment has no entry, and its writer dies."""
    driver = Driver(rig)
    driver.run(0)
    driver.held.rest()
    batch = driver.planned(1)
    with Cluster(rig.uri) as cluster:
        name, password, home = rig.log_name, rig.request().password, batch.staging.ledger_id
        found = take_up(cluster, name, password, batch.run, home)
        assert found is not None
        assert found.standing.last_entry_id == 9
        assert recover(cluster, home, password).last_entry_id == 9
    assert settled_rows(rig) == expected(0)
    assert driver.with_new_process().commit(batch)
    assert settled_rows(rig) == expected(0, 1)


def test_a_log_that_is_made_anew_while_its_tail_is_taken_up(rig: Rig) -> None:
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
        assert take_up(cluster, name, password, batch.run, home) is None
    assert rig.ledger(home).laid_down is None
    with pytest.raises(NoSuchLedgerError, match="start it with a new checkpoint"):
        driver.with_new_process().commit(batch)
    assert settled_rows(rig) == []


def test_the_tail_of_a_log_that_was_deleted_is_not_taken_up(rig: Rig) -> None:
    driver = Driver(rig)
    driver.run(0)
    driver.held.rest()
    batch = driver.planned(1)
    with Cluster(rig.uri) as cluster:
        delete_log(cluster, rig.log_name)
        args = cluster, rig.log_name, rig.request().password, batch.run, batch.staging.ledger_id
        with pytest.raises(NoSuchLedgerError):
            take_up(*args)


@pytest.mark.parametrize("password", [Password(), Password(literal="wrong")])
def test_a_wrong_password_takes_nothing_up(rig: Rig, password: Password) -> None:
    driver = Driver(rig, options={"digest_type": "MAC", "password": Password(literal="right")})
    driver.run(0)
    rested(driver)
    before = tail_of(rig), the_log(rig), all_files(rig)
    with Cluster(rig.uri) as cluster, pytest.raises(UnauthorizedError):
        take_up(cluster, rig.log_name, password, StreamRun(QUERY, "later"), before[0].ledger_id)
    assert (tail_of(rig), the_log(rig), all_files(rig)) == before
