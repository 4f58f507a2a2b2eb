"""Bookies that are emptied or evened out by who is killed, or gets no answer, at any operation.

Whatever happens, no copy is fewer than before, and a later run finishes the work.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest

from bkspark import verbs
from bkspark.admin.maintenance import Report
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError
from tests.integration.rig import Rig, flat
from tests.kit.faulty import Crash, Moment, crash_at, fail_at

from .scenes import PARTITIONS, audited, copies, members, written
from .test_interrupted_repairs import OPERATIONS_MAX, STEP, WAYS
from .test_repair import VALUES, values


class Scene:
    """Some ledgers on five bookies, one of which is to go, and a sixth one that is empty."""

    def __init__(self, make_rig: Callable[..., Rig]) -> None:
        self.rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
        self.rows = self.rig.write(PARTITIONS, (3, 3, 2)).ledger_id
        self.ledgers = [written(self.rig, (4, 3, 2)) for _ in range(2)]
        self.going = members(self.rig, self.ledgers[0])[0]
        with Cluster(self.rig.uri) as cluster:
            cluster.add_bookie("", f"{self.rig.urls['bookie-1']}-6", accepts_risk=True)

    def decommission(self) -> Report:
        return verbs.decommission(self.rig.uri, bookies=[self.going])

    def rebalance(self) -> Report:
        return verbs.rebalance(self.rig.uri, no_lease=True)

    def require_all(self) -> None:
        assert copies(audited(self.rig)) == []
        assert all(values(self.rig, ledger_id) == VALUES for ledger_id in self.ledgers)
        assert self.rig.rows() == flat(PARTITIONS)

    def interrupted(
        self, work: Callable[[], Report], number: int, moment: Moment, *, dies: bool
    ) -> bool:
        """Work with a fault at one operation; whether there was one."""
        faults = self.rig.faults
        with faults.installed():
            faults.forget()
            faults.decide = crash_at(number, moment) if dies else fail_at(number, moment)
            with suppress(Crash, BookKeeperError):
                work()
            is_reached = len(faults.trace) > number
            faults.forget()
        return is_reached

    def finish(self, work: Callable[[], Report]) -> None:
        self.require_all()
        report = work()
        assert (report.left, report.exit_status) == ([], 0)
        self.require_all()
        assert work().plan["steps"] == []


@pytest.mark.parametrize("verb", ["decommission", "rebalance"])
@pytest.mark.parametrize(("begin", "moment", "dies"), WAYS)
@pytest.mark.thorough
def test_a_move_interrupted_at_any_operation_is_finished_by_the_next(
    make_rig: Callable[..., Rig], verb: str, begin: int, moment: Moment, dies: bool
) -> None:
    for number in range(begin, OPERATIONS_MAX, 3 * STEP):
        scene = Scene(make_rig)
        work = getattr(scene, verb)
        is_reached = scene.interrupted(work, number, moment, dies=dies)
        scene.finish(work)
        if not is_reached:
            return
    raise AssertionError("there are more operations than are tried")


@pytest.mark.parametrize("number", [15, 45, 75])
@pytest.mark.parametrize("verb", ["decommission", "rebalance"])
def test_who_is_killed_loses_nothing(make_rig: Callable[..., Rig], verb: str, number: int) -> None:
    scene = Scene(make_rig)
    work = getattr(scene, verb)
    assert scene.interrupted(work, number, Moment.AFTER, dies=True)
    scene.finish(work)
