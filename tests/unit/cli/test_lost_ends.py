"""The record of a log's last ledger is set aside: older rows are read, and the log goes on."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from bkspark import BookKeeper
from bkspark.admin import restored_records
from bkspark.admin.damaged_records import find_damaged, set_aside
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    NoSuchEntryError,
    NoSuchLedgerError,
    OutcomeUnknownError,
)
from bkspark.format import layout
from bkspark.ledger.recovery.recover import recover
from bkspark.log.creating import create_log_ledger
from bkspark.log.reading.log_view import look_at
from bkspark.log.reading.ordered_read import read_view_in_order
from bkspark.protocol.log.ledger_list import LOST_ENTRIES
from bkspark.spark.source import BookKeeperDataSource

Run = Callable[..., tuple[int, str, str]]

ROWS = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
MORE = pa.table({"n": pa.array([7], pa.int64())})
AFTER = 3 + LOST_ENTRIES


def damage(cluster: Any, ledger_id: int) -> str:
    key = layout.ledger_key(ledger_id)
    versions = [path for path in (cluster.folder / "metadata" / key).iterdir() if path.is_file()]
    max(versions).write_bytes(b"\xff" * 100)
    return key


@pytest.fixture(params=[False, True], ids=["chained", "unbounded"])
def damaged(request: pytest.FixtureRequest, small_cluster: Any) -> tuple[Any, Any, str]:
    """A log of three closed rows, whose open ledger with one row has an unreadable record."""
    with BookKeeper(small_cluster.uri) as keeper:
        log = keeper.create_log("a", schema=ROWS.schema, unbounded=False)
        with log.writer() as writer:
            writer.append_many(ROWS)
        log.convert(unbounded=request.param)
        writer = log.writer()
        writer.append_many(MORE)
        key = damage(small_cluster, writer.ledger_id)
        with pytest.raises(BookKeeperError):
            writer.append_many(MORE)
        with pytest.raises(BookKeeperError):
            writer.close()
        yield small_cluster, log, key


def numbers_of(rows: Any) -> list[int]:
    return rows.column("n").to_pylist()


def source_of(cluster: Any, **options: str) -> BookKeeperDataSource:
    return BookKeeperDataSource({"metadataServiceUri": cluster.uri, "path": "a", **options})


def planned(source: BookKeeperDataSource) -> list[int]:
    reader = source.reader(source.schema())
    parts = reader.partitions()
    return [n for one in parts for batch in reader.read(one) for n in batch["n"].to_pylist()]


def test_older_rows_are_read_and_new_ones_follow(
    run: Run, damaged: tuple[Any, Any, str], caplog: pytest.LogCaptureFixture
) -> None:
    cluster, log, key = damaged
    with pytest.raises(BookKeeperError):
        log.read_arrow()
    assert run("metadata", "set-aside", key)[0] == 2  # no terminal to ask at
    assert run("metadata", "set-aside", key, "--yes")[0] == 0
    assert run("metadata", "damaged")[0] == 0
    assert log.end_offset == AFTER
    with log.writer() as writer:
        assert writer.append_many(MORE) == (AFTER, AFTER)
    assert numbers_of(log.read_arrow(end=3)) == [1, 2, 3]
    assert numbers_of(log.read_arrow(AFTER)) == [7]
    with pytest.raises(NoSuchEntryError, match=f"from offset {AFTER} on"):
        log.read_arrow()
    with pytest.raises(NoSuchEntryError, match="was set aside"):
        planned(source_of(cluster))
    assert planned(source_of(cluster, endingOffsets="3")) == [1, 2, 3]
    assert planned(source_of(cluster, startingOffsets=str(AFTER))) == [7]
    with caplog.at_level(logging.WARNING):
        assert sorted(planned(source_of(cluster, failOnDataLoss="false"))) == [1, 2, 3, 7]
    assert "left out: the metadata record of ledger" in caplog.text
    assert run("audit")[0] in (0, 1)
    log.truncate(AFTER)
    assert planned(source_of(cluster)) == [7]


def test_rows_before_the_loss_are_given_before_the_error(damaged: tuple[Any, Any, str]) -> None:
    cluster, _, key = damaged
    with Cluster(cluster.uri) as opened:
        set_aside(opened, key)
    with Cluster(cluster.uri) as opened:
        view = look_at(opened, "a", Password())
        rows = iter(read_view_in_order(opened, view, None, None, Password()))
        assert numbers_of(next(rows)) == [1, 2, 3]
        with pytest.raises(NoSuchEntryError):
            next(rows)


@pytest.mark.parametrize("fails", ["true", "false"])
@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxRows(2)], ids=["all", "two"])
def test_a_stream_reads_up_to_the_loss_and_passes_it_at_once(
    damaged: tuple[Any, Any, str], fails: str, limit: Any
) -> None:
    cluster, log, key = damaged
    with Cluster(cluster.uri) as opened:
        set_aside(opened, key)
    with log.writer() as writer:
        writer.append_many(MORE)
    options = {"maxEntriesPerTrigger": "2"} if isinstance(limit, ReadMaxRows) else {}
    source = source_of(cluster, failOnDataLoss=fails, **options)
    reader = source.streamReader(source.schema())
    at, found, ends = reader.initialOffset(), [], []
    while (end := reader.latestOffset(at, limit)) != at:
        if at["offset"] == 3 and fails == "true":
            with pytest.raises(NoSuchEntryError, match="was set aside"):
                reader.partitions(at, end)
            break
        for part in reader.partitions(at, end):
            found += [n for batch in reader.read(part) for n in batch["n"].to_pylist()]
        at = end
        ends.append(at["offset"])
    steps = [2, 3] if options else [3]
    assert ends == (steps if fails == "true" else [*steps, AFTER, AFTER + 1])
    assert sorted(found) == ([1, 2, 3] if fails == "true" else [1, 2, 3, 7])


def test_a_missing_record_of_the_end_is_named_and_can_be_given_up(
    run: Run, damaged: tuple[Any, Any, str]
) -> None:
    """As after an interruption, or where the metadata store has lost the record."""
    cluster, log, key = damaged
    with Cluster(cluster.uri) as opened:
        opened.store.delete(key)
    for act in (log.writer, log.read_arrow, log.seal):
        with pytest.raises(NoSuchLedgerError, match="`bkspark metadata damaged` names"):
            act()
    status, out, _ = run("metadata", "damaged", "--json")
    [row] = json.loads(out)
    assert (status, row["key"], row["reason"]) == (1, key, "it is missing")
    assert "set-aside" in row["way_out"]
    assert run("metadata", "set-aside", key)[0] == 2
    assert run("metadata", "set-aside", key, "--yes")[0] == 0
    assert run("metadata", "damaged")[0] == 0
    assert numbers_of(log.read_arrow(end=3)) == [1, 2, 3]
    with pytest.raises(NoSuchEntryError, match="was set aside"):
        log.read_arrow()
    assert run("metadata", "set-aside", key, "--yes")[0] == 2  # there is nothing left to do


def test_a_record_that_comes_back_in_between_stays_in_the_tail(
    damaged: tuple[Any, Any, str],
) -> None:
    cluster, _, key = damaged
    with Cluster(cluster.uri) as opened:
        before = opened.log("a").value
        [ledger_id] = before.tail
        with pytest.raises(BookKeeperError):  # its record is there, if unreadable
            restored_records.give_lost_place(opened, "a", ledger_id)
        opened.store.put(key, b"", opened.store.get(key).version)
        with pytest.raises(BookKeeperError):
            restored_records.give_lost_place(opened, "a", ledger_id)
        assert opened.log("a").value == before


def test_a_readable_end_gets_no_lost_place(small_cluster: Any) -> None:
    keeper, cluster = BookKeeper(small_cluster.uri), Cluster(small_cluster.uri)
    with keeper, cluster, keeper.create_log("a").writer() as writer:
        with pytest.raises(InvalidRequestError, match="has a metadata record"):
            restored_records.give_lost_place(cluster, "a", writer.ledger_id)
        assert list(find_damaged(cluster)) == []


def test_a_killed_command_is_finished_by_the_next(
    damaged: tuple[Any, Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, log, key = damaged
    with Cluster(cluster.uri) as opened:
        real = opened.logs.update

        def update(*_: object) -> None:
            raise OutcomeUnknownError("killed")

        monkeypatch.setattr(opened.logs, "update", update)
        with pytest.raises(OutcomeUnknownError):
            set_aside(opened, key)
        monkeypatch.setattr(opened.logs, "update", real)
        [found] = find_damaged(opened)
        assert found.key == key
        kept = set_aside(opened, key)
        assert opened.store.get(kept).value == b"\xff" * 100
    assert log.end_offset == AFTER


def test_a_ledger_is_not_set_aside_before_the_one_in_front_of_it_is_closed(
    small_cluster: Any,
) -> None:
    """A writer that rolls has two open ledgers."""
    with BookKeeper(small_cluster.uri) as keeper, Cluster(small_cluster.uri) as cluster:
        log = keeper.create_log("a", schema=ROWS.schema)
        writer = log.writer()
        writer.append_many(ROWS)
        first = writer.ledger_id
        record = cluster.log("a").value
        made = create_log_ledger(cluster, record, Password())
        second = made.seen.value
        cluster.logs.update("a", lambda one: one.with_tail(second, own=first))
        key = damage(small_cluster, second.ledger_id)
        with pytest.raises(InvalidRequestError, match=f"ledger recover {first} --seal"):
            set_aside(cluster, key)
        assert cluster.store.get(key).value == b"\xff" * 100
        recover(cluster, first, Password())
        set_aside(cluster, key)
        assert numbers_of(log.read_arrow(end=3)) == [1, 2, 3]
        assert log.end_offset == AFTER


def test_a_batch_append_follows_after_the_loss(
    small_cluster: Any, numbers: Callable[[int, int], pa.Table]
) -> None:
    small_cluster.append("a", [numbers(0, 5)])
    with BookKeeper(small_cluster.uri) as keeper:
        log = keeper.open_log("a")
        writer = log.writer()
        writer.append_many(numbers(5, 6))
        key = damage(small_cluster, writer.ledger_id)
        with pytest.raises(BookKeeperError):
            small_cluster.append("a", [numbers(6, 9)])
        with Cluster(small_cluster.uri) as cluster:
            set_aside(cluster, key)
        with pytest.raises(BookKeeperError):  # its ledger is no more the writer's
            writer.append_many(numbers(5, 6))
        small_cluster.append("a", [numbers(6, 9)])
        assert numbers_of(log.read_arrow(5 + LOST_ENTRIES)) == [6, 7, 8]
        assert numbers_of(log.read_arrow(end=5)) == [0, 1, 2, 3, 4]
        with pytest.raises(BookKeeperError):
            writer.close()


def test_rows_of_a_closed_ledger_that_was_set_aside_are_left_out_on_request(
    small_cluster: Any, numbers: Callable[[int, int], pa.Table]
) -> None:
    ids = [small_cluster.append("a", [numbers(10 * n, 10 * n + 10)]) for n in range(3)]
    with Cluster(small_cluster.uri) as cluster:
        set_aside(cluster, damage(small_cluster, ids[1]))
    with pytest.raises(NoSuchEntryError, match="offsets 10 to 19 cannot be read; read up to"):
        planned(source_of(small_cluster))
    found = planned(source_of(small_cluster, failOnDataLoss="false"))
    assert sorted(found) == [*range(10), *range(20, 30)]


def test_rows_of_a_record_that_is_only_missing_are_never_left_out(
    small_cluster: Any, numbers: Callable[[int, int], pa.Table]
) -> None:
    ids = [small_cluster.append("a", [numbers(10 * n, 10 * n + 10)]) for n in range(3)]
    with Cluster(small_cluster.uri) as cluster:
        cluster.store.delete(layout.ledger_key(ids[1]))
    with pytest.raises(NoSuchLedgerError):
        planned(source_of(small_cluster, failOnDataLoss="false"))


def test_lost_offsets_are_said_to_be_lost_and_are_no_rows(
    run: Run, damaged: tuple[Any, Any, str]
) -> None:
    cluster, log, key = damaged
    assert run("metadata", "set-aside", key, "--yes")[0] == 0
    with log.writer() as writer:
        writer.append_many(MORE)
    [shown] = json.loads(run("logs", "--json")[1])
    assert (shown["entries"], shown["end_offset"]) == (4, AFTER + 1)
    text = run("log", "show", "a")[1]
    assert f"offsets 3 to {AFTER - 1} are lost: its metadata record was set aside" in text
    rows = json.loads(run("log", "show", "a", "--json")[1])["history"]
    assert [(row["operation"], row["entries"]) for row in rows if row["operation"] == "lost"] == [
        ("lost", None)
    ]
    assert "would delete log a, 4 entries" in "".join(run("log", "delete", "a", "--dry-run")[1:])
    before = ("--before", str(AFTER), "--dry-run")
    assert "would delete 3 entries" in "".join(run("log", "truncate", "a", *before)[1:])
    for verb in ("audit", "status"):
        status, out, err = run(verb)
        assert (status, "were set aside, so their rows are lost" in out + err) == (1, True), verb
    with Cluster(cluster.uri) as opened:
        assert opened.log("a").value.lost_count(5, AFTER + 1) == LOST_ENTRIES - 2


def test_the_backlog_of_a_stream_has_no_lost_offsets(damaged: tuple[Any, Any, str]) -> None:
    cluster, log, key = damaged
    with Cluster(cluster.uri) as opened:
        set_aside(opened, key)
    with log.writer() as writer:
        writer.append_many(MORE)
    source = source_of(cluster, failOnDataLoss="false", maxEntriesPerTrigger="2")
    reader = source.streamReader(source.schema())
    at = reader.initialOffset()
    assert reader.latestOffset(at, ReadMaxRows(2))["offset"] == 2
    assert reader.reportLatestOffset()["backlogEntries"] == 2


def test_a_compaction_leaves_out_a_ledger_that_was_set_aside(
    run: Run, small_cluster: Any, numbers: Callable[[int, int], pa.Table]
) -> None:
    for first in range(5):
        small_cluster.append("a", [numbers(first, first + 1)])
    key = damage(small_cluster, 2)
    assert run("compact", "a")[0] == 1  # the record may come back
    assert run("metadata", "set-aside", key, "--yes")[0] == 0
    status, _, err = run("compact", "a")
    assert (status, err.startswith("compact: 4 ledgers, 2 new ledgers")) == (0, True)
    with Cluster(small_cluster.uri) as cluster:
        assert [one.first_offset for one in cluster.log("a").value.every_ledger()] == [0, 2, 3]
        store = cluster.store
        cluster.store.delete(layout.ledger_key(5))
        assert store.get(layout.ledger_key(5)) is None
    small_cluster.append("a", [numbers(5, 6)])
    assert "because of missing metadata records: 5" in "".join(run("audit")[1:])
