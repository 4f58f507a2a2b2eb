"""Logs that are cut at their beginning, read by cursors, sealed and deleted."""

import time

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerFencedError,
    MetadataVersionError,
    NoSuchEntryError,
    NoSuchLedgerError,
)
from bkspark.format import layout
from bkspark.ledger.deleting import delete_log
from bkspark.log.cursors import existing_cursor
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.log_scenes import fill, values
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of, rows_from
from tests.kit.faulty import Crash, Operation, no_fault


@pytest.fixture
def log(keeper: BookKeeper) -> LogHandle:
    return keeper.create_log("wal")


# --- truncation --------------------------------------------------------------------------------


def test_truncation_hides_at_once_and_deletes_whole_ledgers(
    keeper: BookKeeper, log: LogHandle
) -> None:
    added = fill(log, 3, 3, 3)
    ids = log.record.listed_ids
    log.truncate(4)
    assert (log.first_offset, log.end_offset) == (4, 9)
    assert values(log) == added[4:]
    with pytest.raises(NoSuchEntryError):
        log.read(3)
    assert set(keeper.list_ledgers()) == set(ids[1:])
    assert log.record.dropped.ids == ()  # deleted ledgers need not be remembered
    log.truncate(2)
    assert log.first_offset == 4
    with log.writer() as writer:
        assert writer.append(b"x") == 9
    assert values(log) == [*added[4:], b"x"]


def test_truncation_under_a_writer_disturbs_nobody(log: LogHandle) -> None:
    """RB-32: a change of the record by somebody else is not a takeover."""
    with log.writer() as writer:
        for number in range(4):
            writer.append(str(number).encode())
        with pytest.raises(InvalidRequestError, match="up to offset 0") as caught:
            log.truncate(2)
        assert "roll the log first" in caught.value.hint
        writer.roll()
        log.truncate(4)
        assert (log.record.ledgers, log.first_offset) == ((), 4)
        assert writer.append(b"4") == 4
        writer.roll()
        assert writer.append(b"5") == 5
    assert values(log) == [b"4", b"5"]


# --- retention and cursors -----------------------------------------------------------------------


