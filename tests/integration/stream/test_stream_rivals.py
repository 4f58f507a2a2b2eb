"""Rivals, deaths and bad bookies at any moment at which a stream's tail changes hands."""

from collections.abc import Callable
from functools import partial

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError
from bkspark.ledger.recovery.recover import recover
from tests.integration.rig import Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows, the_log
from tests.kit.faulty import Crash, DecideOperation, Fault, Moment, Operation, crash_at
from tests.thorough import always


@pytest.fixture
def rig(memory_rig: Rig) -> Rig:
    return memory_rig


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


@pytest.mark.parametrize(
    ("rival", "step"),
    always([(newer_run, 6)], [(newer_run, 6), *((one, 2) for one in RIVALS)], are_rows=True),
)
def test_a_rival_at_any_moment_of_a_hand_over_loses_and_doubles_nothing(
    make_rig: Callable[..., Rig], rival: Callable[[Rig, Driver], None], step: int
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
        number += step
    assert number > 20


DEATHS = [(Moment.AFTER, 6), (Moment.AFTER, 1), (Moment.BEFORE, 2)]


@pytest.mark.thorough
@pytest.mark.parametrize(("moment", "step"), always(DEATHS[:1], DEATHS, are_rows=True))
def test_a_process_that_dies_at_any_moment_of_a_hand_over_loses_and_doubles_nothing(
    make_rig: Callable[..., Rig], moment: Moment, step: int
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
                number += step
        rig.faults.forget()
        driver.with_new_process().run(1, 2)
        driver.held.rest()
        assert Driver(rig).run(2, 3) == [False, True]
        assert settled_rows(rig) == expected(0, 1, 2, 3)
    assert number > 20


def test_a_bookie_that_did_not_surely_join_is_not_asked_again_by_who_goes_on(rig: Rig) -> None:
    """Also where the writer itself needs another member."""
    driver = Driver(rig, quorum=(3, 3, 2))
    driver.run(0)
    driver.held.rest()
    ledger = rig.ledger(the_log(rig).tail[0])
    unsure, failing, _ = (member.bookie_id for member in ledger.last_fragment.ensemble)
    asked: list[Operation] = []

    def decide(_number: int, operation: Operation) -> Fault | None:
        if (operation.place, operation.call) == (failing, "append"):
            return Fault()
        if (operation.place, operation.call) != (unsure, "open_journal"):
            return None
        asked.append(operation)
        return Fault(Moment.AFTER)

    with rig.faults.installed():
        rig.faults.decide = decide
        driver.with_new_process().run(1)
        rig.faults.forget()
    assert len(asked) == 1
    assert {unsure, failing}.isdisjoint(
        member.bookie_id for member in rig.ledger(ledger.ledger_id).last_fragment.ensemble
    )
    assert settled_rows(rig) == expected(0, 1)
