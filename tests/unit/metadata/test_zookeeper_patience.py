"""Open writers ride out what ZooKeeper does, and what is done to their own process."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import bkspark
from bkspark.cluster.cluster import init_cluster
from bkspark.errors import OutcomeUnknownError
from tests.kit.zookeeper import ZooKeeperServers, missing, zookeeper

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(bool(missing()), reason=missing())]

AWAY_SECONDS = 15.0
"""Longer than a session lasts, and than a writer waited before there was a setting."""

WRITER = """
import sys, bkspark
with bkspark.BookKeeper(sys.argv[1], metadata_timeout=5) as bk:
    with bk.create_log("paused").writer() as writer:
        while True:
            print(writer.append(b"x"), flush=True)
"""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ZooKeeperServers]:
    with zookeeper(tmp_path / "zookeeper") as servers:
        yield servers


@pytest.fixture
def uri(servers: ZooKeeperServers, tmp_path: Path) -> str:
    uri = f"zk://{servers.hosts}/bk"
    init_cluster(uri, [(tmp_path / f"b{number}").as_uri() for number in range(4)])
    return uri


def test_a_writer_waits_while_there_is_no_quorum(uri: str, servers: ZooKeeperServers) -> None:
    with bkspark.BookKeeper(uri) as bk, bk.create_log("log").writer() as writer:
        assert writer.append(b"0") == 0
        servers.kill()
        waiting = writer.append_async(b"1")
        time.sleep(AWAY_SECONDS)
        assert not waiting.done()  # never acknowledged without the metadata check
        servers.start()
        assert waiting.result(60) == 1
        assert writer.append(b"2") == 2
        assert writer.faults == {}


def test_how_long_it_waits_is_a_setting(uri: str, servers: ZooKeeperServers) -> None:
    with bkspark.BookKeeper(uri, metadata_timeout=1) as bk:
        writer = bk.create_log("log").writer()
        writer.append(b"0")
        servers.kill()
        with pytest.raises(OutcomeUnknownError, match=r"within 1 s|ZooKeeper"):
            writer.append(b"1")
        servers.start()
        with pytest.raises(OutcomeUnknownError):
            writer.close()


def test_a_change_of_members_is_settled_by_looking(
    uri: str, servers: ZooKeeperServers, tmp_path: Path
) -> None:
    with bkspark.BookKeeper(uri) as bk, bk.create_log("log").writer() as writer:
        writer.append(b"0")
        gone = writer._segment.handle.metadata.last_fragment.ensemble[0].bookie_id
        servers.kill()
        os.rename(tmp_path / f"b{int(gone.rpartition('-')[2]) - 1}", tmp_path / "away")
        waiting = writer.append_async(b"1")
        starting = threading.Timer(AWAY_SECONDS, servers.start)
        starting.start()
        assert waiting.result(90) == 1
        assert writer.append(b"2") == 2
        starting.join()


def test_a_pause_of_the_client_is_no_silence_of_the_servers(uri: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, uri], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert int(process.stdout.readline()) == 0
            for _ in range(2):
                process.send_signal(signal.SIGSTOP)
                time.sleep(AWAY_SECONDS)
                process.send_signal(signal.SIGCONT)
                before = int(process.stdout.readline())
                while int(process.stdout.readline()) < before + 200:
                    pass
            assert process.poll() is None
        finally:
            process.kill()
