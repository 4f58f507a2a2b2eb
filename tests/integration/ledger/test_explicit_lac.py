"""An idle writer tells tail readers of its last entry (explicit LAC, RB-12)."""

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bkspark.bookie.memory import MemoryRoot
from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import InvalidRequestError
from bkspark.format import journal, layout
from bkspark.ledger.handles import settings, writer
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.ledger.recovery.fencing import Since, read_tail
from bkspark.protocol.ledger.record import AddRecord
from tests.integration.hand_writer import violations
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies
from tests.kit.faulty import Fault, Operation

SOON = WriterSettings(explicit_lac_ms=20)
READER = """
import sys
from bkspark.bookkeeper import BookKeeper
with BookKeeper(sys.argv[1]) as keeper:
    reader = keeper.open_ledger(int(sys.argv[2]), recovery=False)
    assert reader.wait_for(int(sys.argv[3]), timeout=20)
    print([entry.value.decode() for entry in reader.read()])
"""


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def names_of(handle: WriteHandle) -> list[str]:
    return [m.bookie_id for m in handle.metadata.last_fragment.ensemble]


def stored(rig: Rig, handle: WriteHandle, bookie_id: str) -> list[AddRecord]:
    """Everything behind the header in the writer's journal on one bookie, in order."""
    name = layout.journal(handle.ledger_id, 1, handle.metadata.token)
    digester = make_digester(handle.metadata.settings.digest, Password())
    data = rig.file_bytes(bookie_id, name) if name in rig.names(bookie_id) else b""
    content = journal.decode_journal(data, digester, ledger_id=handle.ledger_id)
    return [frame.record for frame in content.frames[1:]]


def wait_for_confirmations(rig: Rig, handle: WriteHandle, confirmed: int) -> None:
    deadline = time.monotonic() + 120
    for name in names_of(handle):
        while not any(
            record.is_confirmation and record.last_add_confirmed == confirmed
            for record in stored(rig, handle, name)
        ):
            assert time.monotonic() < deadline
            time.sleep(0.005)


