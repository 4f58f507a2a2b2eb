"""Work that was begun in one cluster ends in it, or nowhere: another one may be in its place."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from bkspark.admin.log_upkeep import CompactRun
from bkspark.admin.recovering import RecoverLedger
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError
from bkspark.log.batch import commit as batch_commit
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from bkspark.log.streams import appending, commit
from bkspark.log.streams.commit import abort
from bkspark.log.streams.micro_batch import StreamPart
from bkspark.protocol.log.compaction import MergeRange
from tests.integration.rig import Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, settled_rows

PARTITIONS = partitions_of(3, 5)
OTHERS = "another cluster has replaced it"
BYTES = pa.schema([pa.field("value", pa.binary())])
Work = Callable[[], object]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "cluster")


def batch(rig: Rig) -> list[Work]:
    target = rig.target((3, 3, 2))
    reports = rig.tasks(target, PARTITIONS)
    return [lambda: batch_commit.commit(target, reports), lambda: batch_commit.abort(target)]


def append(rig: Rig) -> list[Work]:
    target, staging = appending.prepare(rig.request((3, 3, 2), is_unbounded=True))
    assert staging is not None
    reports = rig.tasks(target, PARTITIONS)
    return [
        lambda: appending.commit(target, staging, reports),
        lambda: appending.abort(target, staging),
    ]


def stream(rig: Rig) -> list[Work]:
    """Also by a commit process that holds the log's tail in the first cluster."""
    driver = Driver(rig)
    planned = driver.planned(0)
    parts = [StreamPart(planned.run, 0, planned.staging, report) for report in planned.reports]
    return [lambda: driver.commit(planned), lambda: abort(driver.request, parts)]


BEGUN = {"batch": batch, "append": append, "stream": stream}


def exchange(rig: Rig, fill: Work | None = None) -> None:
    """Another cluster, with a log of the same name, comes to be at the same place."""
    shutil.rmtree(rig.folder / "metadata")
    urls = [f"{url}-other" for url in rig.urls.values()]
    init_cluster(rig.uri, urls, accepts_risk=True)
    fill() if fill else rig.write(partitions_of(4), (3, 3, 2))


@pytest.mark.parametrize("kind", BEGUN)
def test_a_write_ends_in_the_cluster_in_which_it_began(rig: Rig, kind: str) -> None:
    works = BEGUN[kind](rig)
    exchange(rig)
    with Cluster(rig.uri) as other:
        before = other.ledger_ids()
        for work in works:
            with pytest.raises(InvalidRequestError, match=OTHERS):
                work()
        assert other.ledger_ids() == before
    assert rig.rows() == flat(partitions_of(4))


def test_a_process_that_holds_a_tail_of_the_first_cluster_writes_in_the_second(rig: Rig) -> None:
    """A new run of the query may do so: its source says whether its rows are there."""
    driver = Driver(rig)
    driver.run(0)
    exchange(rig)
    again = Driver(rig)
    again.held = driver.held
    assert again.run(1) == [True]
    assert len(settled_rows(rig)) == 4 + 10


@pytest.mark.parametrize("is_at_rest", [False, True])
def test_a_run_whose_batches_went_into_one_cluster_does_not_go_on_in_another(
    rig: Rig, is_at_rest: bool
) -> None:
    driver = Driver(rig)
    driver.run(0)
    if is_at_rest:
        driver.held.rest()
    exchange(rig)
    batch = driver.planned(1)
    for _ in range(2):
        with pytest.raises(InvalidRequestError, match="the metadata URI now leads to cluster"):
            driver.commit(batch)
    assert rig.rows() == flat(partitions_of(4))
    other = Driver(rig, query_id="query-2")
    other.held = driver.held
    assert other.run(0) == [True]
    with pytest.raises(InvalidRequestError, match="begin with a new checkpoint"):
        driver.commit(batch)


def test_of_many_queries_those_that_wrote_last_are_remembered(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "QUERIES_MAX", 2)
    first = Driver(rig, query_id="query-0")
    first.run(0)
    for number in (1, 0, 2):
        other = Driver(rig, query_id=f"query-{number}") if number else first
        other.held = first.held
        other.run(1 if other is first else 0)
    assert list(first.held._clusters) == ["query-0", "query-2"]


def test_entries_of_another_cluster_s_journals_are_not_read(rig: Rig) -> None:
    def append(value: bytes) -> None:
        with BookKeeper(rig.uri) as bookkeeper, bookkeeper.create_log("wal").writer() as writer:
            writer.append(value)

    append(b"mine")
    with Cluster(rig.uri) as cluster:
        tasks = plan_log(cluster, cluster.log("wal").value, OffsetRange(0, 1), Password(), 2**30)
    exchange(rig, lambda: append(b"theirs"))
    with pytest.raises(InvalidRequestError, match=OTHERS):
        list(SliceReader(BYTES).read(tasks[0]))


def test_work_of_upkeep_changes_nothing_in_another_cluster(rig: Rig) -> None:
    rig.write(PARTITIONS, (3, 3, 2))
    with Cluster(rig.uri) as cluster:
        place = cluster.uri, cluster.cluster_id
    exchange(rig)
    recovered = RecoverLedger(*place, 0, Password(), seals=True).run()
    assert OTHERS in recovered.problem
    compacted = CompactRun(
        *place, rig.log_name, 1, MergeRange(0, 8, 2, 100), Password()
    ).carry_out()
    assert OTHERS in compacted.problem
