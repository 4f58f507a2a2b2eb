"""Bookies that are late when a ledger is placed, as on a host that stands still for a while."""

import threading
from collections.abc import Iterator

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import bookie_client
from bkspark.cluster.cluster import Cluster
from bkspark.protocol.bookies import FAILURES_MAX
from tests.integration.faults.test_hanging_bookies import Gates, names_of
from tests.integration.rig import Rig
from tests.stopwatch import Stopwatch, patience
from tests.thorough import always

CALLS = ["open_root", "put_new"]


@pytest.fixture
def gates(memory_rig: Rig) -> Iterator[Gates]:
    gates = Gates(memory_rig.faults)
    with memory_rig.faults.installed():
        yield gates
        gates.open()


@pytest.mark.parametrize("call", always(["put_new"], CALLS))
def test_they_are_waited_for_where_there_are_no_others(
    call: str, memory_rig: Rig, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", patience(0.3))
    all_of_them = len(memory_rig.urls)
    gates.closed = {(name, call) for name in sorted(memory_rig.urls)[2:]}
    opening = threading.Timer(2.5 * bookie_client.ANSWER_SECONDS, gates.open)
    opening.start()
    with BookKeeper(memory_rig.uri) as keeper:
        keeper.create_ledger(ensemble_size=all_of_them, strict=True).close()
    opening.join()


@pytest.mark.parametrize("call", always(["put_new"], CALLS))
def test_they_are_not_waited_for_where_there_are_others(
    call: str, memory_rig: Rig, gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_client, "ANSWER_SECONDS", patience(1.0))
    late = sorted(memory_rig.urls)[:2]
    gates.closed = {(name, call) for name in late}
    with Cluster(memory_rig.uri) as cluster:  # that failed as well: so the late ones are chosen
        for member in cluster.addresses():
            for _ in range(FAILURES_MAX if member.bookie_id not in late else 0):
                cluster.note_failure(member)
    watch = Stopwatch()
    with BookKeeper(memory_rig.uri) as keeper, keeper.create_ledger() as handle:
        assert watch.seconds < patience(3)
        assert not {name for name, _ in gates.closed} & set(names_of(handle))
