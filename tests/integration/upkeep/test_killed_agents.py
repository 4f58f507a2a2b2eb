"""Two agents of one bookie in processes of their own: killed, paused, stopped, cut off."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import pytest

from bkspark.admin.agents import Agent, BookieRounds, living_agents
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout
from bkspark.metadata import zookeeper_session
from tests.kit.clusters import KINDS, cluster_in
from tests.kit.relay import Relay

from ..waiting import wait_until  # noqa: TID252

pytestmark = pytest.mark.thorough

ELSEWHERE_WITHIN = timedelta(seconds=30)
SERVES = "this agent serves it"


@pytest.fixture(params=KINDS)
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with cluster_in(tmp_path, request.param) as uri:
        yield uri


class AgentProcess:
    """An agent of bookie-1."""

    def __init__(self, uri: str, every: str = "0.1") -> None:
        command = [sys.executable, "-m", "bkspark", "--metadata", uri, "--json", "agent"]
        self.process = subprocess.Popen(
            [*command, "--bookie", "bookie-1", "--upkeep", "--every", every],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._passed_over: list[dict[str, str]] = []

    def says(self, subject: str, words: str) -> datetime:
        """Wait until the agent tells of this event; return when it was, by the agent's clock."""
        assert self.process.stdout is not None
        lines = map(json.loads, self.process.stdout)
        passed_over, self._passed_over = iter(self._passed_over), []
        for event in chain(passed_over, lines):
            if event["subject"] == subject and words in event["event"]:
                self._passed_over += passed_over
                return datetime.fromisoformat(event["time"])
            if event["subject"] != subject:
                self._passed_over.append(event)
        raise AssertionError(f"it ended without saying {words!r}")


@contextmanager
def running(uri: str, every: str = "0.1") -> Iterator[AgentProcess]:
    agent = AgentProcess(uri, every)
    try:
        yield agent
    finally:
        agent.process.kill()
        agent.process.wait()
        assert agent.process.stdout is not None
        agent.process.stdout.close()


def test_work_goes_on_elsewhere(uri: str, tmp_path: Path) -> None:
    """Whichever of two agents is paused, killed or stopped, the other one serves the bookie."""
    with running(uri) as first:
        first.says("bookie-1", SERVES)
        first.says("upkeep", SERVES)
        with running(uri) as second:
            first.process.send_signal(signal.SIGSTOP)
            goes_on(second)
            first.process.send_signal(signal.SIGCONT)
            first.says("bookie-1", "no longer")
            shows_alone(uri, second.process.pid)
            second.process.kill()
            goes_on(first)
            frees(uri, tmp_path)
            with running(uri) as third:
                first.process.send_signal(signal.SIGTERM)
                first.says("agent", "stopped")
                assert first.process.wait() == 0
                goes_on(third)
                shows_alone(uri, third.process.pid)
                frees(uri, tmp_path)


def test_an_agent_that_is_cut_off_is_replaced_and_may_come_back(uri: str, tmp_path: Path) -> None:
    if not uri.startswith("zk"):
        pytest.skip("a relay stands before ZooKeeper")
    hosts = uri.removeprefix("zk://").partition("/")[0]
    relay = Relay(hosts)
    with closing(relay), running(uri.replace(hosts, relay.address)) as first:
        first.says("bookie-1", SERVES)
        first.says("upkeep", SERVES)
        with running(uri) as second:
            relay.cut()
            goes_on(second, "bookie-1", "upkeep")
            shows_alone(uri, second.process.pid)
            frees(uri, tmp_path)
            relay.mend()
            first.says("bookie-1", "no longer")
            first.says("upkeep", "no longer")
            second.process.kill()
            goes_on(first, "bookie-1", "upkeep")
            shows_alone(uri, first.process.pid)
            frees(uri, tmp_path)


def test_zookeeper_tells_of_deletions(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round without a deletion asks for no record of a ledger."""
    if not uri.startswith("zk"):
        pytest.skip("about ZooKeeper")
    asked: list[str] = []
    begin = zookeeper_session._Watched.begin

    def noted(self: zookeeper_session._Watched, path: str) -> object:
        asked.append(path)
        return begin(self, path)

    monkeypatch.setattr(zookeeper_session._Watched, "begin", noted)
    with BookKeeper(uri) as keeper, Cluster(uri) as cluster:
        with keeper.create_ledger() as ledger:
            ledger.append(b"kept")
        agent = Agent(cluster, [BookieRounds(cluster, "bookie-1", lambda *_: None)], print)
        for count in (1, 0):
            asked.clear()
            assert agent.once()
            assert len([path for path in asked if "ledgers" in path]) == count
        asked.clear()
        keeper.delete_ledger(ledger.ledger_id)
        wait_until(lambda: agent.once() and asked)  # the server tells each client for itself
        assert len([path for path in asked if "ledgers" in path]) == 1


def test_what_is_deleted_is_freed_long_before_the_next_round(uri: str, tmp_path: Path) -> None:
    with BookKeeper(uri) as keeper, Cluster(uri) as cluster:
        ledgers = [keeper.create_ledger() for _ in range(4)]
        for ledger in ledgers:
            ledger.append(b"x")
            ledger.close()
        with running(uri, every="1h"):
            wait_until(lambda: cluster.upkeep.reports.get("agent.bookie-1"))
            for ledger in ledgers[:3]:
                keeper.delete_ledger(ledger.ledger_id)
                folder = tmp_path / "disk1" / layout.ledger_folder(ledger.ledger_id)
                wait_until(lambda folder=folder: not folder.exists())
        [entry] = keeper.open_ledger(ledgers[3].ledger_id).read()
        assert entry.value == b"x"
        assert (tmp_path / "disk1" / layout.ledger_folder(ledgers[3].ledger_id)).exists()


def goes_on(agent: AgentProcess, *subjects: str) -> None:
    """The agent begins to serve them soon after now."""
    now = datetime.now(UTC)
    for subject in subjects or ("bookie-1",):
        assert agent.says(subject, SERVES) - now < ELSEWHERE_WITHIN


def shows_alone(uri: str, process_id: int) -> None:
    with Cluster(uri) as cluster:
        found = living_agents(cluster)
    assert {name: agent.process_id for name, agent in found.items()} == {"bookie-1": process_id}


def frees(uri: str, tmp_path: Path) -> None:
    """The agent frees what is deleted, and rows beside it stay."""
    with BookKeeper(uri) as keeper:
        with keeper.create_ledger() as kept:
            kept.append(b"kept")
        with keeper.create_ledger() as deleted:
            deleted.append(b"deleted")
        keeper.delete_ledger(deleted.ledger_id)
        folder = tmp_path / "disk1" / layout.ledger_folder(deleted.ledger_id)
        wait_until(lambda: not folder.exists())
        [entry] = keeper.open_ledger(kept.ledger_id).read()
        assert entry.value == b"kept"
