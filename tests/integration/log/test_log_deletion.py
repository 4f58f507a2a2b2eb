"""Ledgers that a log has let go of are deleted in the end, whoever was stopped in between.

I8 all the while: what is on the list is never deleted, and what is left can be read.
"""

from collections.abc import Callable, Iterator

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import BookKeeperError, LedgerClosedError, OutcomeUnknownError
from bkspark.format import layout
from bkspark.ledger.deleting import delete_log
from bkspark.log import truncation
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.log_scenes import NAME, fill, values
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of
from tests.kit.faulty import Crash, Fault, Moment, Operation, crash_at


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def states(keeper: BookKeeper) -> dict[int, LedgerState]:
    cluster = keeper._cluster
    return {
        ledger_id: cluster.ledgers.get(str(ledger_id)).value.state  # type: ignore[union-attr]
        for ledger_id in cluster.ledger_ids()
    }


def tombstones(keeper: BookKeeper) -> set[int]:
    return {one for one, state in states(keeper).items() if state is LedgerState.DELETING}


def refusing(*ledger_ids: int) -> Callable[[int, Operation], Fault | None]:
    """No change of these ledgers' records has an outcome."""
    keys = {layout.ledger_key(ledger_id) for ledger_id in ledger_ids}

    def decide(_number: int, operation: Operation) -> Fault | None:
        return Fault() if operation.call == "put" and operation.name in keys else None

    return decide


@pytest.fixture
def left(memory_rig: Rig, keeper: BookKeeper) -> tuple[LogHandle, tuple[int, ...]]:
    """A log of five ledgers with two entries each, of which three were hidden and none deleted."""
    log = keeper.create_log(NAME)
    fill(log, 2, 2, 2, 2, 2)
    ids = log.record.listed_ids[:3]
    memory_rig.faults.decide = refusing(*ids)
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as faulty:
        done = truncation.truncate(faulty._cluster, NAME, 7)
        assert done == truncation.Truncation(7, (), ids)
    memory_rig.faults.forget()
    assert log.record.dropped.to_delete == ids
    assert tombstones(keeper) == set()
    return log, ids


def again(log: LogHandle, how: str) -> None:
    if how == "roll":
        fill(log, 1, 1)
    elif how == "truncate":
        log.truncate(0)
    else:
        log.retain()


@pytest.mark.parametrize("how", ["roll", "truncate", "retain"])
def test_what_could_not_be_deleted_is_deleted_by_whoever_comes_next(
    keeper: BookKeeper, left: tuple[LogHandle, tuple[int, ...]], how: str
) -> None:
    """The log keeps everything for ever: it was cut by hand."""
    log, ids = left
    again(log, how)
    assert tombstones(keeper) == set(ids)
    assert log.record.dropped.ids == log.record.dropped.to_delete == ()
    assert (log.first_offset, values(log, 7, 8)) == (7, [b"entry 7"])


def test_a_sinks_and_a_batch_writers_roll_delete_it_too(memory_rig: Rig) -> None:
    rig = memory_rig
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(rig.log_name, schema=SCHEMA)
        rig.write(partitions_of(3))
        rig.write(partitions_of(3, first=3))
        gone = log.record.listed_ids[0]
        rig.faults.decide = refusing(gone)
        with rig.faults.installed(), BookKeeper(rig.uri) as faulty:
            faulty.open_log(rig.log_name).truncate(3)
        rig.faults.forget()
        assert log.record.dropped.to_delete == (gone,)
        rig.write(partitions_of(3, first=6))
        assert (tombstones(keeper), log.record.dropped.ids) == ({gone}, ())
    assert rig.rows() == flat(partitions_of(6, first=3))


