"""A stream that gives its schema waits for a log that is not there yet, or has no rows."""

import pickle

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import InvalidRequestError, NoSuchEntryError, NoSuchLedgerError
from bkspark.spark.source import BookKeeperDataSource
from tests.unit.spark.positions import at

N = StructType([StructField("n", LongType())])
ALL = ReadAllAvailable()


@pytest.fixture
def keeper(small_cluster):
    with BookKeeper(small_cluster.uri) as keeper:
        yield keeper


def source(small_cluster, **options):
    return BookKeeperDataSource({"metadataServiceUri": small_cluster.uri, "path": "a", **options})


def numbers_of(reader, in_tasks, start, end):
    return [
        row["n"]
        for part in reader.partitions(start, end)
        for batch in in_tasks.read(part)
        for row in batch.to_pylist()
    ]


def nothing(keeper):
    """There was never such a log."""


def no_schema(keeper):
    keeper.create_log("a", ensemble_size=5)


def same_schema(keeper):
    keeper.create_log(
        "a", ensemble_size=5, schema=pa.schema([("n", pa.int64()), ("name", pa.string())])
    )


@pytest.mark.parametrize("before", [nothing, no_schema, same_schema])
@pytest.mark.parametrize("starting", ["earliest", "latest", "0"])
def test_a_stream_waits_for_the_first_append(small_cluster, numbers, keeper, before, starting):
    before(keeper)
    reader = source(small_cluster, startingOffsets=starting).streamReader(N)
    tasks = pickle.loads(pickle.dumps(reader))
    start = reader.initialOffset()
    assert start == at(0)
    for _ in range(2):
        assert reader.latestOffset(start, ALL) == start
    again = source(small_cluster).streamReader(N)  # the query was started again
    small_cluster.append("a", [numbers(0, 5)])
    for one in (reader, again):
        assert one.latestOffset(start, ALL) == at(5)
        assert numbers_of(one, tasks, start, at(5)) == [0, 1, 2, 3, 4]


def test_a_column_may_have_the_name_that_logs_of_bytes_have(small_cluster, keeper):
    no_schema(keeper)
    texts = StructType([StructField("value", StringType())])
    reader = source(small_cluster).streamReader(texts)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) == start == at(0)
    small_cluster.append("a", [pa.table({"value": ["x", "y"]})])
    assert reader.latestOffset(start, ALL) == at(2)
    rows = StructType([StructField("value", BinaryType())])
    keeper.create_log("b", ensemble_size=5)
    in_bytes = BookKeeperDataSource({"metadataServiceUri": small_cluster.uri, "path": "b"})
    assert in_bytes.streamReader(rows).initialOffset() == at(0)


def test_what_is_available_now_is_nothing(small_cluster, numbers):
    reader = source(small_cluster).streamReader(N)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    small_cluster.append("a", [numbers(0, 5)])
    assert reader.latestOffset(start, ALL) == start


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (StructField("other", LongType()), "other is gone"),
        (StructField("N", LongType()), "N is gone"),
        (StructField("n", StringType()), "n was string and is bigint"),
    ],
    ids=["another", "another case", "another type"],
)
def test_columns_that_the_log_does_not_get_end_the_query(small_cluster, numbers, given, words):
    reader = source(small_cluster).streamReader(StructType([given]))
    start = reader.initialOffset()
    small_cluster.append("a", [numbers(0, 5)])
    with pytest.raises(InvalidRequestError, match=words):
        reader.latestOffset(start, ALL)


def test_a_stream_does_not_wait_for_a_log_that_it_has_read(small_cluster, numbers, keeper):
    small_cluster.append("a", [numbers(0, 5)])
    keeper.delete_log("a")
    reader = source(small_cluster).streamReader(N)
    with pytest.raises(NoSuchLedgerError, match="it was deleted"):
        reader.latestOffset(at(5), ALL)
    new = source(small_cluster).streamReader(N)
    tasks = pickle.loads(pickle.dumps(new))
    assert new.initialOffset() == at(0, generation=2)
    small_cluster.append("a", [numbers(5, 7)])
    assert new.latestOffset(at(0, generation=2), ALL) == at(2, generation=2)
    assert numbers_of(new, tasks, at(0, 2), at(2, 2)) == [5, 6]


def test_a_start_behind_the_end_is_still_an_error(small_cluster):
    reader = source(small_cluster, startingOffsets="5").streamReader(N)
    with pytest.raises(NoSuchEntryError, match="ends at offset 0"):
        reader.initialOffset()
