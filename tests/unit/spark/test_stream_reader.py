"""What Spark asks a stream's source, asked without Spark."""

import logging
import pickle
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import LongType, StructType

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError, NoSuchEntryError, NoSuchLedgerError
from bkspark.ledger.deleting import delete_log
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log.log_writer import LogWriter
from bkspark.spark.source import BookKeeperDataSource
from tests.unit.spark.positions import at

ALL = ReadAllAvailable()
NO_PASSWORD = Password()


class Query:
    """One query's source, and what its tasks read."""

    def __init__(self, uri, schema=None, **options):
        given = {"metadataServiceUri": uri, "path": "a", **options}
        source = BookKeeperDataSource(given)
        columns = source.schema() if schema is None else schema
        self.reader = source.streamReader(columns)
        self.in_tasks = pickle.loads(pickle.dumps(self.reader))

    def batch(self, start, limit=None):
        return self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit())

    def rows(self, start, end):
        parts = pickle.loads(pickle.dumps(self.reader.partitions(start, end)))
        batches = [batch for part in parts for batch in self.in_tasks.read(part)]
        return [row for batch in batches for row in batch.to_pylist()]

    def numbers(self, start, end):
        return sorted(row["n"] for row in self.rows(start, end))


@pytest.fixture
def log(small_cluster, numbers):
    """Three ledgers, offsets 0 to 60."""
    small_cluster.append("a", [numbers(0, 20), numbers(20, 30)])
    small_cluster.append("a", [numbers(30, 35)])
    small_cluster.append("a", [numbers(35, 60)])
    with Cluster(small_cluster.uri) as cluster:
        yield cluster


def change(cluster, transform):
    cluster.logs.update("a", transform)


def overwrite(cluster, small_cluster, numbers, begin, end):
    change(cluster, lambda record: record.vacated())
    small_cluster.append("a", [numbers(begin, end)])


# --- where it begins -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "offset"), [(None, 0), ("earliest", 0), ("latest", 60), ("31", 31), ("60", 60)]
)
def test_a_new_query_begins_where_it_is_told(log, given, offset):
    options = {} if given is None else {"startingOffsets": given}
    query = Query(log.uri, **options)
    assert query.reader.initialOffset() == at(offset)
    assert list(query.reader.initialOffset()) == ["version", "generation", "offset", "cluster"]


def test_latest_is_asked_for_twice_and_is_the_same(log, small_cluster, numbers):
    query = Query(log.uri, startingOffsets="latest")
    first = query.reader.initialOffset()
    small_cluster.append("a", [numbers(60, 61)])
    assert query.reader.initialOffset() == first == at(60)


def test_a_start_in_the_future_is_an_error(log):
    with pytest.raises(NoSuchEntryError, match=r"ends at offset 60, .* at 61"):
        Query(log.uri, startingOffsets="61").reader.initialOffset()


def test_a_start_below_the_truncation_point_is_an_error_or_a_skip(log):
    change(log, lambda record: record.truncated(12))
    assert Query(log.uri).reader.initialOffset() == at(12)
    with pytest.raises(NoSuchEntryError, match="truncated below offset 12"):
        Query(log.uri, startingOffsets="5").reader.initialOffset()
    query = Query(log.uri, startingOffsets="5", failOnDataLoss="false")
    assert query.reader.initialOffset() == at(12)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"endingOffsets": "7"}, "endingOffsets belongs to a batch read: leave it out"),
        ({"truncate": "true"}, "truncate belongs to a batch write"),
        ({"txnAppId": "x", "txnVersion": "1"}, "txnAppId and txnVersion belong to a batch write"),
        ({"view": "ledgers"}, "view belongs to a batch read of a view"),
    ],
)
def test_options_that_contradict_a_stream(log, options, problem):
    with pytest.raises(InvalidRequestError, match=problem):
        Query(log.uri, **options).reader.initialOffset()


