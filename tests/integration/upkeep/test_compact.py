"""A log that is compacted has the same rows at the same offsets, in fewer ledgers."""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from bkspark import verbs
from bkspark.admin.views import history
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    InvalidRequestError,
    NoSuchLedgerError,
    UnauthorizedError,
)
from bkspark.log import compaction
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.truncation import truncate
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log import compaction as choosing
from tests.integration.log_scenes import NAME, fill, values
from tests.integration.rig import LOG, SCHEMA, Rig, compressed, partitions_of, rows_from
from tests.small_pages import pages_of

from .scenes import take
from .small_ledgers import compacted, filled, ids

PASSWORD = Password(literal="open sesame")


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=4)


# --- what comes of it -----------------------------------------------------------------------------


def test_batches_become_one_ledger_with_the_same_rows_at_the_same_offsets(rig: Rig) -> None:
    rows = filled(rig)
    before, replaced = rig.log(), ids(rig)
    report = compacted(rig)
    after = rig.log()
    assert before is not None
    assert after is not None
    assert rig.rows() == rows
    [place] = after.ledgers
    assert report.done == {"ledgers": 5, "new ledgers": 1, "bytes": before.length_bytes}
    assert report.plan["bytes_to_write"] == 3 * before.length_bytes
    assert after.length_bytes == before.length_bytes
    assert (place.first_offset, place.entry_count) == (0, 35)
    assert place.closed_ms == before.ledgers[-1].closed_ms
    assert after.dropped.ids == replaced
    assert rig.ledger(place.ledger_id).length_bytes == before.length_bytes
    assert compacted(rig).done == {"ledgers": 0, "new ledgers": 0, "bytes": 0}
    assert verbs.audit(rig.uri).left == []


def test_entries_of_writers_become_one_ledger_and_the_one_who_writes_goes_on(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME)
        sent = fill(log, 2, 1, 3, 1)
        with log.writer() as writer:
            writer.append(b"before")
            open_ledger = writer.ledger_id
            assert compacted(rig, NAME).done["ledgers"] == 4
            assert log.record.tail == (open_ledger,)
            assert writer.append(b"behind") == 8
            writer.roll()
            writer.append(b"last")
        assert values(log) == [*sent, b"before", b"behind", b"last"]
        assert values(log, 3, 5) == sent[3:5]
        assert list(log.follow(timeout=0))[4].value == sent[4]
        assert log.cursor("reader", 5).offset == 5
        assert compacted(rig, NAME).done["ledgers"] == 3
        assert values(log) == [*sent, b"before", b"behind", b"last"]


def test_a_dry_run_changes_nothing_and_prints_the_plan_that_is_carried_out(rig: Rig) -> None:
    filled(rig)
    before = rig.log()
    plan = compacted(rig, dry_run=True)
    assert rig.log() == before
    assert (plan.done, len(plan.details["runs"])) == ({}, 1)
    assert compacted(rig).plan == plan.plan


def test_ledgers_are_cut_by_bytes_and_large_ones_stay(rig: Rig) -> None:
    rows = filled(rig, 6)
    log = rig.log()
    assert log is not None
    target = log.ledgers[0].length_bytes * 2
    assert compacted(rig, target_bytes=target + 40).done["new ledgers"] == 3
    assert compacted(rig, target_bytes=target + 40).done["ledgers"] == 0
    assert compacted(rig, target_bytes=16).done["ledgers"] == 0
    assert rig.rows() == rows


