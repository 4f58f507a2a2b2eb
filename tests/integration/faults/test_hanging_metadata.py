"""A metadata store that hangs: nobody waits for ever, and who waited says that nothing is known."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import hanging
from bkspark.errors import BookKeeperError, InvalidRequestError, OutcomeUnknownError
from bkspark.ledger.handles import settings
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log.log_writer import LogWriter
from tests.integration.faults.test_hanging_bookies import QUICK, Gates, names_of
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies, wait_until
from tests.kit.faulty import METADATA
from tests.stopwatch import Stopwatch, patience
from tests.thorough import always

IMPATIENT = WriterSettings(add_entry_quorum_timeout_seconds=patience(0.5))
CALLS = ("get", "put", "is_current", "list")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "GRACE_SECONDS", patience(0.2))
    monkeypatch.setattr(hanging, "STORE_SECONDS", patience(0.3))


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def gates(memory_rig: Rig) -> Iterator[Gates]:
    gates = Gates(memory_rig.faults)
    yield gates
    gates.open()


@pytest.fixture
def writer(keeper: BookKeeper, gates: Gates) -> Iterator[LogWriter]:
    writer = keeper.create_log("wal").writer(settings=IMPATIENT)
    writer.append(b"0")
    yield writer
    gates.open()
    writer.release()


def hang(gates: Gates, *calls: str) -> None:
    gates.closed = {(METADATA, call) for call in calls or CALLS}


def in_time(
    call: Callable[[], object], pattern: str = "no answer|not acknowledged within|still does not"
) -> None:
    watch = Stopwatch()
    with pytest.raises(OutcomeUnknownError, match=pattern):
        call()
    assert watch.seconds < patience(8)


def fail_to_roll(writer: LogWriter) -> None:
    with suppress(BookKeeperError):
        writer.roll()


# --- log writers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what", always(["append", "roll"], ["append", "append_many", "force", "roll", "close"])
)
def test_a_log_writer_returns_in_time(what: str, writer: LogWriter, gates: Gates) -> None:
    calls: dict[str, Callable[[], object]] = {
        "append": lambda: writer.append(b"1"),
        "append_many": lambda: writer.append_many([b"1", b"2"]),
        "force": writer.force,
        "roll": writer.roll,
        "close": writer.close,
    }
    hang(gates)
    if what in ("force", "close"):
        writer.append_async(b"1")
    in_time(calls[what])


def test_what_is_appended_while_a_roll_hangs_is_answered(writer: LogWriter, gates: Gates) -> None:
    hang(gates, "put")
    rolling = threading.Thread(target=fail_to_roll, args=(writer,))
    rolling.start()
    assert writer.append(b"1") == 1
    rolling.join()
    gates.open()
    assert writer.append(b"2") == 2


def test_what_waits_for_a_ledger_to_close_is_answered(writer: LogWriter, gates: Gates) -> None:
    hang(gates, "is_current")
    first = writer.append_async(b"1")
    rolling = threading.Thread(target=fail_to_roll, args=(writer,))
    rolling.start()
    while writer._waiting is None and rolling.is_alive():
        rolling.join(0.01)
    watch = Stopwatch()
    with pytest.raises(BookKeeperError):
        writer.append(b"2")
    assert watch.seconds < patience(8)
    rolling.join()
    gates.open()
    with pytest.raises(OutcomeUnknownError, match="in log wal offset 1 is undecided"):
        first.result(120)  # the writer has ended, because its time limit holds


def test_what_is_undecided_is_told(writer: LogWriter, gates: Gates) -> None:
    hang(gates, "is_current")
    ends = r"was not acknowledged within [\d.]+ s; in log wal offset 1 is undecided"
    in_time(lambda: writer.append(b"1"), ends)


@pytest.mark.thorough
def test_a_metadata_store_that_hangs_is_no_bookie_that_hangs(
    keeper: BookKeeper, gates: Gates
) -> None:
    """A lane makes the check, and what is sent to its bookie meanwhile waits for it."""
    handle = keeper.create_ledger(settings=QUICK)
    members = names_of(handle)
    gates.closed = {(METADATA, "is_current")}
    first = handle.append_async(b"0")
    wait_until(lambda: any(lane.is_away for lane in handle._writer._lanes._lanes.values()))
    second = handle.append_async(b"1")
    time.sleep(2 * QUICK.add_entry_timeout_seconds)
    gates.open()
    assert [first.result(120), second.result(120)] == [0, 1]
    wait_for_all_copies(handle)
    handle.close()
    assert (names_of(handle), handle.faults) == (members, {})


# --- everybody else ------------------------------------------------------------------------------


@pytest.mark.parametrize("call", always(["put"], CALLS))
def test_others_return_in_time(call: str, keeper: BookKeeper, gates: Gates) -> None:
    keeper.create_log("wal")
    seen = keeper._cluster.log("wal")
    asks: dict[str, Callable[[], object]] = {
        "get": lambda: keeper.open_log("wal"),
        "put": lambda: keeper.create_log("another"),
        "is_current": lambda: keeper._cluster.logs.is_current("wal", seen),
        "list": keeper.list_ledgers,
    }
    hang(gates, call)
    in_time(asks[call])


def test_a_store_that_hangs_is_not_waited_for_twice(keeper: BookKeeper, gates: Gates) -> None:
    keeper.create_log("wal")
    hang(gates)
    in_time(keeper.list_logs, "gave no answer within")
    watch = Stopwatch()
    for _ in range(20):
        with pytest.raises(OutcomeUnknownError, match="still does not answer"):
            keeper.list_logs()
    assert watch.seconds < patience(1)
    gates.open()
    while True:
        try:
            assert keeper.list_logs() == ["wal"]
            break
        except OutcomeUnknownError:
            assert watch.seconds < 120


# --- forked processes ----------------------------------------------------------------------------


def in_a_child(calls: list[Callable[[], object]]) -> int:
    """How many of ``calls`` are refused, each at once, in a forked process."""
    child = os.fork()
    if not child:
        refused = 0
        try:
            for call in calls:
                try:
                    call()
                except InvalidRequestError as error:
                    refused += "belongs to another process" in str(error)
        finally:
            os._exit(refused)
    watch, (_, status) = Stopwatch(), os.waitpid(child, 0)
    assert watch.seconds < patience(5)
    return os.waitstatus_to_exitcode(status)


def test_a_forked_process_is_refused_what_another_one_has_open(keeper: BookKeeper) -> None:
    log = keeper.create_log("wal")
    writer, handle, adv = log.writer(), keeper.create_ledger(), keeper.create_ledger_adv()
    handle.append(b"0")
    reader = keeper.open_ledger(handle.ledger_id, recovery=False)
    list(reader.read_unconfirmed(0, 0))
    calls: list[Callable[[], object]] = [
        lambda: handle.append(b"1"),
        lambda: handle.append_async(b"1"),
        lambda: handle.append_many([b"1"]),
        lambda: handle.append_at_once([b"1"]),
        handle.wait_for_room,
        handle.force,
        handle.close,
        handle.release,
        lambda: writer.append(b"1"),
        lambda: writer.append_async(b"1"),
        writer.force,
        writer.roll,
        writer.close,
        writer.release,
        lambda: adv.append(0, b"1"),
        adv.close,
        lambda: list(reader.read_unconfirmed(0, 0)),
        lambda: reader.read_arrow(0, 0),
        reader.read_last_add_confirmed,
        log.writer,
        keeper.list_logs,
        keeper.close,
    ]
    assert in_a_child(calls) == len(calls)
    for each in (writer, handle, adv):
        each.close()


def test_a_block_that_a_forked_process_leaves_by_an_error_ends_with_this_error(
    keeper: BookKeeper,
) -> None:
    def leave(resource: object) -> None:
        with pytest.raises(ZeroDivisionError), resource:  # type: ignore[attr-defined]
            raise ZeroDivisionError

    handle = keeper.create_ledger()
    assert in_a_child([lambda: leave(handle), lambda: leave(keeper), handle.force]) == 1
    handle.close()