def test_a_stream_that_was_refused_says_so_whatever_is_asked(log):
    """A reader that is not made leaves pyspark nothing to stop, and its error is the last."""
    reader = Query(log.uri, endingOffsets="7").reader
    for question in (
        reader.initialOffset,
        reader.getDefaultReadLimit,
        lambda: reader.latestOffset(at(0), ALL),
        lambda: reader.partitions(at(0), at(1)),
        lambda: reader.read(None),
    ):
        with pytest.raises(InvalidRequestError, match="endingOffsets belongs to a batch read"):
            question()
    reader.stop()


def test_a_ledger_is_no_log(log):
    source = BookKeeperDataSource({"metadataServiceUri": log.uri, "ledgerId": "0"})
    with pytest.raises(InvalidRequestError, match="ledgerId belongs to a batch read"):
        source.streamReader(source.schema()).initialOffset()


# --- batches -------------------------------------------------------------------------------------


def test_without_limits_a_batch_is_all_there_is(log):
    query = Query(log.uri)
    assert query.reader.getDefaultReadLimit() == ALL
    end = query.batch(at(0))
    assert end == at(60)
    assert query.numbers(at(0), end) == list(range(60))
    assert query.batch(end) == end
    assert query.reader.partitions(end, end) == []


def test_entries_per_trigger(log):
    query = Query(log.uri, maxEntriesPerTrigger="25")
    assert query.reader.getDefaultReadLimit() == ReadMaxRows(25)
    ends, end = [], at(0)
    while (following := query.batch(end)) != end:
        assert query.numbers(end, following) == list(range(end["offset"], following["offset"]))
        end = following
        ends.append(end["offset"])
    assert ends == [25, 50, 60]
    assert query.batch(at(0), ALL) == at(60)  # Trigger.Once: the limits do not hold