def test_rows_are_read_in_pieces_that_fit_into_memory(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = filled(rig)
    for size in (1, 50, 333):
        monkeypatch.setattr(compaction, "WINDOW_BYTES", size)
        filled(rig, 1)
        assert compacted(rig).done["ledgers"] == (2 if size > 1 else 6)
    assert rig.rows()[: len(rows)] == rows


def test_a_log_with_pages_stays_short(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "RUN_LENGTH_MAX", 5)
    with pages_of(2):
        rows = filled(rig, 24)
        before = rig.log()
        assert before is not None
        assert before.older
        report = compacted(rig)
    assert report.done == {"ledgers": 24, "new ledgers": 5, "bytes": before.length_bytes}
    after = rig.log()
    assert after is not None
    assert (rig.rows(), after.ledger_count) == (rows, 5)
    assert len(after.stretches) <= len(before.stretches)
    assert sorted(after.every_dropped_id()) == sorted(before.listed_ids)
    assert verbs.collect(rig.uri, abandoned_after=0).left == []
    found = rig.log()
    assert found is not None
    assert not found.has_any_dropped
    assert rig.rows() == rows


def test_where_the_columns_change_a_ledger_ends(rig: Rig) -> None:
    filled(rig, 2)
    wider = pa.schema([*SCHEMA, ("more", pa.int32())])
    batch = rows_from(50, 4)
    more = pa.record_batch([*batch.columns, pa.array([1, None, 3, 4], pa.int32())], schema=wider)
    for _ in range(2):
        rig.write([[more]], schema=wider, merges_schema=True)
    before = rig.rows()
    assert compacted(rig).done["new ledgers"] == 2
    assert rig.rows() == before
    assert len(ids(rig)) == 2
    assert compacted(rig).done["ledgers"] == 0


def test_a_password_is_needed_and_kept(rig: Rig) -> None:
    rows = filled(rig, 3, digest_type="MAC", password=PASSWORD)
    before = rig.log()
    for password in ("", "wrong"):
        with pytest.raises(UnauthorizedError):
            verbs.compact(rig.uri, log=LOG, password=password)
    assert rig.log() == before
    assert compacted(rig, password=PASSWORD.literal).done["ledgers"] == 3
    assert rig.rows(password=PASSWORD) == rows
    with pytest.raises(UnauthorizedError):
        rig.rows()


def test_what_was_compressed_is(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    sizes = {}
    for codec in ("none", "zstd"):
        rig.log_name = codec
        rig.blocks = replace(compressed(rig.blocks, codec), rows_per_block=10_000)
        text = pa.array(["always the same text " * 20] * 500)
        batch = pa.record_batch([pa.array(range(500), pa.int64()), text], schema=SCHEMA)
        for _ in range(2):
            rig.write([[batch]])
        compacted(rig, codec)
        [ledger_id] = ids(rig)
        folder = f"{ledger_id:016x}"
        names = [name for name in rig.names("bookie-1") if folder in name]
        sizes[codec] = sum(len(rig.file_bytes("bookie-1", name)) for name in names)
    assert sizes["zstd"] * 5 < sizes["none"]


def test_transactions_streams_and_versions_stay(rig: Rig) -> None:
    for version in range(3):
        rig.write(partitions_of(2, first=version), transaction=Transaction("app", version))
    compacted(rig)
    assert rig.write(partitions_of(9), transaction=Transaction("app", 2)).row_count == 0
    rig.write(partitions_of(1, first=7), transaction=Transaction("app", 3))
    with Cluster(rig.uri) as cluster:
        shown = [
            (row["version"], row["operation"], row["entries"]) for row in history(cluster, LOG)
        ]
    assert shown == [(2, "compact", 6), (3, "append", 1)]


# --- what is left alone ---------------------------------------------------------------------------


def test_there_must_be_such_a_log_and_a_number(rig: Rig) -> None:
    with pytest.raises(NoSuchLedgerError, match="there is no log"):
        verbs.compact(rig.uri, log="missing")
    filled(rig, 1)
    for options in ({"target_bytes": 0}, {"max_bytes_per_second": 0}, {"target_bytes": 1.5}):
        with pytest.raises(InvalidRequestError):
            verbs.compact(rig.uri, log=LOG, **options)  # type: ignore[arg-type]


def test_rows_that_nobody_gives_are_left_with_the_reason_and_others_are_compacted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "RUN_LENGTH_MAX", 2)
    rows = filled(rig, 4)
    bad = ids(rig)[2]
    for bookie_id in rig.urls:
        if any(f"{bad:016x}" in name for name in rig.names(bookie_id)):
            take(rig, bookie_id, "/entries/", bad)
    report = verbs.compact(rig.uri, log=LOG)
    assert report.exit_status == 1
    [left] = report.left
    assert left.subject == f"offsets 14 to 27 of log {LOG}"
    assert "no replica gives offset" in left.reason
    assert report.done["ledgers"] == 2
    log = rig.log()
    assert log is not None
    assert (log.ledger_count, bad in log.listed_ids) == (3, True)
    assert log.dropped.to_delete == ()
    found = rig.batches(SliceReader(SCHEMA), 0, 14)
    assert sorted(tuple(r.values()) for batch in found for r in batch.to_pylist()) == rows[:14]


def test_one_copy_is_enough_and_a_bookie_that_is_away_is_done_without(rig: Rig) -> None:
    rows = filled(rig, 4)
    away = rig.ledger(ids(rig)[0]).last_fragment.ensemble[0].bookie_id
    lost = rig.lose(away)
    assert compacted(rig).done["ledgers"] == 4
    assert rig.rows() == rows
    rig.bring_back(away, lost)
    assert rig.rows() == rows
    [ledger_id] = ids(rig)
    assert all(len(holders) == 3 for holders in rig.good_copies(ledger_id).values())


def test_what_is_truncated_in_part_stays_and_is_hidden_still(rig: Rig) -> None:
    rows = filled(rig, 4)
    with Cluster(rig.uri) as cluster:
        truncate(cluster, LOG, 9)
        assert compacted(rig).done["ledgers"] == 2
        log = cluster.log(LOG).value
        assert (log.first_offset, log.ledger_count) == (9, 2)
        assert rig.rows() == rows[9:]
        truncate(cluster, LOG, 16)
        assert rig.rows() == rows[16:]
