"""Readers whose ledgers are let go between the plan and the rows, batch and stream alike."""

import logging
import pickle

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import NoSuchEntryError, NoSuchLedgerError
from bkspark.format import layout
from bkspark.ledger.deleting import delete_log, make_tombstone
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log import truncation
from bkspark.log.reading import offset_by_time, ordered_read
from bkspark.spark.source import BookKeeperDataSource
from tests.kit.faulty import StorageFaults

LENIENT = {"failOnDataLoss": "false"}
GONE = r"log 'a' is truncated below offset 4, so offsets 0 to 1 cannot be read; read from offset 4"


@pytest.fixture
def keeper(small_cluster):
    with BookKeeper(small_cluster.uri) as keeper:
        yield keeper


@pytest.fixture
def log(keeper):
    """Rows 0 to 7 inline in four ledgers; the last one is open."""
    log = keeper.create_log("a", schema=pa.schema([("n", pa.int64())]))
    writer = log.writer(settings=WriterSettings(explicit_lac_ms=0))
    for number in range(8):
        writer.append_many(pa.table({"n": [number]}))
        if number in (1, 3, 5):
            writer.roll()
    writer.append_many(pa.table({"n": [8]}))  # says that the one before is confirmed
    yield log
    writer.release()


class Batch:
    """A batch read: its plan, and what its tasks read."""

    def __init__(self, uri, **options):
        source = BookKeeperDataSource({"metadataServiceUri": uri, "path": "a", **options})
        self.reader = source.reader(source.schema())

    def plan(self):
        return pickle.loads(pickle.dumps(self.reader.partitions()))

    def rows(self, parts):
        batches = [batch for part in parts for batch in self.reader.read(part)]
        return sorted(n for batch in batches for n in batch["n"].to_pylist())


class Stream(Batch):
    """The same as one micro-batch of a stream."""

    def __init__(self, uri, **options):
        source = BookKeeperDataSource({"metadataServiceUri": uri, "path": "a", **options})
        self.reader = source.streamReader(source.schema())
        self.begin = self.reader.initialOffset()
        self.end = self.reader.latestOffset(self.begin, ReadAllAvailable())

    def plan(self):
        return pickle.loads(pickle.dumps(self.reader.partitions(self.begin, self.end)))


both = pytest.mark.parametrize("kind", [Batch, Stream])


def when_looked_for(ledger_id, step, time=1):
    """Storage in which ``step`` is done just before the ledger's record is read that many times."""
    faults, looks = StorageFaults(), []

    def decide(_number, operation):
        if (operation.call, operation.name) == ("get", layout.ledger_key(ledger_id)):
            looks.append(operation)
            if len(looks) == time:
                step()

    faults.decide = decide
    return faults


# --- between the look at the log and the plan ----------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Batch, {}),
        (Batch, LENIENT),
        (Batch, {"startingOffsets": "0", **LENIENT}),
        (Stream, LENIENT),
    ],
)
def test_a_plan_is_made_anew_where_that_leaves_nothing_out_unsaid(log, caplog, kind, options):
    first = log.record.ledgers[0].ledger_id
    faults = when_looked_for(first, lambda: log.truncate(4))
    with faults.installed(), caplog.at_level(logging.WARNING):
        query = kind(log._cluster.uri, **options)
        assert query.rows(query.plan()) == [4, 5, 6, 7]
    is_asked_for = kind is Stream or "startingOffsets" in options
    assert ("truncated below offset 4" in caplog.text) == is_asked_for


@pytest.mark.parametrize("kind", [Batch, Stream])
def test_a_plan_that_begins_below_is_the_same_error_as_ever(log, kind):
    first = log.record.ledgers[0].ledger_id
    faults = when_looked_for(first, lambda: log.truncate(4))
    with faults.installed():
        query = kind(log._cluster.uri, startingOffsets="0")
        with pytest.raises(NoSuchEntryError, match=r"'a' is truncated below offset 4, (so|and)"):
            query.plan()


@both
def test_a_ledger_that_is_listed_and_lost_is_never_left_out(keeper, log, kind):
    """Unknown is never absent: its metadata is gone, and the log has not let go of it."""
    query = kind(log._cluster.uri, **LENIENT)
    parts = query.plan()
    make_tombstone(keeper._cluster, log.record.ledgers[1].ledger_id)
    with pytest.raises(NoSuchLedgerError):
        query.rows(parts)
    with pytest.raises(NoSuchLedgerError):
        query.plan()


def test_an_end_below_the_truncation_point_has_nothing_or_is_an_error(log):
    log.truncate(4)
    with pytest.raises(NoSuchEntryError, match="truncated below offset 4"):
        Batch(log._cluster.uri, endingOffsets="3").plan()
    query = Batch(log._cluster.uri, endingOffsets="3", **LENIENT)
    assert query.rows(query.plan()) == []


# --- between the plan and the rows ---------------------------------------------------------------


@both
def test_rows_that_were_let_go_of_are_an_error_in_the_task(log, kind):
    query = kind(log._cluster.uri)
    parts = query.plan()
    log.truncate(4)
    with pytest.raises(NoSuchEntryError, match=GONE):
        query.rows(parts)


