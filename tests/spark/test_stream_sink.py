"""``df.writeStream.format("bookkeeper")`` in one session: exactly once, and what is refused."""

import os
import time
from pathlib import Path

import pytest
from places import LOG, Place, make_place, on_row, refusal
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from stream_job import MOMENTS, InterruptedDataSource

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError, NoSuchLedgerError
from bkspark.ledger.deleting import delete_log
from bkspark.log.recovering import close_tail
from bkspark.spark.source import BookKeeperDataSource
from tests.thorough import always


class Stream:
    """A folder of files as a source, one micro-batch for each, and a checkpoint."""

    def __init__(self, spark: SparkSession, place: Place, folder: Path) -> None:
        self.spark = spark
        self.place = place
        self.folder = folder
        (folder / "source").mkdir(parents=True)
        self.count = 0

    def feed(self, *texts: str) -> None:
        """A file with these lines for each."""
        for text in texts:
            file = self.folder / f"{self.count}.tmp"
            file.write_text(text)
            os.utime(file, (1_700_000_000 + self.count,) * 2)
            file.rename(self.folder / "source" / f"{self.count:05}.csv")
            self.count += 1

    def rows(self, schema: str = "id bigint") -> DataFrame:
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.csv(str(self.folder / "source"))

    def start(
        self,
        rows: DataFrame | None = None,
        *,
        log: str = LOG,
        mode: str = "append",
        source: str = "bookkeeper",
        **options: str,
    ) -> StreamingQuery:
        return (
            (self.rows() if rows is None else rows)
            .writeStream.format(source)
            .option("metadataServiceUri", self.place.uri)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .outputMode(mode)
            .options(**options)
            .trigger(availableNow=True)
            .start(log)
        )

    def run(self, rows: DataFrame | None = None, **options: str) -> None:
        """Everything that is there by now."""
        self.start(rows, **options).awaitTermination()

    def ids(self, name: str = LOG) -> list[int]:
        """Those in the log, after whoever writes to it was fenced."""
        with Cluster(self.place.uri) as cluster:
            close_tail(cluster, name, Password())
        return self.place.ids(name)


def lines(*numbers: int) -> str:
    return "".join(f"{number}\n" for number in numbers)


@pytest.fixture
def stream(spark: SparkSession, place: Place, tmp_path: Path) -> Stream:
    return Stream(spark, place, tmp_path / "stream")


def test_every_row_is_in_the_log_once_and_in_the_order_of_the_batches(stream: Stream) -> None:
    stream.feed(*(lines(*range(10 * n, 10 * n + 10)) for n in range(6)))
    stream.run()
    assert len(stream.place.log().tail) == 1
    assert stream.place.ids() == list(range(60))  # up to the LAC of the open ledger
    assert stream.ids() == list(range(60))
    (ledger,) = stream.place.log().ledgers
    assert ledger.entry_count == 60


def test_a_query_that_is_started_again_goes_on_where_it_was(stream: Stream) -> None:
    for begin in (0, 20, 40):
        stream.feed(lines(*range(begin, begin + 10)), lines(*range(begin + 10, begin + 20)))
        stream.run()
    assert stream.ids() == list(range(60))


def test_rows_of_all_partitions_of_a_batch_are_there(stream: Stream, spark: SparkSession) -> None:
    stream.feed(lines(*range(100)), lines(*range(100, 200)))
    stream.run(stream.rows().repartition(5), ensembleSize="3", writeQuorumSize="2")
    ids = stream.ids()
    assert sorted(ids[:100]) == list(range(100))
    assert sorted(ids[100:]) == list(range(100, 200))


@pytest.mark.thorough
def test_a_batch_append_and_an_overwrite_under_a_query(stream: Stream, spark) -> None:
    stream.feed(lines(0, 1))
    stream.run()
    stream.place.write(spark.range(100, 103).coalesce(1))
    stream.feed(lines(2, 3), lines(4, 5))
    stream.run()
    assert stream.ids() == [0, 1, 100, 101, 102, 2, 3, 4, 5]
    stream.place.write(spark.range(200, 202).coalesce(1), mode="overwrite", truncate=True)
    stream.feed(lines(6, 7))
    stream.run()
    assert stream.ids() == [200, 201, 6, 7]
    assert stream.place.log().generation == 2


