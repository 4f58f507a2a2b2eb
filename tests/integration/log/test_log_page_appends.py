"""Appends that make pages, interrupted and repeated anywhere: each is in the log once, or not.

Pages have room for two ledgers here, and a record for four.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.log_records import BYTES_MAX
from bkspark.errors import BookKeeperError, InvalidRequestError, OutcomeUnknownError
from bkspark.format import layout, log_record, strict_json
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.target import BatchTarget
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log.batch import AttemptReport
from bkspark.protocol.log.ledger_list import LoggedLedger, LogPage
from tests.integration.rig import Rig, flat, partitions_of
from tests.kit.faulty import Crash, Fault, Moment, Operation, crash_at, fail_at
from tests.log_with import log_with
from tests.small_pages import forget_pages, pages_of


@pytest.fixture(autouse=True)
def small_pages() -> Iterator[None]:
    with pages_of(2):
        yield


class Scene:
    """A log whose next append makes a page, and that append up to its commit."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.number = 0
        self.before = [row for n in range(10) for row in flat(partitions_of(1, first=n))]

    def begin(self) -> tuple[BatchTarget, list[AttemptReport | None]]:
        self.rig.faults.forget()
        self.number += 1
        self.rig.log_name = f"log-{self.number}"
        for number in range(10):
            self.rig.write(partitions_of(1, first=number))
        return self.next()

    def next(self) -> tuple[BatchTarget, list[AttemptReport | None]]:
        target = self.rig.target(transaction=Transaction("app", 1))
        return target, self.rig.tasks(target, partitions_of(3, first=50))

    @property
    def after(self) -> list[tuple[object, ...]]:
        return self.before + flat(partitions_of(3, first=50))

    def is_visible(self) -> bool:
        forget_pages()
        rows = self.rig.rows()
        assert rows in (self.before, self.after)
        return rows == self.after


def the_last_steps(scene: Scene) -> tuple[int, list[Operation]]:
    """What a commit does from its first page on, and how much it does before that."""
    target, reports = scene.begin()
    scene.rig.faults.forget()
    with scene.rig.faults.installed():
        batch_commit.commit(target, reports)
    trace = scene.rig.faults.trace
    first = next(n for n, one in enumerate(trace) if one.name.startswith("pages/"))
    return first, trace[first:]


def test_pages_are_stored_before_the_record_that_names_them(memory_rig: Rig) -> None:
    _, steps = the_last_steps(Scene(memory_rig))
    puts = [one.name.split("/")[0] for one in steps if one.call == "put"]
    assert puts in (["pages", "logs"], ["pages", "pages", "logs"])


@pytest.mark.parametrize("how", [crash_at, fail_at])
@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.AFTER])
def test_an_append_that_ends_between_page_and_record_is_there_once(
    memory_rig: Rig,
    how: Callable[..., Callable[[int, Operation], Fault | None]],
    moment: Moment,
) -> None:
    scene = Scene(memory_rig)
    first, steps = the_last_steps(scene)
    seen = Counter[bool]()
    for number in range(len(steps)):
        target, reports = scene.begin()
        scene.rig.faults.forget()
        scene.rig.faults.decide = how(first + number, moment)
        with scene.rig.faults.installed(), suppress(Crash, BookKeeperError):
            batch_commit.commit(target, reports)
        scene.rig.faults.forget()
        was_visible = scene.is_visible()
        seen[was_visible] += 1
        again = batch_commit.commit(*scene.next())
        assert again.row_count == (0 if was_visible else 3)
        assert scene.is_visible()
    if how is fail_at:  # a look tells what became of the change
        assert not seen[False]
    else:
        assert seen[moment is Moment.AFTER]


