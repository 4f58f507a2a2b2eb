"""Ledgers without an entry leave nothing behind, whoever opened a log and added nothing to it."""

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import NoSuchLedgerError
from bkspark.ledger.deleting import make_tombstone
from bkspark.ledger.recovery import recover
from bkspark.log import recovering
from bkspark.log.tail import LogTail
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.log_scenes import NAME, SILENT, assert_sound, values
from tests.integration.rig import Rig, partitions_of


def left(keeper: BookKeeper) -> set[int]:
    """Ledgers that have metadata and are not deleted."""
    cluster = keeper._cluster
    found = (cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids())
    return {
        seen.value.ledger_id
        for seen in found
        if seen is not None and seen.value.state is not LedgerState.DELETING
    }


def assert_clean(keeper: BookKeeper) -> None:
    record = keeper.open_log(NAME).record
    assert (record.dropped.ids, record.dropped.to_delete) == ((), ())
    assert left(keeper) == set(record.listed_ids)


def test_openings_that_add_nothing_leave_nothing(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    with log.writer() as writer:
        writer.append(b"a")
    for _ in range(20):
        with log.writer():
            pass
    assert_clean(keeper)
    assert values(log) == [b"a"]


def test_a_last_ledger_that_stays_empty_leaves_nothing(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    with log.writer() as writer:
        writer.append(b"a")
        writer.roll()
        writer.roll()
    assert_clean(keeper)
    assert values(log) == [b"a"]


def test_writers_that_were_killed_before_they_added_leave_nothing(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    for _ in range(5):
        log.writer(settings=SILENT)
    with log.writer() as writer:
        writer.append(b"a")
    assert_clean(keeper)


def test_appends_without_rows_leave_nothing(memory_rig: Rig) -> None:
    memory_rig.write(partitions_of(3))
    for _ in range(3):
        memory_rig.write([[]])
    record = memory_rig.log()
    assert record is not None
    assert (len(record.ledgers), record.dropped.ids) == (1, ())


def settle(keeper: BookKeeper, way: str) -> None:
    if way == "opener":
        LogTail(keeper._cluster, NAME, Password()).open()
    else:
        recovering.close_tail(keeper._cluster, NAME, Password())


@pytest.mark.parametrize("way", ["opener", "settler"])
def test_a_tail_that_somebody_else_finds_empty_and_deletes_is_no_error(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The list was read before, and the ledger is gone when it is to be recovered."""
    log = keeper.create_log(NAME)
    log.writer(settings=SILENT)
    real, calls = recover.recover, []

    def overtaken(*args: object, **options: object) -> object:
        calls.append(args)
        if len(calls) == 1:
            with log.writer() as other:
                other.append(b"a")
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(recover, "recover", overtaken)
    settle(keeper, way)
    assert values(log) == [b"a"]
    assert_sound(log)


@pytest.mark.parametrize("way", ["opener", "settler"])
def test_a_ledger_that_is_gone_while_it_is_on_the_list_is_an_error(
    keeper: BookKeeper, way: str
) -> None:
    log = keeper.create_log(NAME)
    log.writer(settings=SILENT)
    make_tombstone(keeper._cluster, log.record.tail[0])
    with pytest.raises(NoSuchLedgerError):
        settle(keeper, way)
