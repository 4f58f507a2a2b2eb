"""Opening a log: what it does to batches and to runs of streams, and what it costs."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import (
    InvalidRequestError,
    LedgerFencedError,
    UnauthorizedError,
)
from bkspark.format import arrow_schema
from bkspark.log.creating import create_log_ledger
from bkspark.log.recovering import close_tail
from bkspark.log.tail import LogTail, RowsToWrite
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.log.contents import DroppedLedgers
from bkspark.protocol.log.ledger_list import LoggedLedger
from bkspark.protocol.log.stream_run import StreamRun
from tests.integration.log_scenes import NAME, SILENT, assert_sound
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of, rows_from
from tests.log_with import log_with


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


# --- batch writes under an open writer -------------------------------------------------------


@pytest.mark.parametrize("is_overwrite", [False, True])
def test_a_batch_displaces_an_open_writer(rig: Rig, keeper: BookKeeper, is_overwrite: bool) -> None:
    log = keeper.create_log(rig.log_name, schema=SCHEMA)
    writer = log.writer(settings=SILENT)
    writer.append_many(pa.Table.from_batches([rows_from(0, 3)]))
    rig.write(partitions_of(2, first=3), is_overwrite=is_overwrite)
    with pytest.raises(LedgerFencedError):
        writer.append_many(pa.Table.from_batches([rows_from(9, 1)]))
    with pytest.raises(LedgerFencedError):
        writer.close()
    expected = flat(partitions_of(2, first=3)) if is_overwrite else flat(partitions_of(5))
    assert rig.rows() == expected
    assert_sound(log)
    assert log.record.generation == (2 if is_overwrite else 1)
    with log.writer() as again:
        assert again.append_many(pa.Table.from_batches([rows_from(0, 1)]))[0] == len(expected)


# --- what streaming sinks need of it ---------------------------------------------------------


def test_an_older_run_of_a_query_fences_nobody(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    cluster, secret = keeper._cluster, Password()
    first, second = StreamRun("q", "r1"), StreamRun("q", "r2")
    LogTail(cluster, NAME, secret, run=first).open()
    tail = LogTail(cluster, NAME, secret, run=second).open()
    with pytest.raises(LedgerFencedError, match="newer run"):
        LogTail(cluster, NAME, secret, run=first).open()
    assert cluster.ledger(tail.ledger.value.ledger_id).value.state is LedgerState.OPEN
    assert log.record.tail == (tail.ledger.value.ledger_id,)
    assert log.record.committed.streams == {"q": ("r1", "r2")}


def test_an_open_ledger_is_adopted_or_refused(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    cluster, secret = keeper._cluster, Password()
    own = create_log_ledger(cluster, log.record, secret).seen.value.ledger_id
    tail = LogTail(cluster, NAME, secret, adopted=own).open()
    assert (tail.ledger.value.ledger_id, tail.first_offset) == (own, 0)
    assert LogTail(cluster, NAME, secret, adopted=own).open() == tail  # already there: not fenced
    other = create_log_ledger(cluster, log.record, secret).seen.value.ledger_id
    keeper.recover_ledger(other)
    with pytest.raises(LedgerFencedError):
        LogTail(cluster, NAME, secret, adopted=other).open()


def test_rows_with_more_columns_widen_the_log_or_are_refused_before_any_fence(
    keeper: BookKeeper,
) -> None:
    log = keeper.create_log(NAME, schema=SCHEMA)
    cluster, secret = keeper._cluster, Password()
    before = LogTail(cluster, NAME, secret).open().ledger.value.ledger_id
    wider = pa.schema([*SCHEMA, ("t", pa.int8())])
    with pytest.raises(InvalidRequestError, match="unexpected column t"):
        LogTail(cluster, NAME, secret, RowsToWrite(arrow_schema.encode(wider))).open()
    assert cluster.ledger(before).value.state is LedgerState.OPEN
    tail = LogTail(cluster, NAME, secret, RowsToWrite(arrow_schema.encode(wider), True)).open()
    assert log.schema == wider == arrow_schema.decode(tail.ledger.value.settings.schema)
    assert cluster.ledger(before).value.state is LedgerState.CLOSED


def test_settling_closes_the_tail_and_is_done_once(rig: Rig, keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    writer = log.writer(settings=SILENT)
    writer.append(b"a")
    settled = close_tail(keeper._cluster, NAME, Password())
    assert (settled.value.tail, settled.value.end_offset) == ((), 1)
    assert close_tail(keeper._cluster, NAME, Password()) == settled
    with pytest.raises(LedgerFencedError):
        writer.append(b"b")


# --- cost ------------------------------------------------------------------------------------


def test_opening_costs_the_same_however_many_ledgers_a_log_has(
    rig: Rig, keeper: BookKeeper
) -> None:
    log = keeper.create_log(NAME)
    costs = []
    for count in (100, 10_000):
        places = tuple(LoggedLedger(10**6 + n, n, 1, 1) for n in range(count))
        keeper._cluster.logs.update(
            NAME,
            lambda record, places=places: log_with(
                record, ledgers=places, tail=(), dropped=DroppedLedgers()
            ),
        )
        with rig.faults.installed():
            mine = BookKeeper(rig.uri).open_log(NAME)
            rig.faults.forget()
            with mine.writer(settings=SILENT):
                costs.append([(op.call, op.name) for op in rig.faults.trace].__len__())
        assert log.record.end_offset == count
    assert costs[0] == costs[1]


@pytest.mark.parametrize("password", [Password(), Password(literal="wrong")])
def test_a_wrong_password_changes_nothing_where_no_tail_is_open(
    keeper: BookKeeper, password: Password
) -> None:
    log = keeper.create_log(NAME, digest_type="MAC", password="right")
    cluster, before = keeper._cluster, log.record
    assert not before.tail
    with pytest.raises(UnauthorizedError):
        LogTail(cluster, NAME, password).open()
    assert log.record == before
    assert cluster.ledger_ids() == []


def test_a_wrong_password_adopts_nothing(keeper: BookKeeper) -> None:
    """The log was made anew, with another password, since the ledger was made for it."""
    log = keeper.create_log(NAME, digest_type="MAC", password="right")
    cluster, before = keeper._cluster, log.record
    made = create_log_ledger(cluster, before, Password(literal="right"))
    with pytest.raises(UnauthorizedError):
        LogTail(cluster, NAME, Password(literal="wrong"), adopted=made.seen.value.ledger_id).open()
    assert log.record == before
    made.begun.close()
