"""Bookies and metadata stores that hang: nobody waits for ever, and no memory runs full."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from itertools import product

import pytest

from bkspark.admin import views
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import bookie_client
from bkspark.cluster import hanging as hang_memory
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookieUnavailableError,
    InvalidRequestError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.ledger.handles import lane, settings, writer
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.ledger.recovery import running
from bkspark.ledger.recovery.recover import recover
from bkspark.ledger.recovery.running import in_threads
from bkspark.protocol.writer.steps import Failed, Stored
from tests.integration.hand_writer import Gate, violations
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies, wait_until
from tests.kit.faulty import METADATA, Operation, StorageFaults
from tests.stopwatch import Stopwatch, patience
from tests.thorough import always

QUICK = WriterSettings(add_entry_timeout_seconds=patience(0.5))
IMPATIENT = WriterSettings(add_entry_quorum_timeout_seconds=patience(1))


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def names_of(handle: WriteHandle) -> list[str]:
    return [m.bookie_id for m in handle.metadata.last_fragment.ensemble]


def wait_until_replaced(handle: WriteHandle, bookie_id: str) -> None:
    wait_until(lambda: bookie_id not in names_of(handle))


class Gates:
    """Operations that hang until the end of the test: (place, call); ``held`` at which places."""

    def __init__(self, faults: StorageFaults) -> None:
        self.closed: set[tuple[str, str]] = set()
        self.held: list[str] = []
        self._end = threading.Event()
        faults.decide = self._wait

    def open(self) -> None:
        self.closed.clear()
        self._end.set()

    def _wait(self, _number: int, operation: Operation) -> None:
        if (operation.place, operation.call) in self.closed:
            self.held.append(operation.place)
            self._end.wait(300)
            self.held.remove(operation.place)


@pytest.fixture
def gates(memory_rig: Rig) -> Iterator[Gates]:
    gates = Gates(memory_rig.faults)
    yield gates
    gates.open()


@pytest.mark.parametrize(
    ("call", "count"),
    always(
        [("append", 1)],
        list(product(["open_root", "append", "has_journal"], [1, 2])),
        are_rows=True,
    ),
)
def test_bookies_that_hang_are_replaced(
    count: int, call: str, memory_rig: Rig, keeper: BookKeeper, gates: Gates
) -> None:
    """Whether an acknowledgement needs them (two of three) or not (the third of three)."""
    handle = keeper.create_ledger(settings=QUICK)
    hanging = names_of(handle)[:count]
    gates.closed = {(name, call) for name in hanging}
    sent = {handle.append(b"0"): b"0"}
    for name in hanging:
        wait_until_replaced(handle, name)
    sent[handle.append(b"1")] = b"1"
    handle.close()
    gates.open()
    time.sleep(0.1)  # what they answer now is too late
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


def test_a_late_answer_of_a_bookie_that_was_replaced_counts_for_nothing(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger()
    before = names_of(handle)
    gate.close(*memory_rig.urls)
    waiting = handle.append_async(b"0")
    wait_until(lambda: handle.last_add_pushed == 0)
    handle._writer._report(Failed(0, before[0], BookieUnavailableError("it hangs")))
    wait_until_replaced(handle, before[0])
    handle._writer._report(Stored(0, before[0], 0, 0))
    gate.open(before[1])
    (add,) = handle._writer.machine.pending
    wait_until(lambda: 1 in add.counted)
    time.sleep(0.05)
    assert (add.counted, waiting.done()) == ({1}, False)
    gate.open()
    assert waiting.result(120) == 0
    handle.close()
    assert not violations(memory_rig, handle.ledger_id, {0: b"0"}, [0])


@pytest.mark.parametrize("call", always(["put_new"], ["open_root", "put_new", "open_journal"]))
def test_a_spare_that_hangs_is_passed_over(
    call: str, memory_rig: Rig, keeper: BookKeeper, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", patience(0.2))
    handle = keeper.create_ledger(settings=QUICK)
    members = names_of(handle)
    good, *bad = sorted(set(memory_rig.urls) - set(members))
    gates.closed = {*((name, call) for name in bad), (members[0], "append")}
    handle.append(b"0")
    wait_until_replaced(handle, members[0])
    assert good in names_of(handle)
    handle.close()


@pytest.mark.thorough
@pytest.mark.parametrize("call", ["open_root", "put_new"])
def test_where_all_spares_hang_nobody_joins(
    call: str, memory_rig: Rig, keeper: BookKeeper, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", patience(0.2))
    handle = keeper.create_ledger()
    members = names_of(handle)
    gates.closed = {*((name, call) for name in set(memory_rig.urls) - set(members))}
    memory_rig.faults.down = {members[0]}
    assert [handle.append(b"%d" % n) for n in range(3)] == [0, 1, 2]
    wait_until(
        lambda: members[0] in handle.faults and not handle._writer.machine.changes.is_under_way
    )
    handle.close()
    assert names_of(handle) == members


def test_a_slow_bookie_slows_its_writer_down_and_does_not_fill_the_memory(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "LANE_BYTES_MAX", 3000)
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger()
    slow = names_of(handle)[2]
    gate.close(slow)
    bookies = handle._writer._lanes
    its_lane = bookies._lanes[2]
    assert its_lane is not None
    sent: list[Future[int]] = []
    while len(sent) < 40 and not bookies.is_congested:
        sent.append(handle.append_async(b"x" * 500))
        wait_until(lambda: sent[-1].done() or bookies.is_congested)  # a record each
    before = its_lane.waiting_bytes
    assert 3000 < before < 3000 + 2 * 700
    sent += [handle.append_async(b"x" * 500) for _ in range(40 - len(sent))]
    with pytest.raises(TimeoutError):
        sent[-1].result(0.1)
    assert its_lane.waiting_bytes == before
    gate.open()
    assert [future.result(120) for future in sent] == list(range(40))
    wait_for_all_copies(handle)
    handle.close()
    assert (names_of(handle)[2], its_lane.waiting_bytes) == (slow, 0)


def test_a_large_record_may_take_long_and_so_may_one_behind_it(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "SLOWEST_BYTES_PER_SECOND", 1000)
    quick = WriterSettings(
        add_entry_timeout_seconds=patience(0.2), add_entry_quorum_timeout_seconds=patience(0.2)
    )
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger(settings=quick)
    members = names_of(handle)
    gate.close(*members)
    sent = [handle.append_async(b"x" * 10_000)]
    wait_until(lambda: handle.last_add_pushed == 0)
    sent.append(handle.append_async(b"x"))
    time.sleep(3 * patience(0.2))
    gate.open()
    assert [future.result(120) for future in sent] == [0, 1]
    handle.close()
    assert names_of(handle) == members


@pytest.mark.parametrize(
    "what", always(["append"], ["append", "append_many", "force", "close", "seal"])
)
def test_a_caller_does_not_wait_for_ever_for_a_metadata_store_that_hangs(
    what: str, keeper: BookKeeper, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "GRACE_SECONDS", patience(0.2))
    handle = keeper.create_ledger(settings=IMPATIENT)
    gates.closed = {(METADATA, "put" if what == "seal" else "is_current")}
    if what in ("force", "close"):
        handle.append_async(b"a")
    calls = {
        "append": lambda: handle.append(b"a"),
        "append_many": lambda: handle.append_many([b"a"]),
        "force": handle.force,
        "close": handle.close,
        "seal": handle.close,
    }
    watch = Stopwatch()
    with pytest.raises(OutcomeUnknownError, match=r"no answer within|not acknowledged within"):
        calls[what]()
    assert watch.seconds < patience(5)


def test_closing_does_not_wait_for_a_copy_that_nobody_needs(
    memory_rig: Rig, keeper: BookKeeper, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LANES_END_SECONDS", patience(0.2))
    handle = keeper.create_ledger()
    gates.closed = {(names_of(handle)[1], "append")}
    handle.append(b"a")
    watch = Stopwatch()
    handle.close()
    assert watch.seconds < patience(5)
    assert memory_rig.ledger(handle.ledger_id).last_entry_id == 0


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", patience(0.2))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("call", ["open_root", "put_new"])
def test_a_new_ledger_is_placed_on_bookies_that_answer(
    call: str, memory_rig: Rig, keeper: BookKeeper, gates: Gates
) -> None:
    hanging, *_ = sorted(memory_rig.urls)[2:]
    gates.closed = {(hanging, call), (sorted(memory_rig.urls)[0], call)}
    watch = Stopwatch()
    for _ in range(3):
        with keeper.create_ledger() as handle:
            assert handle.append(b"0") == 0
        assert not {name for name, _ in gates.closed} & set(names_of(handle))
    assert watch.seconds < patience(5)


@pytest.mark.usefixtures("impatient")
def test_too_few_bookies_that_answer_are_an_error_in_time(
    memory_rig: Rig, keeper: BookKeeper, gates: Gates
) -> None:
    gates.closed = {(name, "open_root") for name in sorted(memory_rig.urls)[2:]}
    with pytest.raises(NotEnoughBookiesError, match="only 2 can be used"):
        keeper.create_ledger(strict=True)


@pytest.mark.thorough
def test_a_list_of_bookies_says_which_hang_and_waits_for_them_once(
    memory_rig: Rig, keeper: BookKeeper, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", patience(1.0))
    first, second, *others = sorted(memory_rig.urls)
    gates.closed = {(first, "open_root"), (second, "open_root")}
    for seconds_max in (patience(5.0), bookie_client.ANSWER_SECONDS):
        asked, watch = len(memory_rig.faults.trace), Stopwatch()
        found = {status.record.bookie_id: status.problem for status in keeper.list_bookies()}
        assert watch.seconds < seconds_max
        assert found == dict.fromkeys(others, "") | {
            name: f"bookie {name} does not answer" for name in (first, second)
        }
    places = {operation.place for operation in memory_rig.faults.trace[asked:]}
    assert first not in places  # one question is on its way
    gates.open()
    wait_until(lambda: not any(status.problem for status in keeper.list_bookies()))


@pytest.mark.usefixtures("impatient")
def test_a_bookie_whose_question_is_never_answered_is_asked_again_after_a_while(
    memory_rig: Rig, keeper: BookKeeper, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk was taken away by force and is back: the thread that hung will never return."""
    hanging, *_ = sorted(memory_rig.urls)

    def problems() -> set[str]:
        return {s.record.bookie_id for s in keeper.list_bookies() if s.problem}

    gates.closed = {(hanging, "open_root")}
    assert problems() == {hanging}
    gates.closed.clear()
    assert problems() == {hanging}
    monkeypatch.setattr(hang_memory, "ASK_AGAIN_SECONDS", 0.0)
    assert problems() == set()