@pytest.mark.thorough
def test_an_overwrite_in_mid_batch(stream: Stream, spark: SparkSession, tmp_path: Path) -> None:
    """While a task of the second batch has given half of its rows."""
    reached, overwritten = tmp_path / "reached", tmp_path / "overwritten"

    def wait() -> None:
        reached.touch()
        while not overwritten.exists():
            time.sleep(0.05)

    stream.feed(lines(0, 1), lines(2, 3), lines(4, 5))
    query = stream.start(stream.rows().mapInArrow(on_row(3, wait), "id bigint"))
    while not reached.exists():
        assert query.isActive
        time.sleep(0.05)
    stream.place.write(spark.range(200, 202).coalesce(1), mode="overwrite", truncate=True)
    overwritten.touch()
    query.awaitTermination()
    assert stream.ids() == [200, 201, 2, 3, 4, 5]
    assert stream.place.log().generation == 2


@pytest.mark.thorough
def test_batch_appends_while_the_query_runs(stream: Stream, spark) -> None:
    stream.feed(*(lines(n) for n in range(12)))
    query = stream.start()
    for begin in (1000, 1010, 1020):
        stream.place.write(spark.range(begin, begin + 10).coalesce(1))
    query.awaitTermination()
    ids = stream.ids()
    assert [number for number in ids if number < 1000] == list(range(12))
    assert [number for number in ids if number >= 1000] == list(range(1000, 1030))


@pytest.mark.parametrize("moment", always(["between two bookies"], MOMENTS))
def test_a_commit_process_that_is_killed_at_a_moment_loses_and_doubles_nothing(
    stream: Stream, moment: str
) -> None:
    """The query fails and is started again; in the second batch the tail is held already."""
    stream.spark.dataSource.register(InterruptedDataSource)
    stream.feed(*(lines(n, n + 1) for n in range(0, 8, 2)))
    for batch_id in ("0", "2"):
        options = {"interruption": f"exit {moment}", "interruptedBatch": batch_id}
        with pytest.raises(StreamingQueryException):
            stream.run(source=InterruptedDataSource.name(), **options)
    stream.run()
    assert stream.ids() == list(range(8))


# Refused.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"txnAppId": "a", "txnVersion": "1"}, "txnAppId and txnVersion belong to a batch write"),
        ({"truncate": "true"}, "truncate belongs to a batch write: leave it out of"),
        ({"view": "ledgers"}, "view belongs to a batch read of a view: leave it out"),
        ({"ensembleSize": "2", "writeQuorumSize": "3"}, "quorum sizes must satisfy"),
        ({"checkpointLocaton": "x"}, "unknown option 'checkpointlocaton'"),
    ],
    ids=str,
)
def test_options_that_make_no_sense(stream: Stream, options: dict, message: str) -> None:
    stream.feed(lines(1))
    assert message in refusal(InvalidRequestError, lambda: stream.run(**options))
    assert not stream.place.has_log()


def test_only_appends_are_taken(stream: Stream) -> None:
    stream.feed(lines(1))
    counts = stream.rows().groupBy("id").count()
    text = refusal(InvalidRequestError, lambda: stream.run(counts, mode="complete"))
    assert "streams can only append to a log" in text
    with pytest.raises(PySparkException, match=r"(?i)update"):
        stream.run(counts, mode="update")


def test_a_single_ledger_is_not_written(spark: SparkSession, place: Place) -> None:
    source = BookKeeperDataSource({"metadataServiceUri": place.uri, "ledgerId": "1"})
    with pytest.raises(InvalidRequestError, match="ledgerId belongs to a batch read"):
        source.streamWriter(spark.range(1).schema, False)


