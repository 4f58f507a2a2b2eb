"""What repairs elsewhere got wrong about ledgers that are open, or were fenced."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bkspark import verbs
from bkspark.admin.bookies.removing import remove
from bkspark.admin.maintenance import Report
from bkspark.admin.repairing.repair import Repair, RepairPlan, RepairStep
from bkspark.admin.survey import Survey
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.format import layout
from bkspark.ledger.recovery.running import in_threads
from bkspark.protocol.upkeep.repairing import MemberState, Need, Place, Way
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies
from tests.kit.faulty import METADATA, Operation

from .scenes import PARTITIONS, audited, copies, members, take, written
from .test_repair import VALUES, assert_whole, repaired, values
from .test_repairs_between import naming


def record_of(bookie_id: str) -> Callable[[Operation], bool]:
    """Whether it reads the record of a bookie."""
    key = layout.bookie_key(bookie_id)
    return lambda op: (op.place, op.call, op.name) == (METADATA, "get", key)


@pytest.mark.parametrize("lost", [2, 1])
def test_rb_25_an_open_ledger_that_lost_a_bookie_with_nothing_of_it_is_recovered_at_once(
    make_rig: Callable[..., Rig], lost: int
) -> None:
    """Its only entry is on the first two of three; the next one to be lost may have it."""
    rig = make_rig(kind="memory", bookie_count=4)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(ensemble_size=3, write_quorum_size=2, ack_quorum_size=2)
        handle.append(b"0")
        handle.release()
        names = members(rig, handle.ledger_id)
        rig.lose(names[lost])
        [waiting] = audited(rig).details["waiting"]
        assert (waiting["ledger_id"], waiting["waiting_for"]) == (handle.ledger_id, [names[lost]])
        report = verbs.repair(rig.uri, no_lease=True, open_grace=0)
        assert report.exit_status == 0, report.left
        rig.lose(names[1 if lost == 2 else 0])
        [entry] = keeper.open_ledger(handle.ledger_id).read()
        assert entry.value == b"0"


def test_rb_26_copies_are_made_where_a_fence_is(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", bookie_count=3)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        wait_for_all_copies(handle)
        handle.release()
        keeper.recover_ledger(handle.ledger_id)
        one = members(rig, handle.ledger_id)[0]
        assert [name for name in rig.names(one) if name.endswith("/terms/00000002")]
        take(rig, one, "/journal/", handle.ledger_id)
        assert verbs.repair(rig.uri, no_lease=True).done["places"] == 1
        assert copies(audited(rig)) == []
        assert members(rig, handle.ledger_id)[0] == one


@pytest.mark.parametrize("verb", ["remove", "collect"])
def test_a_removal_on_either_side_of_a_move_does_not_take_both_copies(
    make_rig: Callable[..., Rig], verb: str
) -> None:
    """The one looked before the move named its bookie, the other one behind that."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=4)
    ledger_id = written(rig, (1, 1, 1))
    [old] = members(rig, ledger_id)
    new = next(name for name in rig.urls if name != old)
    went: list[Report] = []

    def look_before() -> None:
        with Cluster(rig.uri) as other:
            other.registrations.update(
                new, lambda x: replace(x, is_read_only=True, is_leaving=True) if x else x
            )

    def remove_both() -> None:
        with Cluster(rig.uri) as other:
            collect = verb == "collect"
            went.append(verbs.collect(rig.uri) if collect else remove(other, old))
            other.registrations.update(
                new, lambda x: replace(x, is_leaving=False, is_removed=True) if x else x
            )

    steps = [(naming(ledger_id), look_before), (record_of(new), remove_both)]
    is_between = False

    def decide(_number: int, operation: Operation) -> None:
        nonlocal is_between
        if not is_between and steps and steps[0][0](operation):
            is_between = True
            steps.pop(0)[1]()
            is_between = False

    with rig.faults.installed(), Survey(rig.uri) as cluster:
        rig.faults.decide = decide
        member = rig.ledger(ledger_id).last_fragment.ensemble[0]
        place = Place(ledger_id, 0, 0, member)
        need = Need(place, MemberState.ANSWERS, 0, "it is to be emptied")
        step = RepairStep(need, Way.REPLACE, to=new, is_move=True)
        work = Repair(cluster, Password(), in_threads, None)
        work.carry_out(RepairPlan((step,)), lambda _done, _total: None)
        rig.faults.forget()
    assert values(rig, ledger_id) == VALUES
    [report] = went
    assert "being removed" in report.left[0].reason


def test_where_nobody_gives_a_copy_it_says_who_was_silent(memory_rig: Rig) -> None:
    """Nothing is lost then: it is there once they are back."""
    ledger_id, rows = written(memory_rig), memory_rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    for number, word in ((ledger_id, "/journal/"), (rows, "/entries/")):
        one, *silent = members(memory_rig, number)
        take(memory_rig, one, word, number)
        disks = {who: memory_rig.lose(who) for who in silent}
        [left] = [x for x in repaired(memory_rig, ledgers=[number]).left if one in x.reason]
        assert "no bookie has a good copy" in left.reason
        assert all(f"{who}: " in left.reason.partition("(")[2] for who in silent)
        for who, disk in disks.items():
            memory_rig.bring_back(who, disk)
    assert repaired(memory_rig).exit_status == 0
    assert_whole(memory_rig)
