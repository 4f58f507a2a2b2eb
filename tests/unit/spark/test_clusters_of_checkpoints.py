"""A checkpoint belongs to the cluster that its source read."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError
from bkspark.spark.source import BookKeeperDataSource
from tests.unit.spark.positions import at

OTHER = "f" * 32


@pytest.fixture
def log(small_cluster: Any, numbers: Any) -> Iterator[Cluster]:
    small_cluster.append("a", [numbers(0, 20)])
    with Cluster(small_cluster.uri) as cluster:
        yield cluster


def reader_of(log: Cluster, **options: str) -> Any:
    source = BookKeeperDataSource({"metadataServiceUri": log.uri, "path": "a", **options})
    return source.streamReader(source.schema())


@pytest.mark.parametrize("position", [{**at(0), "cluster": 7}, {**at(0), "cluster": None}])
def test_a_cluster_that_is_no_text_is_not_known(log: Cluster, position: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="an unknown offset"):
        reader_of(log).latestOffset(position, ReadAllAvailable())


@pytest.mark.parametrize("fails_on_loss", ["true", "false"])
def test_a_checkpoint_of_another_cluster_is_refused(log: Cluster, fails_on_loss: str) -> None:
    reader = reader_of(log, failOnDataLoss=fails_on_loss)
    told = f"checkpoint is of log 'a' in cluster {OTHER}, .* reads from cluster {log.cluster_id}"
    theirs = {**at(5), "cluster": OTHER}
    for question in (
        lambda: reader.latestOffset(theirs, reader.getDefaultReadLimit()),
        lambda: reader.latestOffset(theirs, ReadAllAvailable()),
        lambda: reader.partitions(theirs, {**at(9), "cluster": OTHER}),
        lambda: reader.partitions(at(5), {**at(9), "cluster": OTHER}),
    ):
        with pytest.raises(InvalidRequestError, match=told) as caught:
            question()
        assert "begin with a new checkpoint" in caught.value.hint


def test_a_position_says_its_cluster_and_one_that_does_not_is_read(log: Cluster) -> None:
    reader = reader_of(log, maxEntriesPerTrigger="7")
    end = reader.latestOffset(at(5), reader.getDefaultReadLimit())
    assert end["cluster"] == reader.initialOffset()["cluster"] == log.cluster_id
    for past in (end, at(12)):
        tasks = reader.partitions(at(5), past)
        rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
        assert sorted(row["n"] for row in rows) == list(range(5, 12))
    assert reader.latestOffset(end, ReadAllAvailable())["cluster"] == log.cluster_id
    assert reader.reportLatestOffset()["cluster"] == log.cluster_id
