"""Repairs that are killed, or get no answer, at any of their operations; and what comes between.

Whatever happens, no copy is fewer than before, and a later repair finishes the work.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest

from bkspark.errors import BookKeeperError
from tests.integration.rig import Rig, flat
from tests.kit.faulty import Crash, Moment, crash_at, fail_at

from .scenes import PARTITIONS, members, take, written
from .test_repair import VALUES, assert_whole, give_up, repaired, values

WAYS = [
    (0, Moment.BEFORE, True),
    (1, Moment.AFTER, True),
    (2, Moment.BEFORE, False),
    (3, Moment.AFTER, False),
]
"""Which operation first, when, and whether the process dies there."""
OPERATIONS_MAX = 600
STEP = 9
"""Of so many operations, one is tried."""


class Scene:
    """Two ledgers, one of them of rows in files, that have lost a bookie and a journal."""

    def __init__(self, make_rig: Callable[..., Rig]) -> None:
        self.rig = make_rig(kind="memory", metadata="memory", bookie_count=6)
        self.rows = self.rig.write(PARTITIONS, (3, 3, 2)).ledger_id
        self.ledger_id = written(self.rig, (4, 3, 2))
        both = set(members(self.rig, self.rows))
        by_use = sorted(members(self.rig, self.ledger_id), key=both.__contains__)
        self.gone, other = by_use[-1], by_use[-2]
        give_up(self.rig, self.gone)
        take(self.rig, other, "/journal/", self.ledger_id)

    def require_all(self) -> None:
        assert values(self.rig, self.ledger_id) == VALUES
        assert self.rig.rows() == flat(PARTITIONS)

    def finish(self) -> None:
        """A later repair does the rest; then any two members of each write set may go."""
        self.require_all()
        report = repaired(self.rig)
        assert (report.left, report.exit_status) == ([], 0)
        assert_whole(self.rig)
        for ledger_id in (self.rows, self.ledger_id):
            first, second, *_ = members(self.rig, ledger_id)
            away = {name: self.rig.lose(name) for name in (first, second)}
            self.require_all()
            for name, disk in away.items():
                self.rig.bring_back(name, disk)


def interrupted(scene: Scene, number: int, moment: Moment, *, dies: bool) -> bool:
    """Repair with a fault at one operation; whether there was one."""
    faults = scene.rig.faults
    with faults.installed():
        faults.forget()
        faults.decide = crash_at(number, moment) if dies else fail_at(number, moment)
        with suppress(Crash, BookKeeperError):
            repaired(scene.rig, ledgers=[scene.rows, scene.ledger_id])
        is_reached = len(faults.trace) > number
        faults.forget()
    return is_reached


@pytest.mark.parametrize(("begin", "moment", "dies"), WAYS)
@pytest.mark.thorough
def test_a_repair_interrupted_at_any_operation_is_finished_by_the_next(
    make_rig: Callable[..., Rig], begin: int, moment: Moment, dies: bool
) -> None:
    for number in range(begin, OPERATIONS_MAX, STEP):
        scene = Scene(make_rig)
        is_reached = interrupted(scene, number, moment, dies=dies)
        scene.finish()
        if not is_reached:
            return
    raise AssertionError("a repair has more operations than are tried")


@pytest.mark.parametrize("number", [20, 60, 100])
def test_a_repair_that_is_killed_loses_nothing(make_rig: Callable[..., Rig], number: int) -> None:
    scene = Scene(make_rig)
    assert interrupted(scene, number, Moment.AFTER, dies=True)
    scene.finish()
