"""Collections that are killed at any operation, and what others do at any of theirs."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from bkspark import verbs
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError
from bkspark.log.batch.commit import abort
from tests.integration.log_scenes import NAME, SILENT, fill, values
from tests.integration.rig import Rig, flat, partitions_of
from tests.kit.faulty import Crash, Fault, Moment, Operation, crash_at, fail_at, no_fault
from tests.thorough import always

PARTITIONS = partitions_of(3, 2)
OTHERS = partitions_of(2, first=50)
STEP = 33
EACH = always((0,), range(STEP))
SOME = always((0,), range(0, STEP, 3))


@pytest.fixture
def scene(make_rig: Callable[..., Rig]) -> Callable[[], Rig]:
    """Garbage of each kind, and a log of two generations of which the newer one is to stay."""

    def make() -> Rig:
        rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
        target = rig.target()
        rig.tasks(target, OTHERS)
        abort(target)
        rig.write(OTHERS)
        rig.write(PARTITIONS, is_overwrite=True)
        with BookKeeper(rig.uri) as keeper:
            with keeper.create_ledger(settings=SILENT) as closed:
                closed.append(b"closed")
            opened = keeper.create_ledger(settings=SILENT)
            opened.append(b"open")
            opened.release()
            keeper.delete_ledger(closed.ledger_id)
            keeper.delete_ledger(opened.ledger_id)
        return rig

    return make


def assert_nothing_is_left(rig: Rig) -> None:
    """Of garbage; and what is none is whole."""
    report = verbs.collect(rig.uri, no_lease=True)
    assert report.left == []
    record = rig.log()
    assert record is not None
    assert not record.has_any_dropped
    with Cluster(rig.uri) as cluster:
        assert cluster.ledger_ids() == list(record.listed_ids)
    own = {name.split("/")[2] for who in rig.urls for name in rig.names(who)}
    assert own == {f"{ledger_id:016x}" for ledger_id in record.listed_ids}
    assert rig.rows() == flat(PARTITIONS)


@pytest.mark.parametrize("first", EACH)
def test_a_collection_killed_at_any_operation_is_finished_by_the_next(
    scene: Callable[[], Rig], first: int
) -> None:
    """Killed behind an operation is killed in front of the next one."""
    number, is_over = first, False
    while not is_over:
        rig = scene()
        with rig.faults.installed():
            rig.faults.decide = crash_at(number, Moment.AFTER)
            try:
                verbs.collect(rig.uri, no_lease=True)
                is_over = True
            except (Crash, BookKeeperError):
                pass
        assert_nothing_is_left(rig)
        number += STEP
    assert number > 60


@pytest.mark.parametrize("first", SOME)
def test_what_an_answer_that_is_lost_leaves_is_freed_by_the_next(
    scene: Callable[[], Rig], first: int
) -> None:
    number, is_over = first, False
    while not is_over:
        rig = scene()
        with rig.faults.installed():
            rig.faults.decide = fail_at(number, Moment.AFTER if number % 2 else Moment.BEFORE)
            with suppress(BookKeeperError):
                verbs.collect(rig.uri, no_lease=True)
            is_over = len(rig.faults.trace) <= number
        assert_nothing_is_left(rig)
        number += STEP
    assert number > 60


def collect_before(rig: Rig, number: int) -> list[Report]:
    """Let a whole collection happen right before that operation; its report, once it has."""
    reports: list[Report] = []

    def decide(now: int, _operation: Operation) -> Fault | None:
        if now == number:
            rig.faults.decide = no_fault
            reports.append(verbs.collect(rig.uri, no_lease=True))
        return None

    rig.faults.decide = decide
    return reports


@pytest.mark.parametrize("first", SOME)
def test_two_collections_at_once_do_no_harm(scene: Callable[[], Rig], first: int) -> None:
    number, is_over = first, False
    while not is_over:
        rig = scene()
        with rig.faults.installed():
            reports = collect_before(rig, number)
            verbs.collect(rig.uri, no_lease=True)
        is_over = not reports
        assert_nothing_is_left(rig)
        number += STEP
    assert number > 60


@pytest.mark.parametrize("first", SOME)
def test_a_collection_at_any_operation_of_a_commit_disturbs_it_never(
    scene: Callable[[], Rig], first: int
) -> None:
    number, is_over = first, False
    while not is_over:
        rig = scene()
        with rig.faults.installed():
            reports = collect_before(rig, number)
            assert rig.write(OTHERS).row_count == 2
        is_over = not reports
        assert rig.rows() == flat(PARTITIONS) + flat(OTHERS)
        assert verbs.collect(rig.uri, no_lease=True).left == []
        number += STEP
    assert number > 30


@pytest.mark.parametrize("first", SOME)
def test_a_collection_at_any_operation_of_a_log_that_rolls_and_is_truncated(
    make_rig: Callable[..., Rig], first: int
) -> None:
    number, is_over = first, False
    while not is_over:
        rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
        with rig.faults.installed(), BookKeeper(rig.uri) as keeper:
            log = keeper.create_log(NAME)
            rig.faults.forget()
            reports = collect_before(rig, number)
            sent = fill(log, 1, 1)
            log.truncate(before_offset=1)
            is_over = not reports
            assert values(log) == sent[1:]
        assert verbs.collect(rig.uri, no_lease=True).left == []
        assert rig.names("bookie-1")
        number += STEP
    assert number > 30
