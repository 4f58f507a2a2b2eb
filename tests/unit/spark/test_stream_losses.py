"""What a query says of rows that are gone, wherever it finds that they are."""

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from bkspark.bookkeeper import BookKeeper
from bkspark.spark.source import BookKeeperDataSource
from tests.unit.spark.positions import at


@pytest.fixture
def log(small_cluster, numbers):
    """Offsets 0 to 60, of which nothing is truncated yet."""
    small_cluster.append("a", [numbers(0, 60)])
    with BookKeeper(small_cluster.uri) as keeper:
        yield keeper.open_log("a")


@pytest.fixture
def source(log, small_cluster):
    options = {
        "metadataServiceUri": small_cluster.uri,
        "path": "a",
        "failOnDataLoss": "false",
        "startingOffsets": "20",
    }
    found = BookKeeperDataSource(options)
    return found.streamReader(found.schema())


def batch(source, start):
    return source.latestOffset(start, ReadAllAvailable())


def test_a_start_below_the_truncation_point_is_counted(log, source):
    log.truncate(33)
    assert source.initialOffset() == source.initialOffset() == at(33)
    assert batch(source, at(33)) == at(60)
    report = source.reportLatestOffset()
    assert report["skippedEntries"] == 13
    assert "truncated below offset 33, and the query is at 20" in report["dataLoss"]


def test_what_is_cut_between_the_start_and_the_first_batch_is_counted_too(log, source):
    log.truncate(33)
    assert source.initialOffset() == at(33)
    log.truncate(40)
    assert batch(source, at(33)) == at(60)
    assert source.reportLatestOffset()["skippedEntries"] == 20


def test_a_batch_of_the_checkpoint_that_is_run_again_counts_what_it_lacks(log, source):
    """Its end is in the checkpoint, so it is not asked for again."""
    log.truncate(33)
    assert len(source.partitions(at(5), at(43))) == 1
    assert batch(source, at(43)) == at(60)
    assert source.reportLatestOffset()["skippedEntries"] == 28


def test_what_is_gone_is_counted_once_by_whichever_batch_lacks_it(log, source):
    log.truncate(33)
    assert batch(source, at(5)) == at(60)
    log.truncate(60)
    assert source.partitions(at(5), at(30)) == source.partitions(at(30), at(43)) == []
    assert batch(source, at(43)) == at(43)  # there is nothing behind what is gone
    assert source.reportLatestOffset()["skippedEntries"] == 55
