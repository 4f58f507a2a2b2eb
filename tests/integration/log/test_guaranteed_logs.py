"""Logs whose ledgers guarantee their write quorum, whoever writes to them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.log.record import LogRecord
from tests.integration.hand_writer import good_copies
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows, the_log

NAME = "wal"


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """As many bookies as copies, and a log that guarantees these."""
    rig = Rig(tmp_path, bookie_count=3)
    with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
        keeper.create_log(rig.log_name, schema=SCHEMA, guarantees_write_quorum=True)
        yield rig


def least_copies(rig: Rig, log: LogRecord) -> int:
    """The fewest that an entry log or an entry of a closed ledger of the log has."""
    ids = [place.ledger_id for place in log.ledgers]
    inline = [n for one in ids for n in good_copies(rig, rig.ledger(one)).values()]
    named = [len(names) for one in ids for names in rig.good_copies(one).values()]
    return min([*inline, *named])


def test_what_handles_write_has_all_copies_in_each_ledger(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    log = keeper.create_log(NAME, guarantees_write_quorum=True)
    with log.writer() as writer:
        for number in range(6):
            writer.append(b"%d" % number)
            if number == 1:
                ensemble = memory_rig.ledger(log.record.tail[-1]).last_fragment.ensemble
                memory_rig.faults.down = {ensemble[0].bookie_id}
            if number in (2, 4):
                writer.roll()
    memory_rig.faults.forget()
    assert len(log.record.ledgers) == 3
    assert all(
        memory_rig.ledger(one).settings.guarantees_write_quorum for one in log.record.listed_ids
    )
    assert least_copies(memory_rig, log.record) == 3


def test_who_takes_over_gives_the_tail_all_its_copies(memory_rig: Rig, keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME, guarantees_write_quorum=True)
    writer = log.writer()
    writer.append(b"0")
    tail = log.record.tail[-1]
    gone = memory_rig.ledger(tail).last_fragment.ensemble[1].bookie_id
    memory_rig.faults.down = {gone}
    with log.writer() as other:
        other.append(b"1")
    memory_rig.faults.forget()
    assert least_copies(memory_rig, log.record) == 3
    assert gone not in {one.bookie_id for one in memory_rig.ledger(tail).last_fragment.ensemble}
    writer.release()


def test_a_data_frame_is_committed_with_all_its_copies(rig: Rig) -> None:
    """What has fewer is not committed, and no row of it is seen."""
    partitions = partitions_of(3, 5)
    rig.write(partitions)
    rig.faults.down = {"bookie-2"}
    with pytest.raises(NotEnoughBookiesError):
        rig.write(partitions_of(4, first=100))
    rig.faults.forget()
    assert rig.rows() == flat(partitions)
    assert least_copies(rig, the_log(rig)) == 3


def test_a_micro_batch_is_committed_with_all_its_copies(rig: Rig) -> None:
    driver = Driver(rig)
    assert driver.commit(driver.planned(0))
    batch = driver.planned(1)
    rig.faults.down = {"bookie-2"}
    with pytest.raises(NotEnoughBookiesError):
        driver.commit(batch)
    rig.faults.forget()
    again = driver.with_new_process()
    again.commit(again.planned(1))  # or finds that a recovery has kept it, with all its copies
    assert settled_rows(rig) == expected(0, 1)
    log = the_log(rig)
    assert all(rig.ledger(one).settings.guarantees_write_quorum for one in log.listed_ids)
    assert {rig.ledger(one).state for one in log.listed_ids} == {LedgerState.CLOSED}
    assert least_copies(rig, log) == 3


def test_an_overwritten_log_guarantees_what_it_did(rig: Rig) -> None:
    rig.write(partitions_of(3))
    rig.write(partitions_of(4), is_overwrite=True)
    log = the_log(rig)
    assert log.settings.guarantees_write_quorum
    assert [rig.ledger(one).settings.guarantees_write_quorum for one in log.listed_ids] == [True]


def test_what_a_compaction_writes_guarantees_as_much(rig: Rig) -> None:
    for number in range(3):
        rig.write(partitions_of(3, first=10 * number))
    verbs.compact(rig.uri, log=rig.log_name)
    log = the_log(rig)
    assert len(log.listed_ids) == 1
    assert rig.ledger(log.listed_ids[0]).settings.guarantees_write_quorum
    assert least_copies(rig, log) == 3
