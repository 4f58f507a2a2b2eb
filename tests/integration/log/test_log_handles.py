"""Log handles: offsets, rolling, reading, truncation, retention, cursors, the seal."""

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.records import SENT_AGAIN_MAX
from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerExistsError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
    UnauthorizedError,
)
from bkspark.format import layout
from bkspark.ledger.deleting import delete_log
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.log.log_handle import LogHandle
from bkspark.log.log_writer import LogWriter
from bkspark.log.tail import LogTail
from tests.integration.log_scenes import (
    SILENT,
    fill,
    values,
)
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of, rows_from
from tests.integration.waiting import wait_until
from tests.kit.faulty import Fault, Operation
from tests.thorough import always


@pytest.fixture
def log(keeper: BookKeeper) -> LogHandle:
    return keeper.create_log("wal")


# --- writing and reading -------------------------------------------------------------------------


def test_offsets_are_dense_over_rolls_and_writers(log: LogHandle) -> None:
    with log.writer() as writer:
        assert [writer.append(b"a"), writer.append(b"b")] == [0, 1]
        writer.roll()
        assert writer.append_many([b"c", b"d"]) == (2, 3)
    with log.writer() as writer:
        assert writer.append_async(b"e").result(120) == 4
        writer.force()
        assert writer.end_offset == 5
    assert values(log) == [b"a", b"b", b"c", b"d", b"e"]
    assert values(log, 1, 3) == [b"b", b"c"]
    assert [(x.first_offset, x.entry_count) for x in log.ledgers] == [(0, 2), (2, 2), (4, 1)]
    assert (log.record.tail, log.record.dropped.ids) == ((), ())


def test_a_log_of_rows_is_written_and_read_as_tables(keeper: BookKeeper) -> None:
    log = keeper.create_log("rows", schema=SCHEMA)
    with log.writer() as writer:
        assert writer.append_many(pa.Table.from_batches([rows_from(0, 3)])) == (0, 2)
        writer.roll()
        assert writer.append_many(pa.Table.from_batches([rows_from(3, 2)])) == (3, 4)
        with pytest.raises(InvalidRequestError):
            writer.append(b"bytes")
    found = log.read_arrow(1, 4)
    assert found.schema.names == ["n", "s", "_offset"]
    assert found.column("_offset").to_pylist() == [1, 2, 3] == found.column("n").to_pylist()
    with pytest.raises(InvalidRequestError, match="holds rows"):
        log.read()


def test_an_empty_log_has_a_schema_and_no_rows(log: LogHandle) -> None:
    assert values(log) == []
    assert log.read_arrow().schema.names == ["value", "_offset"]
    assert (log.first_offset, log.end_offset, log.ledgers) == (0, 0, [])


def test_a_name_in_use_is_refused(keeper: BookKeeper, log: LogHandle) -> None:
    with pytest.raises(LedgerExistsError, match="there is a log 'wal' already"):
        keeper.create_log("wal")
    with pytest.raises(NoSuchLedgerError):
        keeper.open_log("other")


def test_a_log_that_was_deleted_is_created_anew(keeper: BookKeeper, log: LogHandle) -> None:
    fill(log, 2)
    delete_log(keeper._cluster, "wal")
    again = keeper.create_log("wal")
    assert (again.record.generation, values(again)) == (2, [])


def test_a_log_with_a_password_needs_it(keeper: BookKeeper) -> None:
    log = keeper.create_log("secret", digest_type="MAC", password="sesame")
    with log.writer() as writer:
        writer.append(b"x")
        with pytest.raises(UnauthorizedError):
            keeper.open_log("secret", password="wrong")
        with pytest.raises(UnauthorizedError):
            LogHandle(keeper._cluster, "secret", log._password.__class__()).writer()
        assert writer.append(b"y") == 1  # nobody was fenced
    assert values(keeper.open_log("secret", password="sesame")) == [b"x", b"y"]


def test_a_batch_goes_behind_what_a_log_writer_wrote(rig: Rig, keeper: BookKeeper) -> None:
    log = keeper.create_log(rig.log_name, schema=SCHEMA)
    with log.writer() as writer:
        writer.append_many(pa.Table.from_batches([rows_from(0, 3)]))
    rig.write(partitions_of(2, 2, first=3))
    with log.writer() as writer:
        assert writer.append_many(pa.Table.from_batches([rows_from(7, 1)])) == (7, 7)
    assert rig.rows() == flat(partitions_of(8))


