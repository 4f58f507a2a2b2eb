"""What others do to a log under a stream: overwrite it, widen it, delete it, in mid-batch too."""

import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError
from bkspark.ledger.deleting import delete_log
from bkspark.log.recovering import close_tail
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows, the_log
from tests.kit.faulty import Fault, Operation

NEW = partitions_of(2, first=9_000)
IS_OVERWRITING = ContextVar("is_overwriting", default=False)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "cluster", bookie_count=4, metadata="memory")


@pytest.fixture
def threads_know_for_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    """They inherit the context of whoever starts them."""
    start = environment.start

    def inheriting(work: Callable[[], None], name: str) -> environment.Task:
        return start(partial(copy_context().run, work), name)

    class Row:
        add = staticmethod(inheriting)

        def begin(self) -> None:
            """They have begun, beside each other."""

        spread = begin

    monkeypatch.setattr(environment, "start", inheriting)
    monkeypatch.setattr(environment, "row", Row)


def overwrite_at(rig: Rig, number: int) -> tuple[bool, BookKeeperError | None]:
    """A commit with an overwrite just before one of its operations; the others wait meanwhile.

    Returns whether it was that long, and its error.
    """
    rig.log_name = f"log-{number}"
    driver = Driver(rig)
    with rig.faults.installed():
        driver.run(0, 1)
        batch = driver.planned(2)
        rig.faults.forget()
        has_come = False
        standstill = threading.Lock()

        def decide(now: int, _operation: Operation) -> Fault | None:
            nonlocal has_come
            if IS_OVERWRITING.get():
                return None
            with standstill:
                if now == number:
                    has_come = True
                    context = copy_context()
                    context.run(IS_OVERWRITING.set, True)
                    context.run(rig.write, NEW, is_overwrite=True)
            return None

        rig.faults.decide = decide
        error: BookKeeperError | None = None
        try:
            driver.commit(batch)
        except BookKeeperError as caught:
            error = caught
        rig.faults.forget()
        if has_come:
            driver.run(2, 3)
    return has_come, error


@pytest.mark.usefixtures("threads_know_for_whom")
def test_an_overwrite_at_any_operation_of_a_commit_is_before_it_or_behind_it(rig: Rig) -> None:
    """So the batch is in the new generation whole, or was in the old one."""
    outcomes = []
    while True:
        has_come, error = overwrite_at(rig, len(outcomes))
        if not has_come:
            break
        assert error is None
        rows = settled_rows(rig)
        assert rows in (flat(NEW) + expected(2, 3), flat(NEW) + expected(3)), len(outcomes)
        assert the_log(rig).generation == 2
        outcomes.append(rows == flat(NEW) + expected(3))
    print(f"{len(outcomes)} points, {sum(outcomes)} overwrites behind the batch")
    assert (outcomes[0], outcomes[-1]) == (False, True)


def test_a_column_that_a_batch_does_not_have_is_null(rig: Rig) -> None:
    """Planned before the log was widened, or after that."""
    driver = Driver(rig)
    driver.run(0)
    late = driver.planned(1)
    wider = pa.schema([*SCHEMA, pa.field("more", pa.int64())])
    columns = [*partitions_of(2, first=9_000)[0][0].columns, pa.array([1, 2])]
    added = pa.RecordBatch.from_arrays(columns, schema=wider)
    rig.write([[added]], schema=wider, merges_schema=True)
    assert driver.commit(late)
    assert driver.run(2) == [True]
    with Cluster(rig.uri) as cluster:
        close_tail(cluster, rig.log_name, driver.request.password)
    assert driver.run(3) == [True]
    rows = settled_rows(rig)
    assert [row[0] for row in rows] == [*range(10), 9_000, 9_001, *range(10, 40)]
    assert [row[2] for row in rows] == [*[None] * 10, 1, 2, *[None] * 30]


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_batch_that_was_planned_for_a_log_that_was_deleted_is_in_the_new_one(
    rig: Rig, is_made_anew: bool
) -> None:
    """Of a query that has lost nothing with it; nothing of the deleted log comes back."""
    Driver(rig).run(0, 1)
    driver = Driver(rig, "query-2")
    late = driver.planned(0)
    with Cluster(rig.uri) as cluster:
        delete_log(cluster, rig.log_name)
    if is_made_anew:
        rig.write(NEW)
    assert driver.commit(late)
    assert driver.run(0, 1) == [False, True]
    assert settled_rows(rig) == (flat(NEW) if is_made_anew else []) + expected(0, 1)
    assert the_log(rig).generation == 2