def test_a_roll_deletes_a_few_at_a_time(
    keeper: BookKeeper,
    left: tuple[LogHandle, tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, ids = left
    monkeypatch.setattr(truncation, "LEDGERS_PER_ROLL_MAX", 2)
    fill(log, 1)
    assert tombstones(keeper) == set(ids[:2])
    assert log.record.dropped.to_delete == ids[2:]
    fill(log, 1)
    assert tombstones(keeper) == set(ids)


def test_a_damaged_record_of_a_ledger_stops_only_its_own_deletion(
    keeper: BookKeeper, left: tuple[LogHandle, tuple[int, ...]]
) -> None:
    log, ids = left
    key, store = layout.ledger_key(ids[0]), keeper._cluster.store
    stored = store.get(key)
    assert stored is not None
    store.put(key, stored.value[:-9] + b"damaged!\n", stored.version)
    log.retain()
    assert log.record.dropped.to_delete == ids[:1]
    log.writer(roll_entries=1).close()
    assert log.record.dropped.to_delete == ids[:1]


def test_a_ledger_made_for_nothing_is_noted_until_it_is_deleted(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """Its maker has lost the list, and then the ledger's record cannot be changed either."""
    log = keeper.create_log(NAME)
    written = fill(log, 2)

    def seal_then_refuse(_number: int, operation: Operation) -> None:
        if (operation.call, operation.name) == ("put", layout.log_key(NAME)):
            memory_rig.faults.decide = refusing(*range(9))
            log.seal()

    memory_rig.faults.decide = seal_then_refuse
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as faulty:
        opener = faulty.open_log(NAME)
        with pytest.raises(LedgerClosedError, match="sealed"):
            opener.writer()
    memory_rig.faults.forget()
    [left] = log.record.dropped.ids
    assert (log.record.dropped.to_delete, tombstones(keeper)) == ((left,), set())
    log.retain()
    assert (log.record.dropped.ids, log.record.dropped.to_delete) == ((), ())
    assert (tombstones(keeper), values(log)) == ({left}, written)


def test_what_an_overwrite_dropped_stays_for_who_may_look_at_it(memory_rig: Rig) -> None:
    rig = memory_rig
    with BookKeeper(rig.uri) as keeper:
        rig.write(partitions_of(3))
        (before,) = rig.log().ledgers  # type: ignore[union-attr]
        rig.write(partitions_of(4), is_overwrite=True)
        rig.write(partitions_of(2))
        keeper.open_log(rig.log_name).truncate(4)
        keeper.open_log(rig.log_name).retain()
        assert states(keeper)[before.ledger_id] is LedgerState.CLOSED


def test_who_is_killed_while_deleting_leaves_nothing_for_ever(memory_rig: Rig) -> None:
    """Before and after the effect of each operation of a truncation."""
    rig = memory_rig
    for moment in (Moment.BEFORE, Moment.AFTER):
        number, is_done = 0, False
        while not is_done:
            name = f"log-{moment.name.lower()}-{number}"
            with BookKeeper(rig.uri) as keeper:
                log = keeper.create_log(name)
                added = fill(log, 1, 1, 1)
                ids = log.record.listed_ids
                rig.faults.forget()
                rig.faults.decide = crash_at(number, moment)
                try:
                    with rig.faults.installed(), BookKeeper(rig.uri) as faulty:
                        faulty.open_log(name).truncate(2)
                    is_done = True
                except (Crash, BookKeeperError):
                    number += 1
                first = log.first_offset
                assert (first in (0, 2), values(log)) == (True, added[first:])
                assert tombstones(keeper).isdisjoint(log.record.listed_ids)
                log.retain()
                hidden = ids[:first]
                assert (log.record.dropped.ids, tombstones(keeper) & set(ids)) == ((), set(hidden))
        assert number > 8


def test_a_log_made_anew_finishes_the_deletion_of_the_one_before(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    fill(keeper.create_log(NAME), 1, 1, 1)
    ids = keeper.open_log(NAME).record.listed_ids
    memory_rig.faults.decide = refusing(ids[1])
    with (
        memory_rig.faults.installed(),
        BookKeeper(memory_rig.uri) as faulty,
        pytest.raises(OutcomeUnknownError),
    ):
        delete_log(faulty._cluster, NAME)
    memory_rig.faults.forget()
    log = keeper.create_log(NAME)
    assert set(log.record.dropped.to_delete) == set(ids)
    fill(log, 2)
    assert tombstones(keeper) == set(ids)
    assert (log.record.dropped.ids, values(log)) == ((), [b"entry 0", b"entry 1"])


def test_a_deleted_log_remembers_no_ledger_that_is_gone(keeper: BookKeeper) -> None:
    fill(keeper.create_log(NAME), 1, 1)
    assert len(delete_log(keeper._cluster, NAME)) == 2
    seen = keeper._cluster.logs.get(NAME)
    assert seen is not None
    assert (seen.value.is_tombstone, seen.value.dropped.ids, seen.value.dropped.to_delete) == (
        True,
        (),
        (),
    )
