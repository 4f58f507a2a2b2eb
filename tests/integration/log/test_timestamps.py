"""The column ``_timestamp`` of reads: the times by which ``offset_at`` finds offsets."""

import pickle
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType, TimestampType

from bkspark import environment, verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema
from bkspark.log.batch import commit as batch_commit
from bkspark.log.reading.log_view import LogView
from bkspark.log.reading.read_slices import _least_times
from bkspark.log.reading.slice_reader import times_of_rows
from bkspark.log.reading.slices import LedgerToRead
from bkspark.protocol.ledger.metadata import DigestSpec, TimeStep
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LedgerList, LogSettings
from bkspark.protocol.log.ledger_list import LoggedLedger
from bkspark.protocol.log.record import LogRecord
from bkspark.spark.source import BookKeeperDataSource
from tests.integration.log_scenes import SILENT
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import Driver

T = 1_700_000_000_000
NUMBERS = pa.schema([("n", pa.int64())])


class Clock:
    """The clock of all hosts."""

    now = T

    def at(self, ms: int) -> None:
        self.now = T + ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(environment, "now_ms", lambda: clock.now)
    return clock


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "cluster", bookie_count=3)


def stamps(rig: Rig, place: str = "_offset", **at: Any) -> list[int]:
    """When each entry was committed, in the order of the log; the offsets are checked."""
    given = {"metadataServiceUri": rig.uri, **({} if at else {"path": rig.log_name}), **at}
    source = BookKeeperDataSource({name: str(value) for name, value in given.items()})
    columns = StructType().add(place, LongType()).add("_timestamp", TimestampType())
    reader = source.reader(columns)
    parts = pickle.loads(pickle.dumps(reader.partitions()))
    batches = [batch for part in parts for batch in reader.read(part)]
    rows = sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())
    assert [row[0] for row in rows] == list(range(rows[0][0], rows[0][0] + len(rows)))
    return [round(row[1].timestamp() * 1000) - T for row in rows]


def require_searched(rig: Rig) -> list[int]:
    """The times, after a check that a search by time agrees with them."""
    found = stamps(rig)
    assert found == sorted(found)
    log = BookKeeper(rig.uri).open_log(rig.log_name)
    first = log.first_offset
    for ms in {*found, found[0] - 1, found[-1] + 1}:
        expected = next((n for n, time in enumerate(found) if time >= ms), len(found))
        assert log.offset_at(T + ms) == first + expected, ms
    return found


def test_writes_that_overtake_one_another_and_their_compaction(rig: Rig, clock: Clock) -> None:
    rig.write(partitions_of(1))
    target = rig.target()
    reports = rig.tasks(target, partitions_of(2, 1))
    clock.at(50)
    rig.write(partitions_of(2))
    clock.at(40)
    batch_commit.commit(target, reports)
    clock.at(90)
    rig.write(partitions_of(1))
    expected = [0, 50, 50, 50, 50, 50, 90]
    assert require_searched(rig) == expected
    verbs.compact(rig.uri, log=rig.log_name)
    assert require_searched(rig) == expected
    rig.write(partitions_of(3))
    assert require_searched(rig) == [*expected, 90, 90, 90]


@pytest.mark.parametrize("is_unbounded", [False, True])
def test_handles_with_an_open_tail(rig: Rig, clock: Clock, *, is_unbounded: bool) -> None:
    log = BookKeeper(rig.uri).create_log(rig.log_name, schema=NUMBERS, unbounded=is_unbounded)
    clock.at(70)
    with log.writer(settings=SILENT) as writer:
        for ms in (70, 80):
            clock.at(ms)
            writer.append_many(pa.table({"n": [1, 2]}))
        writer.roll()
    clock.at(20)
    with log.writer(settings=SILENT) as writer:
        for ms in (20, 95, 96):
            clock.at(ms)
            writer.append_many(pa.table({"n": [1]}))
        found = require_searched(rig)
        assert found[:6] == [70, 70, 80, 80, 80, 95]
    assert require_searched(rig) == [70, 70, 80, 80, 80, 95, 96]
    assert stamps(rig, "_entry_id", ledgerId=log.ledgers[0].ledger_id)[:4] == [70, 70, 80, 80]


def test_micro_batches_in_one_ledger(rig: Rig, clock: Clock) -> None:
    driver = Driver(rig)
    for number, ms in enumerate((50, 70, 60)):
        clock.at(ms)
        driver.run(number)
    assert require_searched(rig) == [50] * 10 + [70] * 20


def test_rows_of_a_tail_are_not_before_those_of_the_ledgers_before_it() -> None:
    closed = LoggedLedger(7, 0, 1, 0, first_ms=3, last_ms=50)
    log = LogRecord("a", LogSettings(Quorum(3, 3, 2)), arrow_schema.encode(NUMBERS))
    log = replace(log, listed=LedgerList(ledgers=(closed,)))
    tail = (LoggedLedger(8, 1, 2, 0, first_ms=20, last_ms=60), LoggedLedger(9, 3, 1, 0))
    assert _least_times(LogView(log, tail)) == {8: 50, 9: 60}
    ledger = LedgerToRead(8, b"", DigestSpec(), first_offset=1, stripe_count=1, least_ms=50)
    found = times_of_rows((TimeStep(0, 20), TimeStep(1, 60)), ledger, 0, 2)
    assert found.cast(pa.int64()).to_pylist() == [50_000, 60_000]


@pytest.mark.parametrize("stride", [1, 3])
def test_steps_of_a_record_are_found_in_each_stripe(stride: int) -> None:
    steps = (TimeStep(100, 5), TimeStep(103, 6), TimeStep(104, 7), TimeStep(110, 2**63 - 1))
    ledger = LedgerToRead(0, b"", DigestSpec(), first_offset=0, stripe_count=stride)
    for first in range(100, 112):
        for count in range(1, 6):
            entries = range(first, first + count * stride, stride)
            expected = [[s.ms for s in steps if s.first_entry_id <= one][-1] for one in entries]
            found = times_of_rows(steps, ledger, first, count).cast(pa.int64()).to_pylist()
            assert found == [min(ms, (2**63 - 1) // 1000) * 1000 for ms in expected]


def test_a_stream_and_a_schema_show_times(rig: Rig, clock: Clock) -> None:
    rig.write(partitions_of(2))
    given = {"metadataServiceUri": rig.uri, "path": rig.log_name, "includeMetadata": "true"}
    source = BookKeeperDataSource(given)
    schema = source.schema()
    assert schema.names[-4:] == ["_offset", "_ledger_id", "_entry_id", "_timestamp"]
    assert schema["_timestamp"].dataType.simpleString() == "timestamp"
    reader = source.streamReader(schema)
    begin = reader.initialOffset()
    end = reader.latestOffset(begin, reader.getDefaultReadLimit())
    parts = reader.partitions(begin, end)
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert [row["_timestamp"] for row in rows] == [datetime.fromtimestamp(T / 1000, UTC)] * 2
    reader.stop()


@pytest.mark.parametrize("name", ["_timestamp", "_TIMESTAMP"])
def test_no_column_of_a_log_has_its_name(rig: Rig, name: str) -> None:
    with pytest.raises(InvalidRequestError, match="is reserved"):
        BookKeeper(rig.uri).create_log(rig.log_name, schema=pa.schema([(name, pa.int64())]))