def test_bytes_per_trigger(log):
    whole = log.log("a").value.length_bytes
    query = Query(log.uri, maxBytesPerTrigger=str(whole // 3))
    assert query.reader.getDefaultReadLimit() == ReadMaxBytes(whole // 3)
    ends, end = [], at(0)
    while (following := query.batch(end)) != end:
        end = following
        ends.append(end["offset"])
    assert len(ends) in (3, 4)
    assert ends[-1] == 60
    assert Query(log.uri, maxBytesPerTrigger="1").batch(at(0)) == at(1)


def test_the_smaller_of_two_limits_holds(log):
    query = Query(log.uri, maxBytesPerTrigger="1000000", maxEntriesPerTrigger="7")
    assert query.batch(at(0)) == at(7)
    query = Query(log.uri, maxBytesPerTrigger="1", maxEntriesPerTrigger="7")
    assert query.batch(at(0)) == at(1)


def test_a_batch_that_is_run_again_has_the_same_rows_in_the_same_order(log, small_cluster, numbers):
    query = Query(log.uri, includeMetadata="true")
    before = query.rows(at(7), at(41))
    small_cluster.append("a", [numbers(60, 70)])
    assert Query(log.uri, includeMetadata="true").rows(at(7), at(41)) == before
    assert sorted(row["_offset"] for row in before) == list(range(7, 41))
    assert all(row["n"] == row["_offset"] for row in before)


def test_what_is_available_now_is_fixed_at_the_start(log, small_cluster, numbers):
    query = Query(log.uri, maxEntriesPerTrigger="40")
    query.reader.prepareForTriggerAvailableNow()
    small_cluster.append("a", [numbers(60, 99)])
    assert query.batch(at(0)) == at(40)
    assert query.batch(at(40)) == at(60)
    assert query.batch(at(60)) == at(60)
    assert query.batch(at(61)) == at(61)  # a checkpoint of a run that went further
    again = Query(log.uri)
    again.reader.prepareForTriggerAvailableNow()
    assert again.batch(at(60)) == at(99)


def test_small_batches_are_one_task(log):
    assert len(Query(log.uri).reader.partitions(at(0), at(60))) == 1
    assert len(Query(log.uri, maxBytesPerPartition="100").reader.partitions(at(0), at(60))) > 3


# --- progress ------------------------------------------------------------------------------------


def test_the_backlog_is_what_the_next_batches_will_have(log, small_cluster, numbers):
    query = Query(log.uri, maxEntriesPerTrigger="20")
    assert query.reader.reportLatestOffset() is None
    query.batch(at(0))
    report = query.reader.reportLatestOffset()
    assert report.items() >= {**at(60), "backlogEntries": 40}.items()
    whole = log.log("a").value.length_bytes
    assert whole // 2 < report["backlogBytes"] < whole
    query.batch(at(40))
    assert query.reader.reportLatestOffset()["backlogEntries"] == 0
    query.batch(at(60))
    small_cluster.append("a", [numbers(60, 99)])
    query.batch(at(60))
    assert query.reader.reportLatestOffset()["backlogEntries"] == 19


# --- rows that are gone --------------------------------------------------------------------------


def test_truncation_below_the_query_is_an_error(log):
    query = Query(log.uri)
    query.batch(at(0))
    change(log, lambda record: record.truncated(33))
    with pytest.raises(NoSuchEntryError, match="truncated below offset 33, and the query is at 0"):
        query.batch(at(0))
    with pytest.raises(NoSuchEntryError):
        query.reader.partitions(at(0), at(60))
    assert query.batch(at(33)) == at(60)


def test_or_a_skip_that_is_reported(log, caplog):
    query = Query(log.uri, failOnDataLoss="false", maxEntriesPerTrigger="10")
    change(log, lambda record: record.truncated(33))
    with caplog.at_level(logging.WARNING):
        assert query.batch(at(5)) == at(43)
        assert query.batch(at(5)) == at(43)
    assert [record.message for record in caplog.records] == [
        "log 'a' is truncated below offset 33, and the query is at 5; continuing at offset 33"
    ]
    assert query.numbers(at(5), at(43)) == list(range(33, 43))
    report = query.reader.reportLatestOffset()
    assert (report["skippedEntries"], report["backlogEntries"]) == (28, 17)
    assert "truncated below offset 33" in report["dataLoss"]
    assert query.reader.partitions(at(5), at(20)) == []


def test_a_log_made_anew_is_an_error(log, small_cluster, numbers):
    query = Query(log.uri)
    assert query.batch(at(0)) == at(60)
    overwrite(log, small_cluster, numbers, 0, 80)
    with pytest.raises(NoSuchEntryError, match="generation 1, and the log has only generation 2"):
        query.batch(at(60))
    with pytest.raises(NoSuchEntryError):
        query.reader.partitions(at(0), at(60))
    assert Query(log.uri).reader.initialOffset() == at(0, 2)


def test_or_its_new_rows_from_their_start(log, small_cluster, numbers, caplog):
    query = Query(log.uri, failOnDataLoss="false")
    overwrite(log, small_cluster, numbers, 100, 103)
    with caplog.at_level(logging.WARNING):
        assert query.batch(at(60)) == at(3, 2)
    assert "overwritten, or deleted and created again" in caplog.text
    assert query.numbers(at(60), at(3, 2)) == [100, 101, 102]
    assert query.reader.partitions(at(0), at(60)) == []
    report = query.reader.reportLatestOffset()
    assert "generation" in report["dataLoss"]
    assert "skippedEntries" not in report  # nobody knows how many


def test_available_now_does_not_go_on_in_a_newer_generation(log, small_cluster, numbers):
    query = Query(log.uri, failOnDataLoss="false")
    query.reader.prepareForTriggerAvailableNow()
    overwrite(log, small_cluster, numbers, 0, 5)
    assert query.batch(at(30)) == at(30)


DELETED = (
    "'a' does not exist any more: it was deleted;.* once the log is created again, "
    "begin with a new checkpoint"
)


def test_a_deleted_log_is_an_error(log):
    query = Query(log.uri, failOnDataLoss="false")
    query.batch(at(0))
    delete_log(log, "a")
    with pytest.raises(NoSuchLedgerError, match=DELETED):
        query.batch(at(0))
    started_again = Query(log.uri, StructType().add("n", "long"))
    with pytest.raises(NoSuchLedgerError, match=DELETED):
        started_again.batch(at(0))
    with pytest.raises(NoSuchLedgerError, match="there is no log 'b'; "):
        Query(log.uri, path="b")


# --- checkpoints that do not fit -----------------------------------------------------------------


@pytest.mark.parametrize("start", [at(61), at(0, 2)])
@pytest.mark.parametrize("lenient", ["true", "false"])
def test_an_offset_in_the_future(log, start, lenient):
    query = Query(log.uri, failOnDataLoss=lenient)
    with pytest.raises(InvalidRequestError, match="the query is past that"):
        query.batch(start)
    with pytest.raises(InvalidRequestError, match="the query is past that"):
        query.reader.partitions(at(0), start)


def test_an_end_before_its_start(log):
    with pytest.raises(InvalidRequestError, match=r"begins at offset 9 .* ends before it, at 8"):
        Query(log.uri).reader.partitions(at(9), at(8))


@pytest.mark.parametrize(
    "offset", [{}, {"version": 2, "generation": 1, "offset": 0}, at("7"), at(-1), at(True)]
)
def test_an_offset_that_is_none(log, offset):
    with pytest.raises(InvalidRequestError, match="an unknown offset"):
        Query(log.uri).batch(offset)


# --- columns -------------------------------------------------------------------------------------


def widened(cluster, small_cluster, numbers):
    """The log gets a column, as a write with mergeSchema does it."""
    rows = numbers(60, 62)
    rows = rows.append_column("more", pa.array([1, 2]))
    small_cluster.append("b", [rows])
    wide = cluster.log("b").value.schema
    change(cluster, lambda record: replace(record, schema=wide))


def test_new_columns_under_a_running_query_need_a_restart(log, small_cluster, numbers):
    query = Query(log.uri)
    query.batch(at(0))
    widened(log, small_cluster, numbers)
    with pytest.raises(InvalidRequestError, match="more was added; restart the query"):
        query.batch(at(60))
    again = Query(log.uri)
    assert again.batch(at(0)) == at(60)
    assert again.rows(at(3), at(4)) == [{"n": 3, "name": "row 3", "more": None}]


def test_a_query_that_names_its_columns_does_not_mind(log, small_cluster, numbers):
    columns = StructType().add("_offset", LongType()).add("n", LongType())
    query = Query(log.uri, schema=columns)
    query.batch(at(0))
    widened(log, small_cluster, numbers)
    assert query.batch(at(0)) == at(60)
    assert query.rows(at(3), at(4)) == [{"_offset": 3, "n": 3}]


# --- an open tail --------------------------------------------------------------------------------


def test_an_open_tail_is_followed_over_rolls(log, numbers):
    query = Query(log.uri)
    writer = LogWriter(log, "a", NO_PASSWORD, settings=WriterSettings(explicit_lac_ms=0))
    found, end = [], at(0)
    for first in range(60, 120, 10):
        writer.append_many(numbers(first, first + 10))
        if first in (80, 100):
            writer.roll()
        following = query.batch(end)
        found += query.numbers(end, following)
        end = following
    writer.close()
    assert end["offset"] == 110
    found += query.numbers(end, query.batch(end))
    assert found == list(range(120))


def test_a_batch_of_the_checkpoint_is_read_though_its_last_lac_is_away(small_cluster, log, numbers):
    writer = LogWriter(log, "a", NO_PASSWORD, settings=WriterSettings(explicit_lac_ms=0))
    writer.append_many(numbers(60, 70))
    query = Query(log.uri)
    assert query.batch(at(60)) == at(60)
    assert query.batch(at(65)) == at(65)
    assert query.numbers(at(55), at(70)) == list(range(55, 70))
    writer.release()
