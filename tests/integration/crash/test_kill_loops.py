"""Writers that are killed at random moments, on storage that is a server: S3 and ZooKeeper.

The server is hurt as well while they write: ZooKeeper is killed and comes back with its data; lines
to S3 are cut, before the request or before its answer (the server for tests keeps its objects in
memory, so that it cannot be killed). Every third recovery is killed, too, and then made again.

    pytest -m soak tests/integration/crash        # hundreds of rounds
"""

import contextlib
import random
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bkspark.cluster.cluster import init_cluster
from tests.integration.hand_writer import violations
from tests.kit.s3 import S3Proxy, environment, s3_proxy, s3_server
from tests.kit.zookeeper import ZooKeeperServers, missing, zookeeper

from .child import value_of
from .log_work import Elsewhere
from .processes import PATIENCE_SECONDS, Processes, processes

ROUNDS = {"zookeeper": 20, "s3": 10}
SOAK_ROUNDS = 400
# What a writer has said before the random time to its death begins; "process" is at once.
MOMENTS = ("process", "ledger", "acked", "acked", "acked")


@dataclass
class Loop:
    """Rounds of killing on one cluster.

    Attributes:
        writers: where writers are forked; the line from there to the storage may be bad.
        forks: where recoveries are forked.
        hurt: does something to the storage while a writer writes.
        heal: ends it.
        life_seconds: writers are killed within so much time after they came to some point.
        acked: entries that were acknowledged so far.
        rounds_with_acks: rounds in which there was one at least.
    """

    writers: Processes
    forks: Processes
    rig: Elsewhere
    chance: random.Random
    hurt: Callable[[random.Random], None]
    heal: Callable[[], None]
    life_seconds: float
    acked: int = 0
    rounds_with_acks: int = 0
    first: int = 0

    def run(self, rounds: int) -> None:
        for number in range(rounds):
            self._round(number)
        print(f"{rounds} rounds, {self.acked} entries, in {self.rounds_with_acks} of the rounds")
        assert self.rounds_with_acks >= rounds // 3

    def _round(self, number: int) -> None:
        writer = self.writers.start("keep_adding", self.rig.uri)
        writer.wait_for(self.chance.choice(MOMENTS))
        time.sleep(self.chance.uniform(0, self.life_seconds))
        if number % 2:
            self.hurt(self.chance)
            time.sleep(self.chance.uniform(0, self.life_seconds / 2))
        writer.kill()
        self.heal()
        if number % 3 == 0:
            cut_short = self.forks.start("settle", self.rig.uri, first=self.first)
            time.sleep(self.chance.uniform(0, self.life_seconds))
            cut_short.kill()
        settled = self.forks.run("settle", self.rig.uri, first=self.first)
        assert settled.last("settled"), settled.said
        last = writer.last("acked")
        found = {event["ledger"]: event["values"] for event in settled.said if "ledger" in event}
        for ledger_id, values in found.items():
            sent = {entry_id: value_of(entry_id) for entry_id in range(len(values))}
            acked = range((-1 if last is None else last) + 1)
            wrong = violations(self.rig, ledger_id, sent, acked, patience_seconds=PATIENCE_SECONDS)
            assert not wrong, writer.said[-1]
        self.first = max([self.first, *(ledger_id + 1 for ledger_id in found)])
        if last is not None:
            self.acked += last + 1
            self.rounds_with_acks += 1


@pytest.fixture
def chance() -> random.Random:
    seed = secrets.randbelow(2**32)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    if missing():
        pytest.skip(missing())
    with zookeeper(tmp_path_factory.mktemp("zookeeper")) as servers:
        yield servers


@pytest.fixture
def zookeeper_loop(
    servers: ZooKeeperServers, forks: Processes, tmp_path: Path, chance: random.Random
) -> Loop:
    uri = f"zk://{servers.hosts}/tests/{secrets.token_hex(8)}"
    init_cluster(uri, [(tmp_path / f"disk{number}").as_uri() for number in range(3)])
    (server,) = servers.servers

    def hurt(chance: random.Random) -> None:
        # It takes a second or two to come back.
        if chance.random() < 0.4:
            server.kill()

    def heal() -> None:
        if not server.role():
            server.restart()

    return Loop(forks, forks, Elsewhere(tmp_path, uri=uri), chance, hurt, heal, life_seconds=0.2)


@pytest.fixture
def s3_loop(tmp_path: Path, chance: random.Random) -> Iterator[Loop]:
    (tmp_path / "writers").mkdir()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(s3_server())
        uri = server.url()
        init_cluster(uri, [f"{server.url()}/b{number}" for number in range(3)])
        # Each server hands on the environment that says where the store is.
        forks = stack.enter_context(processes(tmp_path))
        proxy = stack.enter_context(s3_proxy(server))
        writers = stack.enter_context(processes(tmp_path / "writers"))
        stack.enter_context(environment(server.port))
        yield Loop(
            writers,
            forks,
            Elsewhere(tmp_path, uri=uri),
            chance,
            lambda chance: cut(proxy, chance),
            proxy.heal,
            life_seconds=0.6,
        )


def cut(proxy: S3Proxy, chance: random.Random) -> None:
    for method in ("PUT", "GET"):
        proxy.fail(method, times=chance.randrange(1, 9), reaches_store=chance.random() < 0.5)


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_writers_killed_over_zookeeper(zookeeper_loop: Loop) -> None:
    zookeeper_loop.run(ROUNDS["zookeeper"])


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_writers_killed_over_s3(s3_loop: Loop) -> None:
    s3_loop.run(ROUNDS["s3"])


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_many_writers_killed_over_zookeeper(zookeeper_loop: Loop) -> None:
    zookeeper_loop.run(SOAK_ROUNDS)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_many_writers_killed_over_s3(s3_loop: Loop) -> None:
    s3_loop.run(SOAK_ROUNDS)
