"""Journals are begun where an ensemble or a tail changes hands, and missed when they are lost."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import NotEnoughBookiesError
from bkspark.ledger.recovery.recover import recover
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.log.recovering import close_tail
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from tests.integration.recovery.test_lost_journals import (
    SILENT,
    headed,
    lose,
    members_of,
    without,
)
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows, the_log
from tests.kit.faulty import Fault, Moment, Operation

# --- changes of ensembles ------------------------------------------------------------------------


def test_who_takes_a_place_has_begun_its_journal(memory_rig: Rig) -> None:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        handle = keeper.create_ledger(
            ensemble_size=3, write_quorum_size=3, ack_quorum_size=3, settings=SILENT
        )
        before = memory_rig.ledger(handle.ledger_id)
        memory_rig.faults.down = {before.last_fragment.ensemble[1].bookie_id}
        assert handle.append(b"a") == 0
        memory_rig.faults.down = set()
        ledger = memory_rig.ledger(handle.ledger_id)
        (new,) = members_of(ledger) - members_of(before)
        assert ledger.last_fragment.has_headers
        assert headed(memory_rig, ledger) == members_of(ledger)
        handle.release()
    lose(memory_rig, ledger, new)
    others = members_of(ledger) - {new}
    with Cluster(memory_rig.uri) as cluster:
        bring_back = without(memory_rig, *others)
        with pytest.raises(NotEnoughBookiesError, match="entry 0 is in doubt"):
            recover(cluster, ledger.ledger_id, Password())
        bring_back()
        assert recover(cluster, ledger.ledger_id, Password()).last_entry_id == 0


def test_members_that_stay_have_begun_no_more_than_before(memory_rig: Rig) -> None:
    """A batch's ledger, made in another process: its first record is what makes journals."""
    target = memory_rig.target((3, 3, 2))
    gone = target.ensemble[0].bookie_id
    reports = memory_rig.tasks(target, partitions_of(4))
    memory_rig.lose(gone)
    with Cluster(memory_rig.uri) as cluster:
        seen, place = cluster.ledger(target.ledger_id), {"term": 1, "token": target.token}
        assert not seen.value.last_fragment.has_headers
        with RecordWriter(cluster, seen, target.digester(), target.ensemble, **place) as writer:
            writer.write(reports, spares=target.spares, transaction=None)
        assert not writer.metadata.last_fragment.has_headers
        assert gone not in members_of(writer.metadata)
        assert recover(cluster, target.ledger_id, Password()).last_entry_id == 3


def test_a_ledger_whose_commit_never_came_is_closed_as_an_empty_one(rig: Rig) -> None:
    target = rig.target((3, 3, 2))
    assert not rig.ledger(target.ledger_id).last_fragment.has_headers
    with Cluster(rig.uri) as cluster:
        assert recover(cluster, target.ledger_id, Password()).last_entry_id == -1