@both
def test_rows_that_were_let_go_of_are_left_out_and_all_others_are_there(log, caplog, kind):
    query = kind(log._cluster.uri, **LENIENT)
    parts = query.plan()
    log.truncate(5)
    with caplog.at_level(logging.WARNING):
        assert query.rows(parts) == [4, 5, 6, 7]  # offset 4 is hidden, and its ledger is there
    assert "left out 2 rows: log 'a' is truncated below offset 5, so offsets 0 to 1" in caplog.text
    assert "so offsets 2 to 3 cannot be read" in caplog.text


@both
def test_rows_of_a_ledger_that_was_open_when_it_was_planned(log, kind):
    """Its writer closes it, others follow, and it is let go of."""
    query = kind(log._cluster.uri, startingOffsets="6")
    parts = query.plan()
    with log.writer() as writer:
        writer.append_many(pa.table({"n": [9]}))
    log.truncate(9)
    with pytest.raises(NoSuchEntryError, match="below offset 9, so offsets 6 to 7 cannot be read"):
        query.rows(parts)


@both
@pytest.mark.parametrize("is_made_again", [False, True])
def test_rows_of_a_log_that_is_deleted_meanwhile(keeper, log, kind, is_made_again):
    strict, lenient = kind(log._cluster.uri), kind(log._cluster.uri, **LENIENT)
    plans = strict.plan(), lenient.plan()
    delete_log(keeper._cluster, "a")
    if is_made_again:
        with keeper.create_log("a", schema=pa.schema([("n", pa.int64())])).writer() as writer:
            writer.append_many(pa.table({"n": [77]}))
    with pytest.raises(NoSuchEntryError, match="'a' was overwritten or deleted during the read"):
        strict.rows(plans[0])
    assert lenient.rows(plans[1]) == []


def test_rows_in_entry_logs_are_read_as_long_as_they_are_there(small_cluster, keeper, numbers):
    """Deleting takes the metadata; a plan knows where the files are."""
    for begin in (0, 5, 10):
        small_cluster.append("a", [numbers(begin, begin + 5)])
    query = Batch(small_cluster.uri)
    parts = query.plan()
    keeper.open_log("a").truncate(5)
    assert query.rows(parts) == list(range(15))


def test_a_ledger_that_is_read_by_its_id_is_just_gone(keeper, log):
    first = log.record.ledgers[0].ledger_id
    source = BookKeeperDataSource({"metadataServiceUri": log._cluster.uri, "ledgerId": str(first)})
    reader = source.reader(source.schema())
    parts = reader.partitions()
    log.truncate(4)
    with pytest.raises(NoSuchLedgerError):
        [list(reader.read(part)) for part in parts]


# --- without Spark -------------------------------------------------------------------------------


def test_reading_in_order_says_what_was_let_go_of_in_between(log, monkeypatch):
    monkeypatch.setattr(ordered_read, "WINDOW_ROWS", 1)
    view = log._watch.look()
    rows = iter(ordered_read.read_view_in_order(log._cluster, view, None, None, log._password))
    assert next(rows)["n"].to_pylist() == [0]
    truncation.truncate(log._cluster, "a", 4)
    with pytest.raises(NoSuchEntryError, match="truncated below offset 4, so offsets 0 to 1"):
        next(rows)
    with pytest.raises(NoSuchEntryError, match="truncated below offset 4, so offset 3"):
        log.read_arrow(3)
    assert log.read_arrow()["n"].to_pylist() == [4, 5, 6, 7]


def test_reading_in_order_says_what_was_let_go_of_since_the_plan(log):
    first = log.record.ledgers[0].ledger_id
    faults = when_looked_for(first, lambda: log.truncate(4), time=2)
    with faults.installed(), BookKeeper(log._cluster.uri) as slow:
        reader = slow.open_log("a")
        with pytest.raises(NoSuchEntryError, match="truncated below offset 4, so offsets 0 to 1"):
            reader.read_arrow()


def test_a_follower_is_told_what_was_let_go_of(keeper):
    log = keeper.create_log("b")
    with log.writer() as writer:
        for number in range(4):
            writer.append(b"%d" % number)
            writer.roll()
        entries = log.follow(0, timeout=0.1)
        log.truncate(2)
        with pytest.raises(NoSuchEntryError, match="'b' is truncated below offset 2, so offset 0"):
            next(entries)


def test_a_read_by_time_is_planned_anew_if_a_ledger_goes_during_its_search(
    small_cluster, log, monkeypatch
):
    real, seen = offset_by_time.offset_since, []

    def search(*asked):
        if not seen:
            seen.append(log.truncate(4))
            raise NoSuchLedgerError("there is no ledger 0")
        return real(*asked)

    time = log.ledgers[2].first_ms
    monkeypatch.setattr(offset_by_time, "offset_since", search)
    read = Batch(small_cluster.uri, startingTimestamp=str(time))
    rows = read.rows(read.plan())
    assert (rows, len(seen)) == ([4, 5, 6, 7], 1)


def test_a_search_for_a_time_that_finds_no_ledger_of_the_log_as_it_is_fails(
    small_cluster, log, monkeypatch
):
    def search(*_):
        raise NoSuchLedgerError("there is no ledger 0")

    monkeypatch.setattr(offset_by_time, "offset_since", search)
    with pytest.raises(NoSuchLedgerError, match="there is no ledger 0"):
        Batch(small_cluster.uri, startingTimestamp="1").plan()
