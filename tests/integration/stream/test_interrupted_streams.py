"""A micro-batch's commit that dies, loses answers, hangs or is displaced, at every operation.

Whatever happens: when the batch is run again, by the same query in a new process or by a new run,
its rows are in the log exactly once, and those of all batches before it too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bkspark.errors import BookKeeperError, LedgerFencedError
from bkspark.log.rolling import RollPolicy
from bkspark.log.streams.micro_batch import MicroBatch
from tests.integration.rig import Rig, Row, flat, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows
from tests.kit.faulty import Crash, Moment, Operation, crash_at, fail_at
from tests.thorough import always

APPENDED = partitions_of(2, first=9_000)


@dataclass
class Scene:
    """One commit after the other into new logs of one cluster, each interrupted elsewhere.

    Attributes:
        kind: of the commit: "first" makes the log, "held" goes into the tail that its process
            holds, "taken" takes the tail over from a process that died, "displaced" finds that a
            batch append has closed it, "rolled" closes the ledger behind itself, "spare" has a
            bookie that died after the tasks.
    """

    rig: Rig
    kind: str
    number: int = 0

    @property
    def before(self) -> list[Row]:
        """Rows in the log when the interrupted commit begins."""
        if self.kind == "first":
            return []
        return expected(0, 1) + (flat(APPENDED) if self.kind == "displaced" else [])

    @property
    def batch_id(self) -> int:
        return 0 if self.kind == "first" else 2

    def begin(self) -> tuple[Driver, MicroBatch]:
        """A driver in a new log, and its batch, ready to be committed.

        What it holds open by then goes through the faults too.
        """
        self.rig.faults.forget()
        self.number += 1
        self.rig.log_name = f"log-{self.number}"
        driver = Driver(self.rig)
        if self.kind == "rolled":
            driver = Driver(self.rig, limits=RollPolicy(max_records=3))
        with self.rig.faults.installed():
            if self.kind != "first":
                driver.run(0, 1)
            batch = driver.planned(self.batch_id)
        if self.kind == "taken":
            driver.with_new_process()
        if self.kind == "displaced":
            self.rig.write(APPENDED)
        self.rig.faults.forget()
        if self.kind == "spare":
            self.rig.faults.down = {batch.staging.bookies[1].bookie_id}
        return driver, batch

    def trace(self) -> list[Operation]:
        """The operations of a commit that nothing interrupts."""
        driver, batch = self.begin()
        with self.rig.faults.installed():
            driver.commit(batch)
        trace = list(self.rig.faults.trace)
        self.rig.faults.forget()
        assert settled_rows(self.rig) == self.before + expected(self.batch_id)
        return trace

    def run_again(self, driver: Driver) -> bool:
        """The batch, and one more; whether it was not in the log before."""
        self.rig.faults.forget()
        with self.rig.faults.installed():
            was_new, is_new = driver.run(self.batch_id, self.batch_id + 1)
        assert is_new
        after = expected(self.batch_id, self.batch_id + 1)
        assert settled_rows(self.rig) == self.before + after
        return was_new


KINDS = ["first", "held", "taken", "displaced", "rolled", "spare"]
of_any_kind = pytest.mark.parametrize("scene", always(["spare"], KINDS), indirect=True)
"""Whoever takes a tail over has several times as many operations as the others."""


@pytest.fixture(params=KINDS)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    return Scene(Rig(tmp_path / "cluster", bookie_count=4, metadata="memory"), request.param)


STEP = 3
each = pytest.mark.parametrize("first", always([0], range(STEP)))
"""Which operation of a commit is the first to be interrupted; every ``STEP``-th one follows."""
WRITES = ("append", "put", "put_new", "create", "open_journal")


@pytest.mark.parametrize("scene", always(["first", "displaced", "spare"], KINDS), indirect=True)
@pytest.mark.parametrize(
    "moment", always([Moment.HALF], [Moment.BEFORE, Moment.HALF]), ids=lambda moment: moment.name
)
def test_a_commit_that_dies_at_any_operation_is_found_or_made_again(
    scene: Scene, moment: Moment
) -> None:
    """To die after one operation is to die before the next; half-way there are only writes."""
    trace = scene.trace()
    points = [n for n, op in enumerate(trace) if moment is Moment.BEFORE or op.call in WRITES]
    seen = [0, 0]
    for number in points:
        driver, batch = scene.begin()
        scene.rig.faults.decide = crash_at(number, moment)
        with scene.rig.faults.installed(), pytest.raises(Crash):
            driver.commit(batch)
        again = Driver(scene.rig) if number % 2 else driver.with_new_process()
        seen[scene.run_again(again)] += 1
    print(f"{len(points)} points, {moment.name}: {seen[0]} times found, {seen[1]} made again")
    assert seen[1]
    assert seen[0] or moment is Moment.HALF


@of_any_kind
@each
@pytest.mark.parametrize(
    "moment", always([Moment.AFTER], [Moment.BEFORE, Moment.AFTER]), ids=lambda m: m.name
)
def test_one_lost_operation_or_answer_does_no_harm(
    scene: Scene, moment: Moment, first: int
) -> None:
    """Of the fault nothing is known but that there was no answer; the commit goes on or raises."""
    done = 0
    points = range(first, len(scene.trace()), STEP)
    for number in points:
        driver, batch = scene.begin()
        scene.rig.faults.decide = fail_at(number, moment)
        raised = None
        with scene.rig.faults.installed():
            try:
                driver.commit(batch)
                done += 1
            except BookKeeperError as error:
                raised = error
        was_new = scene.run_again(driver if number % 2 else Driver(scene.rig))
        assert not (was_new and raised is None)
    print(f"{len(points)} points, {moment.name}: {done} commits went on")
    assert done


def interrupt(
    scene: Scene, first: int, action: Callable[[Driver, MicroBatch], None]
) -> list[BookKeeperError | None]:
    """A commit for some of its operations, with ``action`` by somebody else just before it."""
    outcomes: list[BookKeeperError | None] = []
    for number in range(first, len(scene.trace()), STEP):
        driver, batch = scene.begin()

        def act(
            now: int,
            _operation: Operation,
            at: int = number,
            on: tuple[Driver, MicroBatch] = (driver, batch),
        ) -> None:
            if now == at:
                scene.rig.faults.decide = lambda _number, _operation: None
                action(*on)

        scene.rig.faults.decide = act
        raised = None
        with scene.rig.faults.installed():
            try:
                driver.commit(batch)
            except BookKeeperError as error:
                raised = error
        outcomes.append(raised)
        scene.rig.faults.forget()
        yielded = settled_rows(scene.rig)
        assert _without_appends(yielded) == _without_appends(
            scene.before + expected(scene.batch_id)
        ), (number, raised)
    return outcomes


def _without_appends(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row[0] < 9_000]


@of_any_kind
@each
def test_a_commit_that_wakes_after_a_newer_run_has_done_its_batch(scene: Scene, first: int) -> None:
    outcomes = interrupt(scene, first, lambda _driver, batch: _run_in_another(scene.rig, batch))
    for error in outcomes:
        assert error is None or isinstance(error, LedgerFencedError)
        assert error is None or "newer run" in str(error)
    assert any(outcomes) or scene.kind == "first"


def _run_in_another(rig: Rig, batch: MicroBatch) -> None:
    assert Driver(rig).run(batch.batch_id) in ([True], [False])


@of_any_kind
@each
def test_a_commit_that_wakes_after_another_process_of_its_run_has_done_it(
    scene: Scene, first: int
) -> None:
    def again(driver: Driver, batch: MicroBatch) -> None:
        Driver(scene.rig, run_id=driver.run_id).run(batch.batch_id)

    assert interrupt(scene, first, again).count(None) > 0


@of_any_kind
@each
def test_a_batch_append_at_any_operation_displaces_nothing(scene: Scene, first: int) -> None:
    def append(_driver: Driver, _batch: MicroBatch) -> None:
        scene.rig.write(APPENDED)

    assert not any(interrupt(scene, first, append))
    appended = [row for row in settled_rows(scene.rig) if row[0] >= 9_000]
    assert appended == flat(APPENDED) * (2 if scene.kind == "displaced" else 1)
