"""What sessions cost at real servers, and that none is left behind."""

import contextlib
import multiprocessing
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bkspark import environment
from bkspark.metadata import freshness, kept_sessions
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.kept_sessions import KeptSessions
from bkspark.metadata.uri import format_store, open_store
from tests.benchmarks.costs import WRITES, ZooKeeperMeter
from tests.kit.zookeeper import ZooKeeperServers, missing, zookeeper

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(bool(missing()), reason=missing())]

KEY = "ledgers/0000000000000001"
IN_A_PROCESS = """
import os, signal, sys
from bkspark.metadata import freshness
from bkspark.metadata.uri import open_store

for _ in range(3):
    store = open_store(sys.argv[1])
    with freshness.guess():
        store.get(sys.argv[2])
    store.close()
if sys.argv[3:]:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    with zookeeper(tmp_path_factory.mktemp("zookeeper")) as servers:
        yield servers


@pytest.fixture
def uri(servers: ZooKeeperServers) -> Iterator[str]:
    """A store with a record; no session is kept."""
    uri = f"zk://{servers.hosts}/{secrets.token_hex(8)}"
    with contextlib.closing(format_store(uri)) as store:
        store.put(KEY, b"1", None)
    end_kept()
    yield uri
    end_kept()


def end_kept() -> None:
    environment.the_one(KeptSessions).end_all()


def writes(address: str) -> int:
    return ZooKeeperMeter(address).read()[WRITES]


def look(uri: str) -> None:
    """Look by a new store, which takes no quorum write itself."""
    with contextlib.closing(open_store(uri)) as store, freshness.guess():
        assert store.get(KEY) is not None


def wait_for(state: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not state():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_one_session_serves_one_store_after_the_other(servers: ZooKeeperServers, uri: str) -> None:
    before = writes(servers.hosts)
    for _ in range(5):
        look(uri)
    assert writes(servers.hosts) == before + 1
    end_kept()
    assert writes(servers.hosts) == before + 2


def test_each_store_has_its_own_if_none_is_kept(
    servers: ZooKeeperServers, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kept_sessions.VARIABLE, "0")
    before = writes(servers.hosts)
    for _ in range(5):
        look(uri)
    assert writes(servers.hosts) == before + 10


def test_a_session_ends_with_its_process(servers: ZooKeeperServers, uri: str) -> None:
    before = writes(servers.hosts)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IN_A_PROCESS, uri, KEY], capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert writes(servers.hosts) == before + 2


def test_the_servers_end_the_session_of_a_killed_process(
    servers: ZooKeeperServers, uri: str
) -> None:
    before = writes(servers.hosts)
    done = subprocess.run([sys.executable, "-c", IN_A_PROCESS, uri, KEY, "kill"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert writes(servers.hosts) == before + 1
    wait_for(lambda: writes(servers.hosts) == before + 2)


def test_a_forked_process_has_its_own(servers: ZooKeeperServers, uri: str) -> None:
    look(uri)
    before = writes(servers.hosts)
    child = multiprocessing.get_context("fork").Process(target=look, args=(uri,))
    child.start()
    child.join(120)
    assert child.exitcode == 0
    between = writes(servers.hosts)
    assert between > before
    look(uri)
    assert writes(servers.hosts) == between


def test_servers_that_began_anew_are_met_by_a_new_session(tmp_path: Path) -> None:
    with zookeeper(tmp_path) as servers:
        uri = f"zk://{servers.hosts}/anew"
        format_store(uri).close()
        servers.servers[0].restart()
        with contextlib.closing(open_store(uri)) as store:
            assert store.put(KEY, b"1", None) == 1


def test_a_sleeping_server_is_noticed_before_a_change_is_sent(
    servers: ZooKeeperServers, uri: str
) -> None:
    """The kept connection is there, and nobody answers: the first question is repeatable."""
    store = open_store(uri)
    store.get(KEY)
    store.close()
    servers.servers[0].pause()
    resumed = environment.after(1.0, servers.servers[0].resume, "resume")
    try:
        assert store.put(KEY, b"2", 1) == 2
    finally:
        resumed()
        servers.servers[0].resume()
    store.close()


def test_local_sessions_take_no_write(tmp_path: Path) -> None:
    """An ensemble alone has them; a place in a row makes a session global."""
    local = {"localSessionsEnabled": "true", "localSessionsUpgradingEnabled": "true"}
    with zookeeper(tmp_path, count=3, settings=local) as servers:
        uri = f"zk://{servers.hosts}/local"
        with contextlib.closing(format_store(uri)) as store:
            store.put(KEY, b"1", None)
        end_kept()
        address = servers.leader().address
        wait_for(lambda: len({writes(each.address) for each in servers.servers}) == 1)
        before = writes(address)
        look(uri)
        end_kept()
        with contextlib.closing(open_store(uri)) as store, freshness.from_here():
            assert store.get(KEY) == VersionedBytes(b"1", 1)  # by a transaction of its own
            assert writes(address) == before + 1
            candidate: Any = store
            place = candidate.first_place("wal", "me", 5.0)
            assert place.is_there(is_surely=True)
            assert place.is_there(is_surely=False)
            assert list(candidate.row("wal")) == ["me"]
            place.leave()