@pytest.mark.parametrize("call", ["put_new", "open_journal"])
def test_an_answer_that_is_lost_fails_no_ledger_where_there_are_no_other_bookies(
    call: str, make_rig: Callable[..., Rig]
) -> None:
    """What enlists is sent once (R19): the next who asks is another writer."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    lost: list[str] = []

    def decide(_number: int, operation: Operation) -> Fault | None:
        if operation.call != call or lost:
            return None
        lost.append(operation.name)
        return Fault(Moment.AFTER)

    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        rig.faults.decide = decide
        with keeper.create_ledger() as handle:
            assert handle.append(b"a") == 0
            ledger = rig.ledger(handle.ledger_id)
    assert len(lost) == 1
    assert ledger.token not in lost[0]
    assert headed(rig, ledger) == members_of(ledger)


# --- tails of logs and streams -------------------------------------------------------------------


def test_who_adopts_a_batchs_ledger_begins_its_journals(rig: Rig) -> None:
    """The first tail of a stream: what is acknowledged there counts while it is open."""
    Driver(rig, quorum=(3, 3, 3)).run(0)
    (ledger_id,) = the_log(rig).tail
    ledger = rig.ledger(ledger_id)
    assert (ledger.term, ledger.last_fragment.has_headers) == (1, True)
    assert headed(rig, ledger) == members_of(ledger)
    first, *others = sorted(members_of(ledger))
    lose(rig, ledger, first)
    bring_back = without(rig, *others)
    with (
        Cluster(rig.uri) as cluster,
        pytest.raises(NotEnoughBookiesError, match=f"{first} has lost data of ledger"),
    ):
        close_tail(cluster, rig.log_name, Password())
    bring_back()
    assert settled_rows(rig) == expected(0)


def test_a_permission_is_not_asked_for_again_by_who_adopts_a_ledger(memory_rig: Rig) -> None:
    """Where it was lost since, it would be made anew (R19)."""
    asked: list[str] = []

    def note(_number: int, operation: Operation) -> None:
        if operation.call == "put_new" and "/terms/" in operation.name:
            asked.append(f"{operation.place} {operation.name}")

    with memory_rig.faults.installed():
        memory_rig.faults.decide = note
        Driver(memory_rig, quorum=(3, 3, 3)).run(0)
        memory_rig.faults.forget()
    assert len(asked) == len(set(asked)) == 3


def test_a_tail_is_adopted_without_a_bookie_that_begins_no_journal(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    refuses = sorted(rig.urls)[0]

    def decide(_number: int, operation: Operation) -> Fault | None:
        is_there = operation.call == "open_journal" and operation.place == refuses
        return Fault(Moment.BEFORE) if is_there else None

    with rig.faults.installed():
        rig.faults.decide = decide
        Driver(rig, quorum=(3, 3, 2)).run(0)
        rig.faults.forget()
    (ledger_id,) = the_log(rig).tail
    ledger = rig.ledger(ledger_id)
    assert headed(rig, ledger) == members_of(ledger) - {refuses}
    assert not ledger.last_fragment.has_headers
    assert settled_rows(rig) == expected(0)


def gone_on_with(rig: Rig) -> tuple[Driver, LedgerMetadata]:
    """A stream whose second process goes on in its tail, and has committed one batch to it."""
    driver = Driver(rig, quorum=(3, 3, 3))
    driver.run(0)
    driver.held.rest()
    driver.with_new_process().run(1)
    (ledger_id,) = the_log(rig).tail
    return driver, rig.ledger(ledger_id)


def test_the_journal_of_who_goes_on_is_begun_and_missed(rig: Rig) -> None:
    _, ledger = gone_on_with(rig)
    assert (ledger.last_fragment.term, ledger.last_fragment.has_headers) == (2, True)
    assert headed(rig, ledger) == members_of(ledger)
    first, *others = sorted(members_of(ledger))
    lose(rig, ledger, first)
    bring_back = without(rig, *others)
    with (
        Cluster(rig.uri) as cluster,
        pytest.raises(NotEnoughBookiesError, match=f"{first} has lost data of ledger"),
    ):
        close_tail(cluster, rig.log_name, Password())
    bring_back()
    assert settled_rows(rig) == expected(0, 1)


def test_a_bookie_that_begins_no_journal_is_no_member_in_the_next_term(memory_rig: Rig) -> None:
    driver = Driver(memory_rig, quorum=(3, 3, 2))
    driver.run(0)
    driver.held.rest()
    (before,) = the_log(memory_rig).tail
    ledger = memory_rig.ledger(before)
    refuses = ledger.last_fragment.ensemble[0].bookie_id
    term = f"/{2:08x}-"

    def decide(_number: int, operation: Operation) -> Fault | None:
        is_begun = operation.call == "open_journal" and term in operation.name
        return Fault(Moment.AFTER) if is_begun and operation.place == refuses else None

    with memory_rig.faults.installed():
        memory_rig.faults.decide = decide
        driver.with_new_process().run(1)
        memory_rig.faults.forget()
    after = memory_rig.ledger(before)
    assert (after.state, after.term) == (LedgerState.OPEN, 2)
    assert refuses not in members_of(after)
    assert settled_rows(memory_rig) == expected(0, 1)


@pytest.fixture
def log(rig: Rig) -> Iterator[Any]:
    with BookKeeper(rig.uri) as keeper:
        yield keeper.create_log("wal", ensemble_size=3, write_quorum_size=3, ack_quorum_size=3)


def test_both_ledgers_of_a_roll_have_begun_their_journals(log: Any, rig: Rig) -> None:
    writer = log.writer(settings=SILENT)
    writer.append(b"a")
    writer.roll()
    writer.append(b"b")
    ledger = rig.ledger(writer.ledger_id)
    assert headed(rig, ledger) == members_of(ledger)
    writer.release()
    first, *others = sorted(members_of(ledger))
    lose(rig, ledger, first)
    bring_back = without(rig, *others)
    with pytest.raises(NotEnoughBookiesError):
        log.writer()
    bring_back()
    with log.writer():
        assert [entry.value for entry in log.read()] == [b"a", b"b"]