def test_leaving_by_an_error_leaves_the_log_to_recovery(log: LogHandle) -> None:
    writer = log.writer()
    with pytest.raises(ZeroDivisionError), writer:
        raise ZeroDivisionError(writer.append(b"a"))
    assert log.record.tail == (writer.ledger_id,)
    with log.writer() as writer:
        assert writer.append(b"b") == 1
    assert values(log) == [b"a", b"b"]


def test_a_writer_that_was_closed_takes_nothing(log: LogHandle) -> None:
    writer = log.writer()
    writer.close()
    writer.close()
    with pytest.raises(LedgerClosedError, match="sent nothing"):
        writer.append(b"x")
    with pytest.raises(LedgerClosedError):
        writer.roll()
    assert (log.record.tail, log.record.ledgers) == ((), ())


def test_a_follower_sees_every_entry_once_over_rolls_and_takeovers(log: LogHandle) -> None:
    seen: list[bytes] = []
    follower = threading.Thread(
        target=lambda: seen.extend(e.value for e in log.follow(timeout=30)), daemon=True
    )
    follower.start()
    added = []
    for turn in range(3):
        with log.writer(roll_entries=3) as writer:
            for number in range(7):
                added.append(f"{turn}-{number}".encode())
                writer.append(added[-1])
    log.seal()
    follower.join(60)
    assert seen == added


def test_waiting_for_an_offset(log: LogHandle) -> None:
    assert not log.wait_for(0, timeout=0.1)
    with log.writer() as writer:
        writer.append(b"x")
        assert log.wait_for(0, timeout=20)
    log.seal()
    assert not log.wait_for(1, timeout=20)


# --- rolling -------------------------------------------------------------------------------------


def append_until_rolled(writer: LogWriter, rolls: int) -> int:
    """Rolling goes on beside the adds, so it is not known which ledger takes which; how many."""
    count, deadline = 0, time.monotonic() + 60
    for _ in range(rolls):
        before = writer.ledger_id
        while writer.ledger_id == before:
            assert time.monotonic() < deadline
            assert writer.append(bytes(30)) == count
            count += 1
    return count


@pytest.mark.parametrize("limit", [{"roll_entries": 3}, {"roll_bytes": 100}, {"roll_seconds": 0.1}])
def test_a_writer_rolls_by_itself(log: LogHandle, limit: dict[str, float]) -> None:
    with log.writer(**limit) as writer:  # type: ignore[arg-type]
        count = append_until_rolled(writer, 3)
    assert len(log.record.ledgers) >= 3
    assert len(values(log)) == count
    assert log.record.tail == ()


