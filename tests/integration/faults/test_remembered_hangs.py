"""A bookie that hangs is remembered once for the whole process, whoever has met it."""

import threading
from collections.abc import Callable, Iterator

import pytest

from bkspark import environment
from bkspark.admin.leftovers import Sweep
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import bookie_client, fan_out
from bkspark.cluster import hanging as hang_memory
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.ensembles import spares_of
from bkspark.cluster.hanging import HangMemory
from bkspark.errors import BookieUnavailableError
from bkspark.ledger.handles.settings import ReaderSettings, WriterSettings
from bkspark.ledger.recovery import running
from bkspark.ledger.recovery.running import in_threads
from bkspark.log.streams import micro_batch as stream_plan
from bkspark.protocol.bookies import FAILURES_MAX
from bkspark.protocol.recovery.steps import Silence
from tests.integration.faults.test_hanging_bookies import Gates, names_of
from tests.integration.rig import Rig
from tests.integration.stream_driver import Driver
from tests.integration.waiting import wait_until
from tests.stopwatch import Stopwatch, patience

CALLS = ["open_root", "list", "read"]


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Iterator[Rig]:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=4)
    with rig.faults.installed():
        yield rig


@pytest.fixture
def gates(rig: Rig) -> Iterator[Gates]:
    gates = Gates(rig.faults)
    yield gates
    gates.open()


# --- readers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
def test_many_read_handles_leave_few_threads(call: str, rig: Rig, gates: Gates) -> None:
    """Others are quicker than the one that hangs, so nobody ever waits for it to the end."""
    with BookKeeper(rig.uri) as keeper:
        with keeper.create_ledger() as handle:
            handle.append_many([b"0", b"1"])
        hanging = names_of(handle)[0]
        gates.closed = {(hanging, call)}
        settings = ReaderSettings(speculative_read_ms=10)
        for _ in range(20):
            reader = keeper.open_ledger(handle.ledger_id, recovery=False, settings=settings)
            assert [entry.value for entry in reader.read(0, 1)] == [b"0", b"1"]
        assert 0 < gates.held.count(hanging) <= hang_memory.UNANSWERED_MAX


def test_what_one_reader_has_met_another_one_does_not_wait_for(rig: Rig, gates: Gates) -> None:
    with BookKeeper(rig.uri) as keeper:
        writer = keeper.create_ledger(settings=WriterSettings(explicit_lac_ms=0))
        writer.append(b"0")
        hanging, addresses = names_of(writer)[0], keeper._cluster.addresses().values()
        gates.closed = {(name, "open_root") for name in names_of(writer)}
        settings = ReaderSettings(read_timeout_seconds=patience(0.5))
        usual, told = ReaderSettings(), []
        watch = Stopwatch()
        for each in (settings, usual):
            with pytest.raises(BookieUnavailableError) as raised:
                keeper.open_ledger(writer.ledger_id, recovery=False, settings=each)
            told.append(f"{hanging} still does not answer" in str(raised.value))
        assert watch.seconds < usual.read_timeout_seconds / 2
        assert told == [False, True]
        gates.open()
        wait_until(lambda: not any(map(environment.the_one(HangMemory).hangs, addresses)))
        keeper.open_ledger(writer.ledger_id, recovery=False)
        writer.close()


# --- planning ------------------------------------------------------------------------------------


def test_a_hanging_bookie_in_no_ensemble_costs_the_planning_of_a_batch_nothing(
    rig: Rig, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", patience(5.0))
    monkeypatch.setattr(fan_out, "GRACE_SECONDS", patience(0.25))
    driver = Driver(rig)
    driver.run(0)
    with Cluster(rig.uri) as cluster:
        [tail] = cluster.log(driver.request.log_name).value.tail
        members = cluster.ledger(tail).value.last_fragment.ensemble
    [hanging] = rig.urls.keys() - {member.bookie_id for member in members}
    gates.closed = {(hanging, "open_root")}
    for _ in range(12):
        watch = Stopwatch()
        target, _ = stream_plan.prepare(driver.request)
        assert watch.seconds < patience(1.5) < bookie_client.ANSWER_SECONDS
        assert target.spares == ()
    assert gates.held.count(hanging) <= hang_memory.UNANSWERED_MAX
    watch = Stopwatch()
    stream_plan.prepare(driver.request)
    assert watch.seconds < fan_out.GRACE_SECONDS


def test_a_spare_is_waited_for_while_members_are(
    rig: Rig, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a host that stands still for a moment there are spares all the same."""
    grace = patience(0.1)
    monkeypatch.setattr(fan_out, "GRACE_SECONDS", grace)
    driver = Driver(rig)
    driver.run(0)
    target, _ = stream_plan.prepare(driver.request)
    slow = rig.urls.keys() - {target.ensemble[0].bookie_id}
    gates.closed = {(name, "open_root") for name in slow}
    opening = threading.Timer(3 * grace, gates.open)
    opening.start()
    with Cluster(rig.uri) as cluster:
        assert len(spares_of(cluster, target.ensemble)) == 1
    opening.join()


def test_each_plan_of_a_new_ledger_knows_what_hung_before(
    rig: Rig, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", patience(0.5))
    hanging = sorted(rig.urls)[0]
    gates.closed = {(hanging, "open_root")}
    rig.target((3, 3, 2))
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", 60.0)
    watch = Stopwatch()
    for _ in range(3):
        assert hanging not in {address.bookie_id for address in rig.target((3, 3, 2)).ensemble}
    assert watch.seconds < patience(5)
    wait_until(lambda: gates.held.count(hanging) == 1)


def test_each_connection_knows_which_bookies_failed(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster:
        [member] = [m for m in cluster.addresses() if m.bookie_id == "bookie-2"]
        for _ in range(FAILURES_MAX):
            cluster.note_failure(member)
    with Cluster(rig.uri) as another:
        assert another.suspects() == {"bookie-2"}


# --- recoveries ----------------------------------------------------------------------------------


def test_a_recovery_asks_whom_others_gave_up_but_not_for_ever(
    rig: Rig, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "TELL_SECONDS", 0.01)
    with Cluster(rig.uri) as cluster:
        member, address = next(iter(cluster.addresses().items()))
    gates.closed = {(member.bookie_id, "sweep")}
    sweep = Sweep(address, (1,))
    told = [str(in_threads([sweep])[0]) for _ in range(hang_memory.UNANSWERED_MAX + 3)]
    assert ["gave no answer within" in line for line in told] == [n < 8 for n in range(11)]
    assert ["still does not answer" in line for line in told] == [n >= 8 for n in range(11)]
    wait_until(lambda: gates.held.count(member.bookie_id) == hang_memory.UNANSWERED_MAX)
    gates.open()
    wait_until(lambda: not isinstance(in_threads([sweep])[0], Silence))
