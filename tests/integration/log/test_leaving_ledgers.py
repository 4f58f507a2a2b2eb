"""Ledgers of unbounded logs that are left for another, so that copies can be made elsewhere."""

from collections.abc import Callable, Iterator

import pytest

from bkspark import verbs
from bkspark.admin.absent_bookies import declare_lost
from bkspark.admin.bookies.closing import set_read_only
from bkspark.bookkeeper import BookKeeper
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.log_scenes import NAME, SILENT, at_rest, the_ledger, values
from tests.integration.rig import Rig


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def log(keeper: BookKeeper) -> LogHandle:
    return at_rest(keeper)


def lose_a_bookie(rig: Rig, keeper: BookKeeper, ledger_id: int) -> str:
    gone = rig.ledger(ledger_id).last_fragment.ensemble[0].bookie_id
    rig.faults.down = {gone}
    declare_lost(keeper._cluster, gone)
    return gone


def test_a_bookie_is_emptied_beside_a_writer_once_he_has_rolled(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    ledger_id = the_ledger(log)
    leaving = memory_rig.ledger(ledger_id).last_fragment.ensemble[0].bookie_id
    with log.writer(settings=SILENT) as writer:
        assert verbs.decommission(memory_rig.uri, bookies=[leaving]).left != []
        writer.append(b"c")
        writer.roll()
        assert verbs.decommission(memory_rig.uri, bookies=[leaving]).left == []
        assert writer.append(b"d") == 3
    assert leaving not in keeper._cluster.bookies()
    assert log.record.listed_ids == (ledger_id, the_ledger(log))
    assert values(log) == [b"a", b"b", b"c", b"d"]


def test_one_goes_on_where_there_is_no_place_for_another(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME, unbounded=True)
        log.writer().close()
        set_read_only(keeper._cluster, "bookie-1")
        for number in range(2):
            with log.writer() as writer:
                assert writer.append(b"%d" % number) == number
        assert len(log.record.listed_ids) == 1


def test_who_rolls_leaves_one_whose_bookie_is_gone_and_it_is_repaired_beside_him(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    """Once: in the next ledger he goes on."""
    ledger_id = the_ledger(log)
    with log.writer(settings=SILENT) as writer:
        gone = lose_a_bookie(memory_rig, keeper, ledger_id)
        writer.append(b"c")
        assert verbs.repair(memory_rig.uri).left != []
        for number in range(3):
            writer.roll()
            writer.append(b"%d" % number)
        assert log.record.listed_ids == (ledger_id, the_ledger(log))
        report = verbs.repair(memory_rig.uri)
        assert (report.exit_status, report.left) == (0, [])
        assert not Locations(memory_rig.ledger(ledger_id)).names_bookie({gone})
        writer.append(b"d")
    assert memory_rig.ledger(the_ledger(log)).state is LedgerState.OPEN
    assert values(log) == [b"a", b"b", b"c", b"0", b"1", b"2", b"d"]


def test_who_takes_over_leaves_one_whose_bookie_is_gone(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    ledger_id = the_ledger(log)
    lose_a_bookie(memory_rig, keeper, ledger_id)
    for number in (2, 3):
        with log.writer() as writer:
            assert writer.append(b"%d" % number) == number
    assert log.record.listed_ids == (ledger_id, the_ledger(log))
    assert memory_rig.ledger(ledger_id).state is LedgerState.CLOSED
    assert values(log) == [b"a", b"b", b"2", b"3"]


def test_one_whose_bookie_is_only_away_goes_on(
    memory_rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    ledger_id = the_ledger(log)
    memory_rig.faults.down = {memory_rig.ledger(ledger_id).last_fragment.ensemble[0].bookie_id}
    with log.writer() as writer:
        writer.roll()
        assert writer.append(b"c") == 2
    assert log.record.listed_ids == (ledger_id,)
