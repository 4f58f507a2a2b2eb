"""One run of a verb at a time: who is told so, and who is not held up."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from bkspark import environment, verbs
from bkspark.admin.lease import alone
from bkspark.admin.maintenance import Report
from bkspark.cluster import lease
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.lease import Leases, this_process
from bkspark.errors import OutcomeUnknownError
from bkspark.format import layout, upkeep_records
from bkspark.format.upkeep_records import Lease
from tests.integration.rig import Rig
from tests.kit.own_clock import OwnClock

from .scenes import members, take, written

TOKEN = "ab" * 16
CHILD = """
import sys, time
from bkspark.admin.lease import alone
from bkspark.cluster.cluster import Cluster
with Cluster(sys.argv[1]) as cluster:
    alone(cluster, "collect", lambda: print("begun", flush=True) or time.sleep(600))
"""


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


@pytest.fixture
def cluster(rig: Rig) -> Iterator[Cluster]:
    with Cluster(rig.uri) as cluster:
        yield cluster


def put(cluster: Cluster, found: Lease) -> None:
    """Let that be the lease."""
    Leases(cluster, found.verb)._records.write_over(found.verb, found)


def stored(cluster: Cluster, verb: str = "collect") -> Lease | None:
    seen = cluster.store.get(layout.lease_key(verb))
    return None if seen is None else upkeep_records.decode_lease(verb, seen.value)


def elsewhere(verb: str = "collect") -> Lease:
    """Of a run on another host."""
    holder = replace(this_process(), host="far-away", machine="another one", pid=2_000_000_000)
    return Lease(verb, TOKEN, holder, 1_700_000_000_000)


def nothing() -> Report:
    return Report("collect", {}, {"ledgers": 0})


@contextmanager
def at_work(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody runs ``collect`` in this process meanwhile."""
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.02)
    monkeypatch.setattr(lease, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(lease, "DEAD_SECONDS", 60.0)
    begun, end = environment.inbox(), environment.inbox()

    def work() -> Report:
        begun.put(None)
        end.get()
        return nothing()

    task = environment.start(lambda: alone(cluster, "collect", work) and None, "first")
    begun.get(timeout=60)
    try:
        yield
    finally:
        end.put(None)
        task.join()


def test_a_second_run_does_nothing_while_the_first_is_at_work(
    rig: Rig, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with at_work(cluster, monkeypatch):
        report = verbs.collect(rig.uri)
        here = this_process()
        [left] = report.left
        assert (report.done, report.exit_status, left.subject) == ({}, 1, "collect")
        assert f"on {here.host}, process {here.pid}, since 20" in left.reason
        assert "--no-lease" in left.hint
        assert verbs.collect(rig.uri, no_lease=True).done["ledgers"] == 0
        assert verbs.collect(rig.uri, dry_run=True).exit_status == 0
    assert verbs.collect(rig.uri).exit_status == 0


def test_verbs_do_not_exclude_each_other_and_named_ledgers_are_nobodys(
    rig: Rig, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_id = written(rig)
    with at_work(cluster, monkeypatch):
        for run in (verbs.repair, verbs.scrub, verbs.recover):
            assert run(rig.uri).done
    for verb in ("collect", "repair", "scrub", "recover"):
        found = stored(cluster, verb)
        assert found is not None
        assert not found.is_held
        put(cluster, elsewhere(verb))
    with environment.use(OwnClock(lambda: pytest.fail("it waited"))):
        for run in (verbs.repair, verbs.scrub, verbs.recover):
            assert run(rig.uri, ledgers=[ledger_id]).exit_status == 0
    assert stored(cluster, "repair") == elsewhere("repair")


def test_what_was_killed_is_run_again_at_once_on_its_host(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="file", bookie_count=3)
    with killed_while_at_work(rig) as pid, Cluster(rig.uri) as cluster:
        found = stored(cluster)
        assert found is not None
        assert (found.is_held, found.holder.pid) == (True, pid)
        with environment.use(OwnClock(lambda: pytest.fail("it waited"))):
            assert verbs.collect(rig.uri).exit_status == 0


@contextmanager
def killed_while_at_work(rig: Rig) -> Iterator[int]:
    """The id of a process that was killed in a run, and that nobody has waited for yet."""
    command = [sys.executable, "-c", CHILD, rig.uri]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        yield child.pid


@pytest.mark.parametrize("of", ["another start", "another process"])
def test_a_process_of_this_system_that_is_gone_holds_nobody_up(
    rig: Rig, cluster: Cluster, of: str
) -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    here = this_process()
    holder = replace(here, started="1") if of == "another start" else replace(here, pid=gone.pid)
    put(cluster, replace(elsewhere(), holder=holder))
    with environment.use(OwnClock(lambda: pytest.fail("it waited"))):
        assert verbs.collect(rig.uri).exit_status == 0


@pytest.mark.parametrize(
    "change", [{"machine": "another one"}, {"machine": ""}], ids=["another", "unknown"]
)
def test_a_lease_of_another_system_is_dead_once_it_was_not_renewed_for_long_enough(
    cluster: Cluster, change: dict[str, str]
) -> None:
    put(cluster, replace(elsewhere(), holder=replace(elsewhere().holder, started="", **change)))
    told: list[str] = []
    clock = OwnClock()
    with environment.use(clock):
        report = alone(cluster, "collect", nothing, tell=told.append)
    assert report.exit_status == 0
    assert lease.DEAD_SECONDS <= clock.ahead <= lease.DEAD_SECONDS + lease.LOOK_SECONDS
    assert told == ["collect: checking whether another run is still active"]


def test_a_lease_that_is_renewed_meanwhile_is_living_whatever_times_it_tells(
    cluster: Cluster,
) -> None:
    other = replace(elsewhere(), began_ms=1)
    put(cluster, other)
    slept: list[int] = []

    def renew() -> None:
        slept.append(len(slept))
        if len(slept) == 3:
            put(cluster, replace(other, renewals=1))

    with environment.use(OwnClock(renew)):
        report = alone(cluster, "collect", lambda: pytest.fail("it ran"))
    assert "active on far-away, process 2000000000, since 1970-01-01 00:00:00Z" in (
        report.left[0].reason
    )
    assert stored(cluster) == replace(other, renewals=1)


def test_one_that_ends_meanwhile_is_taken(cluster: Cluster) -> None:
    put(cluster, elsewhere())
    end = OwnClock(lambda: put(cluster, replace(elsewhere(), is_held=False)))
    with environment.use(end):
        assert alone(cluster, "collect", nothing).exit_status == 0
    assert end.ahead == lease.LOOK_SECONDS


@pytest.mark.parametrize("data", [b"", b"what is this?", b"bkspark lease v9 00000000 0\n"])
def test_a_record_that_cannot_be_read_stops_nobody(cluster: Cluster, data: bytes) -> None:
    cluster.store.put(layout.lease_key("collect"), data, None)
    with environment.use(OwnClock(lambda: pytest.fail("it waited"))):
        assert alone(cluster, "collect", nothing).exit_status == 0
    found = stored(cluster)
    assert found is not None
    assert not found.is_held


def test_who_lost_the_lease_goes_on_and_does_not_take_it_back(cluster: Cluster) -> None:
    def work() -> Report:
        put(cluster, elsewhere())
        return nothing()

    assert alone(cluster, "collect", work).exit_status == 0
    assert stored(cluster) == elsewhere()


def test_two_that_come_at_once_are_told_apart(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Leases(cluster, "collect"), Leases(cluster, "collect")
    put(cluster, replace(elsewhere(), is_held=False))
    seen = second._seen()
    assert first.take(None) is None
    with monkeypatch.context() as patched:
        patched.setattr(second, "_seen", iter([seen]).__next__)
        with pytest.raises(StopIteration):  # it lost, and looks again
            second.take(None)
    assert first.renew()
    assert not second.renew()


def test_a_lease_is_let_go_of_when_the_work_fails(cluster: Cluster) -> None:
    def work() -> Report:
        raise OutcomeUnknownError("as it may be")

    with pytest.raises(OutcomeUnknownError):
        alone(cluster, "collect", work)
    found = stored(cluster)
    assert found is not None
    assert not found.is_held


def test_a_store_that_is_away_for_a_while_costs_a_renewal_and_no_more(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    answers = iter([OutcomeUnknownError("away")] * 2)
    tried = environment.inbox()
    renew = Leases.renew

    def failing(self: Leases, *, is_held: bool = True) -> bool:
        for error in answers:
            raise error
        tried.put(None)
        return renew(self, is_held=is_held)

    monkeypatch.setattr(Leases, "renew", failing)

    def work() -> Report:
        tried.get(timeout=10)
        tried.get(timeout=10)
        return nothing()

    assert alone(cluster, "collect", work).exit_status == 0
    found = stored(cluster)
    assert found is not None
    assert found.renewals >= 2
    assert not found.is_held


def test_what_is_done_beside_another_run_is_done(rig: Rig, cluster: Cluster) -> None:
    ledger_id = written(rig)
    take(rig, members(rig, ledger_id)[0], "/journal/", ledger_id)
    put(cluster, elsewhere("repair"))
    assert verbs.repair(rig.uri, no_lease=True).done["places"] == 1
    assert stored(cluster, "repair") == elsewhere("repair")