def test_retention_by_size_keeps_what_it_says(log: LogHandle) -> None:
    """Ledger by ledger."""
    added = fill(log, *[5] * 10)
    total = sum(map(len, added))
    log.keep(max_bytes=total // 2)
    log.retain()
    kept = sum(x.length_bytes for x in log.record.ledgers)
    assert total // 2 <= kept < total // 2 + max(x.length_bytes for x in log.record.ledgers)
    assert values(log) == added[log.first_offset :]
    assert log.first_offset in (20, 25)


def test_retention_by_age(log: LogHandle) -> None:
    fill(log, 2, 2)
    log.keep(max_seconds=3600)
    log.retain()
    assert log.first_offset == 0
    log.keep(max_seconds=0)
    time.sleep(0.01)
    log.retain()
    assert log.first_offset == 2  # the last ledger stays
    log.keep()
    assert (log.record.retention.milliseconds, log.record.retention.byte_count) == (None, None)


def test_retention_respects_cursors_if_asked(log: LogHandle) -> None:
    fill(log, 2, 2, 2)
    log.keep(max_bytes=0)
    cursor = log.cursor("mail", start=3)
    log.retain()
    assert log.first_offset == 2
    cursor.advance(5)
    log.retain()
    assert log.first_offset == 4
    fill(log, 2, 2)
    log.retain(respects_cursors=False)
    assert log.first_offset == 8
    with pytest.raises(NoSuchEntryError):
        log.read(log.cursor("mail").offset)


def test_a_cursor_is_durable_and_moved_by_one_at_a_time(
    rig: Rig, keeper: BookKeeper, log: LogHandle
) -> None:
    fill(log, 5)
    cursor = log.cursor("mail")
    assert cursor.offset == 0
    cursor.advance(3)
    cursor.advance(3)
    with BookKeeper(rig.uri) as other:
        theirs = other.open_log("wal").cursor("mail", start=0)
        assert theirs.offset == 3
        theirs.advance(4)
    with pytest.raises(MetadataVersionError, match="another client moved"):
        cursor.advance(5)
    assert [(c.name, c.offset) for c in log.cursors] == [("mail", 4)]
    with pytest.raises(InvalidRequestError):
        log.cursor("mail").advance(6)
    with pytest.raises(NoSuchEntryError):
        log.cursor("other", start=6)
    with pytest.raises(InvalidRequestError):
        log.cursor("../mail")


def test_a_cursor_that_was_deleted_is_not_moved(keeper: BookKeeper, log: LogHandle) -> None:
    fill(log, 2)
    log.cursor("mail").delete()
    with pytest.raises(NoSuchLedgerError, match="has no cursor 'mail'"):
        existing_cursor(keeper._cluster, "wal", "mail", lambda: 2)


def test_a_cursor_whose_maker_died_may_lie_below_and_says_what_to_do(memory_rig: Rig) -> None:
    """Killed behind the cursor and in front of the log, which was truncated in between."""
    rig = memory_rig
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log("wal")
        added = fill(log, 2, 2, 2)
        log.keep(max_bytes=0)

        def truncate_and_die(_number: int, operation: Operation) -> None:
            if (operation.call, operation.name) == ("put", layout.log_key("wal")):
                rig.faults.decide = no_fault
                log.truncate(4)
                raise Crash

        rig.faults.decide = truncate_and_die
        with rig.faults.installed(), BookKeeper(rig.uri) as dying, pytest.raises(Crash):
            dying.open_log("wal").cursor("mail")
        cursor = log.cursor("mail")
        assert (cursor.offset, log.first_offset) == (0, 4)
        with pytest.raises(NoSuchEntryError, match="below offset 4, so offset 0 cannot") as caught:
            log.read(cursor.offset)
        assert "advance the cursor" in caught.value.hint
        cursor.advance(4)
        assert values(log, cursor.offset) == added[4:]


def test_a_cursor_of_another_generation_is_recognised(keeper: BookKeeper, log: LogHandle) -> None:
    fill(log, 2)
    cursor = log.cursor("mail", start=1)
    delete_log(keeper._cluster, "wal")
    again = keeper.create_log("wal")
    fill(again, 2, 2)
    again.keep(max_bytes=0)
    again.retain()
    assert again.first_offset == 2  # it does not hold back what it has nothing to do with
    with pytest.raises(NoSuchEntryError, match="generation 1"):
        _ = again.cursor("mail").offset
    with pytest.raises(NoSuchEntryError):
        cursor.advance(2)
    again.cursor("mail").delete()
    assert again.cursors == []
    with pytest.raises(NoSuchLedgerError):
        cursor.delete()
    assert again.cursor("mail").offset == 2


# --- the seal ------------------------------------------------------------------------------------


def test_a_sealed_log_ends_its_writer_and_takes_nothing(rig: Rig, keeper: BookKeeper) -> None:
    log = keeper.create_log(rig.log_name, schema=SCHEMA)
    writer = log.writer()
    writer.append_many(pa.Table.from_batches([rows_from(0, 3)]))
    log.seal()
    log.seal()
    with pytest.raises(LedgerFencedError):
        writer.append_many(pa.Table.from_batches([rows_from(3, 3)]))
    with pytest.raises(LedgerFencedError):
        writer.close()
    with pytest.raises(LedgerClosedError, match="sealed"):
        log.writer()
    with pytest.raises(LedgerClosedError, match="sealed"):
        rig.write(partitions_of(2))
    with pytest.raises(LedgerClosedError, match="sealed"):
        rig.write(partitions_of(2), is_overwrite=True)
    assert log.is_sealed
    assert rig.rows() == flat(partitions_of(3))


def test_deleting_a_log_ends_its_writer(keeper: BookKeeper, log: LogHandle) -> None:
    writer = log.writer()
    writer.append(b"a")
    [gone] = delete_log(keeper._cluster, "wal")
    assert gone == writer.ledger_id
    with pytest.raises(NoSuchLedgerError):
        writer.append(b"b")
    writer.release()
    seen = keeper._cluster.ledgers.get(str(gone))
    assert seen is not None
    assert seen.value.state is LedgerState.DELETING