def test_the_page_of_who_lost_is_never_named(memory_rig: Rig) -> None:
    """Two appends make a page of the same places; only one of the records wins."""
    scene = Scene(memory_rig)
    late = scene.begin()
    early = scene.rig.target(), []
    early_reports = scene.rig.tasks(early[0], partitions_of(2, first=90))

    def decide(_number: int, operation: Operation) -> None:
        is_named = operation.call == "put" and operation.name == f"logs/{scene.rig.log_name}"
        if is_named and not done:
            done.append(True)
            batch_commit.commit(early[0], early_reports)

    done: list[bool] = []
    scene.rig.faults.forget()
    scene.rig.faults.decide = decide
    with scene.rig.faults.installed():
        batch_commit.commit(*late)
    scene.rig.faults.forget()
    assert done
    forget_pages()
    rows = flat(partitions_of(2, first=90)) + flat(partitions_of(3, first=50))
    assert scene.rig.rows() == scene.before + rows
    with Cluster(scene.rig.uri) as cluster:
        made = cluster.store.list(f"pages/{scene.rig.log_name}")
        assert len(made) > len(names_below(cluster, scene.rig.log_name))


def names_below(cluster: Cluster, log_name: str) -> set[str]:
    """All pages that a log's record names, or a page that it names."""
    record = cluster.log(log_name).value
    found: set[str] = set()
    left = [page for page in record.older if isinstance(page, LogPage)]
    while left:
        page = left.pop()
        found.add(page.name)
        left += record.source.contents(page).pages
    return found


def test_a_commit_that_is_repeated_when_its_ledger_is_on_a_page_changes_nothing(
    memory_rig: Rig,
) -> None:
    """Spark may run a commit again long after it was done."""
    target = memory_rig.target()
    reports = memory_rig.tasks(target, partitions_of(4))
    assert batch_commit.commit(target, reports).row_count == 4
    for number in range(12):
        memory_rig.write(partitions_of(1, first=10 + number))
    forget_pages()
    with Cluster(memory_rig.uri) as cluster:
        before = cluster.log(memory_rig.log_name)
        assert target.ledger_id not in before.value.ids_at_hand
        assert batch_commit._splice(cluster, target)
        assert cluster.logs.is_current(memory_rig.log_name, before)
    batch_commit.abort(target)
    assert len(memory_rig.rows()) == 16


def test_a_commit_that_wakes_up_after_its_ledger_was_dropped_onto_a_page_is_refused(
    memory_rig: Rig,
) -> None:
    """An abort came, and many others after it; then the hanging commit goes on (H5)."""
    target = memory_rig.target()
    reports = memory_rig.tasks(target, partitions_of(4))
    batch_commit.abort(target)
    for _ in range(12):
        batch_commit.abort(memory_rig.target())
    forget_pages()
    with Cluster(memory_rig.uri) as cluster:
        seen = cluster.logs.get(memory_rig.log_name)
        assert seen is not None
        assert target.ledger_id not in seen.value.dropped.ids
    with pytest.raises(OutcomeUnknownError, match="was dropped"):
        batch_commit.commit(target, reports)
    assert memory_rig.log() is None


def test_what_will_not_fit_into_the_record_is_refused_before_a_row_is_written(
    memory_rig: Rig,
) -> None:
    """Applications that ever wrote are what no page bounds."""
    memory_rig.write(partitions_of(1))
    names = {f"application {n:08}": n for n in range(30_000)}
    with Cluster(memory_rig.uri) as cluster:
        cluster.logs.update(memory_rig.log_name, lambda log: log_with(log, transactions=names))  # type: ignore[type-var]
        before = cluster.ledger_ids()
        with pytest.raises(InvalidRequestError, match="names of applications"):
            memory_rig.target()
        assert cluster.ledger_ids() == before


@pytest.mark.thorough
def test_a_long_record_from_before_there_were_pages_is_written_to(memory_rig: Rig) -> None:
    memory_rig.write(partitions_of(1))
    places = tuple(LoggedLedger(10**9 + n, 10**6 * n, 10**6, 2**31, 10**12) for n in range(18_000))
    with Cluster(memory_rig.uri) as cluster:
        store, key = cluster.store, layout.log_key(memory_rig.log_name)
        log = log_with(cluster.log(memory_rig.log_name).value, ledgers=places)
        data = strict_json.of_cluster(cluster.cluster_id, key, log_record.encode(log, "n"))
        stored = store.get(key)
        assert len(data) > BYTES_MAX
        assert stored is not None
        store.put(key, data, stored.version)
        memory_rig.write(partitions_of(2))
        after = cluster.log(memory_rig.log_name)
    assert after.value.ledger_count == 18_001
    assert len(after.stored.value) < BYTES_MAX