@pytest.mark.usefixtures("impatient")
def test_a_bookie_that_hangs_can_be_declared_lost_and_the_others_are_looked_at(
    memory_rig: Rig, keeper: BookKeeper, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "TELLS_MAX", 1)
    with keeper.create_ledger() as handle:
        handle.append(b"0")
    hanging = names_of(handle)[0]
    gates.closed = {(hanging, "open_root")}
    missing = views.underreplicated(keeper._cluster, None)
    assert {row["bookie_id"] for row in missing} == {hanging}
    assert {row["reason"] for row in missing} == {f"bookie {hanging} gave no answer within 1 s"}
    keeper.declare_bookie_lost(hanging)
    assert hanging not in {c.member.bookie_id for c in keeper._cluster.refresh_candidates()}


@pytest.mark.parametrize("call", ["open_root", "put_new", "list"])
def test_a_recovery_goes_on_without_a_bookie_that_hangs(
    call: str, memory_rig: Rig, keeper: BookKeeper, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs in the middle of being fenced or read; it is not asked again to take copies."""
    monkeypatch.setattr(running, "TELLS_MAX", 2)
    handle = keeper.create_ledger()
    sent = {handle.append(b"0"): b"0"}
    handle.release()
    hanging = names_of(handle)[0]
    gates.closed = {(hanging, call)}
    report = recover(
        keeper._cluster,
        handle.ledger_id,
        Password(),
        run=partial(in_threads, tell_seconds=0.1),
    )
    assert report.last_entry_id == 0
    silence = f"no answer: bookie {hanging} gave no answer within"
    assert any(note.startswith(silence) for note in report.notes)
    after = len(memory_rig.faults.trace)
    gates.open()
    time.sleep(0.1)  # what it does now is too late
    late = {(o.place, o.call) for o in memory_rig.faults.trace[after:]}
    assert (hanging, "append") not in late
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


HANGING = """
import sys, threading
from bkspark.bookie.posix import PosixJournal
from bkspark.bookkeeper import BookKeeper
with BookKeeper(sys.argv[1]) as keeper:
    handle = keeper.create_ledger()
    bad = handle.metadata.last_fragment.ensemble[0].bookie_id
    real = PosixJournal.append
    def hang(self, parts):
        if bad in self._bookie_name:
            threading.Event().wait()
        real(self, parts)
    PosixJournal.append = hang
    print(handle.append(b"a"), flush=True)
    handle.close()
"""


@pytest.mark.thorough
def test_a_bookie_that_hangs_does_not_keep_a_process_from_ending(make_rig: object) -> None:
    rig = make_rig(kind="file", bookie_count=3)
    done = subprocess.run(
        [sys.executable, "-c", HANGING, rig.uri],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


@pytest.mark.parametrize(
    "values",
    [{"add_entry_timeout_seconds": 0}, {"add_entry_quorum_timeout_seconds": -1.0}],
    ids=str,
)
def test_a_time_limit_is_more_than_nothing(values: dict[str, float]) -> None:
    with pytest.raises(InvalidRequestError):
        WriterSettings(**values)