def test_to_make_a_writer_changes_nothing(spark: SparkSession, place: Place) -> None:
    source = BookKeeperDataSource({"metadataServiceUri": place.uri, "path": LOG})
    source.streamWriter(spark.range(1).schema, False)
    with Cluster(place.uri) as cluster:
        assert cluster.ledger_ids() == []
    assert not place.has_log()


def test_other_columns_after_a_restart(stream: Stream) -> None:
    stream.feed(lines(0, 1))
    stream.run()
    stream.feed("2,two\n3,three\n")
    wider = stream.rows("id bigint, text string")
    with pytest.raises(StreamingQueryException) as caught:
        stream.run(wider)
    assert "errors.InvalidRequestError" in str(caught.value)
    assert "unexpected column text" in str(caught.value)
    assert "PicklingError" not in str(caught.value)
    stream.run(wider, mergeSchema="true")
    assert stream.ids() == [0, 1, 2, 3]
    rows = {row.id: row.text for row in stream.place.read().collect()}
    assert rows == {0: None, 1: None, 2: "two", 3: "three"}


def test_a_column_that_a_batch_write_added_to_the_log_is_null(
    stream: Stream, spark: SparkSession
) -> None:
    stream.feed(lines(0))
    stream.run()
    stream.place.write(spark.sql("select 5L as id, 'x' as more"), mergeSchema=True)
    stream.feed(lines(1))
    stream.run()
    assert stream.ids() == [0, 5, 1]


@pytest.mark.thorough
def test_a_log_that_was_deleted_takes_a_new_checkpoint_to_begin_again(stream: Stream) -> None:
    stream.feed(lines(0), lines(1))
    stream.run()
    with Cluster(stream.place.uri) as cluster:
        delete_log(cluster, LOG)
    stream.feed(lines(2))
    assert "start the query with a new checkpoint" in refusal(NoSuchLedgerError, stream.run)
    assert not stream.place.has_log()
    stream.run(checkpointLocation=str(stream.folder / "new checkpoint"))
    assert stream.ids() == [0, 1, 2]
    assert stream.place.log().generation == 2


def test_another_quorum_than_the_log_s(stream: Stream) -> None:
    stream.feed(lines(0))
    stream.run()
    stream.feed(lines(1))
    options = {"ensembleSize": "2", "writeQuorumSize": "2", "ackQuorumSize": "2"}
    text = refusal(InvalidRequestError, lambda: stream.run(**options))
    assert "was created with quorum sizes 3/3/2" in text


def test_with_a_password_the_rows_are_there_and_the_secret_is_not_in_the_error(
    stream: Stream, spark: SparkSession
) -> None:
    secret = {"digestType": "MAC", "password": "open sesame"}
    stream.feed(lines(0), lines(1))
    stream.run(**secret)
    stream.feed(lines(2))
    with pytest.raises(PySparkException) as caught:
        stream.run(password="guessed wrong")
    assert "UnauthorizedError" in str(caught.value)
    assert "guessed wrong" not in str(caught.value)
    stream.run(**secret)
    with Cluster(stream.place.uri) as cluster:
        close_tail(cluster, LOG, Password(literal="open sesame"))
    assert stream.place.ids(password="open sesame") == [0, 1, 2]


@pytest.mark.thorough
def test_a_bookie_dies_under_a_query(spark: SparkSession, tmp_path: Path) -> None:
    place = make_place(spark, tmp_path / "wide", bookie_count=4)
    stream = Stream(spark, place, tmp_path / "stream")
    stream.feed(*(lines(n) for n in range(4)))
    stream.run()
    with Cluster(place.uri) as cluster:
        (tail,) = place.log().tail
        member = cluster.ledger(tail).value.last_fragment.ensemble[0].bookie_id
    place.bookies[int(member.split("-")[1]) - 1].rename(tmp_path / "away")
    stream.feed(*(lines(n) for n in range(4, 8)))
    stream.run()
    assert stream.ids() == list(range(8))