@pytest.mark.parametrize(
    "limit", always([{"roll_entries": 50}], [{"roll_entries": 50}, {"roll_bytes": 1500}])
)
def test_no_ledger_gets_more_than_twice_its_limit(
    log: LogHandle, limit: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However fast entries are added, and whatever waits while a ledger is made or closes."""

    def slowly(work: Callable[..., Any], *seconds: float) -> Callable[..., Any]:
        waits = itertools.cycle(seconds)

        def slow(*arguments: Any) -> Any:
            time.sleep(next(waits))
            return work(*arguments)

        return slow

    monkeypatch.setattr(WriteHandle, "close", slowly(WriteHandle.close, 0.05))
    monkeypatch.setattr(LogTail, "roll", slowly(LogTail.roll, 0.0, 0.05))
    with log.writer(**limit) as writer:  # type: ignore[arg-type]
        append = slowly(writer.append_async, 0.0005)  # some of each ledger come while it closes
        futures = [append(bytes(30)) for _ in range(800)]
        assert [future.result(60) for future in futures] == list(range(800))
    assert max(ledger.entry_count for ledger in log.record.ledgers) <= 100
    assert len(values(log)) == 800


def test_a_ledger_that_is_full_when_a_roll_ends_is_rolled_before_more_is_added(
    log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was begun in mid-roll, and filled while the ledger before was given its place."""
    settle, create = LogWriter._list_closed, LogTail.roll
    is_filled, is_added = threading.Event(), threading.Event()

    def settle_late(writer: LogWriter, *given: Any) -> None:
        is_filled.wait(60)
        settle(writer, *given)

    def create_late(*arguments: Any) -> Any:
        if is_filled.is_set():
            is_added.wait(60)
        return create(*arguments)

    monkeypatch.setattr(LogWriter, "_list_closed", settle_late)
    with log.writer(roll_entries=2) as writer:
        ledger_id = writer.ledger_id
        futures = [writer.append_async(b"a") for _ in range(2)]
        wait_until(lambda: writer.ledger_id != ledger_id)
        monkeypatch.setattr(LogTail, "roll", create_late)
        futures += [writer.append_async(b"b") for _ in range(2)]
        is_filled.set()
        futures += [writer.append_async(b"c") for _ in range(2)]
        threading.Timer(0.5, is_added.set).start()  # who does not wait for it has added by then
        futures += [writer.append_async(b"d")]
        assert [future.result(60) for future in futures] == list(range(7))
    assert max(ledger.entry_count for ledger in log.record.ledgers) <= 4


def test_a_roll_that_finds_no_place_leaves_the_ledger_as_it_is(rig: Rig) -> None:
    """The old one goes on, and the next roll is tried after as much again."""
    with BookKeeper(rig.uri) as keeper, rig.faults.installed():
        faulty = BookKeeper(rig.uri).create_log("wal", ensemble_size=5, strict=True)
        with faulty.writer(roll_entries=2) as writer:
            assert writer.append(b"a") == 0
            rig.faults.down = {"bookie-1"}
            with pytest.raises(NotEnoughBookiesError):
                writer.roll()
            rig.faults.down = set()
            append = writer.append(b"b")
            assert append == 1
            writer.roll()
            assert writer.append(b"c") == 2
        assert values(keeper.open_log("wal")) == [b"a", b"b", b"c"]


def test_a_limit_must_be_possible(log: LogHandle) -> None:
    with pytest.raises(InvalidRequestError):
        log.writer(roll_entries=0)


def test_a_place_that_could_not_be_fixed_is_fixed_by_the_next_roll(rig: Rig) -> None:
    """The last step of a roll is lost; readers cope, and the writer is not displaced by itself."""
    with rig.faults.installed():
        log = BookKeeper(rig.uri).create_log("wal")
        writer = log.writer(settings=SILENT)
        writer.append(b"a")
        puts = itertools.count()

        def decide(_number: int, operation: Operation) -> Fault | None:
            is_list = (operation.call, operation.name) == ("put", layout.log_key("wal"))
            is_last_step = is_list and 1 <= next(puts) <= 1 + SENT_AGAIN_MAX
            return Fault() if is_last_step else None

        rig.faults.decide = decide
        writer.roll()
        assert isinstance(writer.roll_error, OutcomeUnknownError)
        assert len(log.record.tail) == 2
        assert values(log) == [b"a"]
        writer.append(b"b")
        writer.roll()
        assert (len(log.record.ledgers), log.record.tail) == (2, (writer.ledger_id,))
        writer.append(b"c")
        writer.close()
        assert values(log) == [b"a", b"b", b"c"]


def test_adds_go_on_while_a_writer_rolls(log: LogHandle) -> None:
    with log.writer() as writer:
        done = threading.Event()

        def roll() -> None:
            for _ in range(5):
                writer.roll()
            done.set()

        thread = threading.Thread(target=roll)
        thread.start()
        futures = []
        while not done.is_set() or len(futures) < 50:
            futures.append(writer.append_async(str(len(futures)).encode()))
            time.sleep(0.001)
        thread.join()
        offsets = [future.result(60) for future in futures]
    assert offsets == list(range(len(futures)))
    assert values(log) == [str(n).encode() for n in range(len(futures))]


def test_adds_of_completed_adds_do_not_stop_a_roll(log: LogHandle) -> None:
    """A callback runs where acknowledgements are made: it may add, also while a ledger closes."""
    with log.writer() as writer:
        chain: list[int] = []

        def again(done: object) -> None:
            chain.append(done.result())  # type: ignore[attr-defined]
            if len(chain) < 40:
                writer.append_async(b"x").add_done_callback(again)

        writer.append_async(b"x").add_done_callback(again)
        for _ in range(4):
            writer.roll()
        while len(chain) < 40:
            time.sleep(0.01)
    assert chain == list(range(40))


def test_ledgers_without_entries_leave_nothing_on_the_list(log: LogHandle) -> None:
    """RB-21."""
    with log.writer() as writer:
        writer.roll()
        writer.roll()
        assert writer.append(b"x") == 0
        writer.roll()
    assert [(x.first_offset, x.entry_count) for x in log.record.ledgers] == [(0, 1)]
    assert values(log) == [b"x"]