def test_a_reader_in_another_process_sees_the_last_entry_of_an_idle_writer(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "rig", kind="file", bookie_count=3)
    with BookKeeper(rig.uri) as keeper, keeper.create_ledger() as handle:
        for number in range(3):
            handle.append(b"%d" % number)
        command = [sys.executable, "-c", READER, rig.uri, str(handle.ledger_id), "2"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "['0', '1', '2']\n", done.stderr
        assert handle.append(b"3") == 3


@pytest.mark.parametrize("sizes", [(3, 3, 2), (5, 2, 2)])
def test_it_is_told_once_to_every_bookie_of_the_ensemble(
    sizes: tuple[int, int, int], memory_rig: Rig, keeper: BookKeeper
) -> None:
    names = ("ensemble_size", "write_quorum_size", "ack_quorum_size")
    handle = keeper.create_ledger(**dict(zip(names, sizes, strict=True)), settings=SOON)
    handle.append_many([b"ab", b"c"])
    wait_for_confirmations(memory_rig, handle, 1)
    time.sleep(0.1)
    for name in names_of(handle):
        said = [r for r in stored(memory_rig, handle, name) if r.is_confirmation]
        assert [(r.last_add_confirmed, r.length_bytes) for r in said] == [(1, 3)]
    handle.close()


def test_with_0_it_never_is_and_close_writes_none(memory_rig: Rig, keeper: BookKeeper) -> None:
    for given in (WriterSettings(explicit_lac_ms=0), WriterSettings(explicit_lac_ms=10_000)):
        with keeper.create_ledger(settings=given) as handle:
            handle.append(b"a")
            time.sleep(0.1)
        for name in names_of(handle):
            assert len(stored(memory_rig, handle, name)) == 1
    with pytest.raises(InvalidRequestError):
        WriterSettings(explicit_lac_ms=-1)


@pytest.fixture
def never_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest pause of an idle writer never ends."""
    for module in (settings, writer):
        monkeypatch.setattr(module, "IDLE_SECONDS_MAX", 10_000.0)


@pytest.mark.parametrize("has_callback", [False, True])
def test_an_idle_writer_of_quick_bookies_says_it_soon(
    never_by_the_clock: None, memory_rig: Rig, keeper: BookKeeper, has_callback: bool
) -> None:
    """A lane made the acknowledgement, or the writer's own task did: it knows first."""
    handle = keeper.create_ledger()
    for number in range(3):
        future = handle.append_async(b"x")
        if has_callback:
            future.add_done_callback(lambda _: None)
        assert future.result(120) == number
    wait_for_confirmations(memory_rig, handle, 2)
    handle.close()


def test_a_lane_that_is_idle_alone_says_nothing(memory_rig: Rig, keeper: BookKeeper) -> None:
    """Others have acknowledged more since its last entry."""
    handle = keeper.create_ledger(settings=WriterSettings(explicit_lac_ms=0))
    for _ in range(2):
        handle.append(b"x")
    handle._writer._confirm(0)
    handle.append(b"x")
    wait_for_all_copies(handle)
    for name in names_of(handle):
        assert not any(record.is_confirmation for record in stored(memory_rig, handle, name))
    handle._writer._confirm(2)
    wait_for_confirmations(memory_rig, handle, 2)
    handle.close()


def test_the_pause_follows_the_bookies() -> None:
    usual = WriterSettings()
    assert usual.idle_seconds(0.0001, is_busy=False) == 0.000_25
    assert usual.idle_seconds(0.01, is_busy=False) == 0.01
    assert usual.idle_seconds(0.0001, is_busy=True) == 0.004
    assert usual.idle_seconds(0.01, is_busy=True) == pytest.approx(0.03)
    assert usual.idle_seconds(1.0, is_busy=False) == 0.1
    assert SOON.idle_seconds(1.0, is_busy=True) == 0.02
    assert WriterSettings(explicit_lac_ms=0).idle_seconds(1.0, is_busy=False) == float("inf")


@pytest.mark.parametrize(
    ("store_seconds", "gap", "pause"),
    [
        (0.0, 0.0039, 0.004),
        (0.0, 0.0041, 0.000_25),
        (0.01, 0.029, pytest.approx(0.03)),
        (0.01, 0.031, 0.01),
    ],
)
def test_appends_that_follow_each_other_have_a_longer_pause(
    monkeypatch: pytest.MonkeyPatch,
    keeper: BookKeeper,
    store_seconds: float,
    gap: float,
    pause: float,
) -> None:
    """So a writer stores no more than one confirmation in that time."""
    monkeypatch.setattr(writer.Lanes, "store_seconds", store_seconds)
    with keeper.create_ledger(settings=WriterSettings()) as handle:
        deadlines = handle._writer._deadlines
        deadlines._acknowledged_at = 100.0
        deadlines.sent(100.0 + gap)
        assert deadlines.idle_seconds == pause


class Turns:
    """Lets so many appends through on each bookie; the others wait until there are more."""

    def __init__(self, rig: Rig, turns: int) -> None:
        self.turns = turns
        self.begun: Counter[str] = Counter()
        self._changed = threading.Condition()
        rig.faults.decide = self._wait

    def allow(self, turns: int) -> None:
        with self._changed:
            self.turns = turns
            self._changed.notify_all()

    def _wait(self, _number: int, operation: Operation) -> None:
        if operation.call == "append":
            with self._changed:
                self.begun[operation.place] += 1
                number = self.begun[operation.place]
                self._changed.wait_for(lambda: number <= self.turns, timeout=20)


def test_it_does_not_count_as_a_copy_of_the_entry_behind_it(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """It begins where the next add begins; only bookies that store the add may count."""
    turns = Turns(memory_rig, 1)
    handle = keeper.create_ledger(settings=SOON)
    handle.append(b"0")
    deadline = time.monotonic() + 120
    while [turns.begun[name] for name in names_of(handle)] != [2, 2, 2]:
        assert time.monotonic() < deadline  # the confirmation waits on every bookie
        time.sleep(0.005)
    waiting = handle.append_async(b"1")
    while handle.last_add_pushed < 1:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    turns.allow(2)
    wait_for_confirmations(memory_rig, handle, 0)
    with pytest.raises(TimeoutError):
        waiting.result(0.5)
    turns.allow(99)
    assert waiting.result(120) == 1
    handle.close()
    assert not violations(memory_rig, handle.ledger_id, {0: b"0", 1: b"1"}, [0, 1])


@pytest.mark.parametrize("sizes", [(3, 3, 2), (4, 2, 2)])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_recovery_takes_its_lac_and_goes_on_behind_it(
    count: int, sizes: tuple[int, int, int], memory_rig: Rig, keeper: BookKeeper
) -> None:
    names = ("ensemble_size", "write_quorum_size", "ack_quorum_size")
    handle = keeper.create_ledger(**dict(zip(names, sizes, strict=True)), settings=SOON)
    sent = {handle.append(b"%d" % n): b"%d" % n for n in range(3)}
    wait_for_confirmations(memory_rig, handle, 2)
    for _ in range(count):
        sent[handle.append(b"more")] = b"more"
    handle.release()
    assert keeper.recover_ledger(handle.ledger_id).last_entry_id == 2 + count
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


def test_the_end_of_a_journal_has_its_lac_and_no_group_for_it(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = keeper.create_ledger(settings=SOON)
    handle.append(b"0")
    wait_for_confirmations(memory_rig, handle, 0)
    handle.append(b"1")
    wait_for_confirmations(memory_rig, handle, 1)
    handle.release()
    ledger, digester = handle.metadata, make_digester(handle.metadata.settings.digest, Password())
    address = keeper._cluster.addresses()[ledger.last_fragment.ensemble[0]]
    name = layout.journal(handle.ledger_id, ledger.term, ledger.token)
    with open_bookie(address).open_root() as root:
        place = {"ledger_id": handle.ledger_id, "fragments": ledger.fragments}
        tail = read_tail(root, name, digester, **place, since=Since(-1, -1))
    assert (tail.records, tail.last_add_confirmed) == ((), 1)
    assert tail.confirmed is not None
    assert (tail.confirmed.last_entry_id, tail.confirmed.length_bytes) == (1, 2)


def test_recovery_reads_no_further_back_than_a_confirmation(
    memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows the length up to its LAC, so nothing before it is needed."""
    handle = keeper.create_ledger(settings=SOON)
    handle.append_many([b"x" * 500_000])
    handle.append_many([b"y" * 500_000])
    wait_for_confirmations(memory_rig, handle, 1)
    handle.release()
    read: list[int] = []
    real = MemoryRoot.read

    def counted(
        self: MemoryRoot, name: str, begin: int = 0, length: int | None = None
    ) -> bytes | None:
        data = real(self, name, begin, length)
        read.append(len(data or b""))
        return data

    monkeypatch.setattr(MemoryRoot, "read", counted)
    assert keeper.recover_ledger(handle.ledger_id).last_entry_id == 1
    monkeypatch.undo()
    assert memory_rig.ledger(handle.ledger_id).length_bytes == 1_000_000
    assert sum(read) < 300_000


def test_a_bookie_that_fails_at_a_confirmation_is_replaced(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = keeper.create_ledger(settings=SOON)
    before, done = names_of(handle), list[Operation]()

    def fail_the_second(_number: int, operation: Operation) -> Fault | None:
        if (operation.place, operation.call) == (before[0], "append"):
            done.append(operation)
        return Fault() if len(done) == 2 and operation.place == before[0] else None

    memory_rig.faults.decide = fail_the_second
    sent = {handle.append(b"0"): b"0"}
    deadline = time.monotonic() + 120
    while before[0] in names_of(handle):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    memory_rig.faults.forget()
    assert handle.metadata.last_fragment.first_entry_id == 1
    sent[handle.append(b"1")] = b"1"
    handle.close()
    assert not violations(memory_rig, handle.ledger_id, sent, [0, 1])


def test_a_fenced_writer_that_says_its_lac_says_nothing_new(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """It has no post-check: whatever it says was acknowledged, so the ledger ends behind it."""
    handle = keeper.create_ledger(settings=WriterSettings(explicit_lac_ms=150))
    handle.append(b"0")
    wait_for_all_copies(handle)
    reader = keeper.open_ledger(handle.ledger_id)
    wait_for_confirmations(memory_rig, handle, 0)
    assert [entry.value for entry in keeper.open_ledger(handle.ledger_id).read()] == [b"0"]
    assert (reader.last_add_confirmed, reader.faults) == (0, {})
