"""Sink, source and sink again, through several logs, with drivers that are killed on the way.

    BKSPARK_SOAK_KILLS=500 pytest -s -n0 -m soak tests/spark/test_stream_chains.py -k three

goes on until so many drivers were killed. The other backends have one short chain
each: what happens at which moment does not depend on them, but that nothing is lost does.
"""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stream_job import MOMENTS
from stream_stage import Stage, make_cluster

from bkspark.cluster.cluster import init_cluster
from tests.kit.s3 import s3_server
from tests.kit.zookeeper import missing, zookeeper

KILLS = int(os.environ.get("BKSPARK_SOAK_KILLS", "1"))
TURNS = 3

pytestmark = pytest.mark.timeout(1200 + 120 * KILLS)


@pytest.mark.soak
def test_rows_go_through_three_logs_once_while_drivers_are_killed(tmp_path: Path) -> None:
    uri = make_cluster(tmp_path / "cluster", 4)
    stage = Stage(uri, tmp_path, ["first", "second", "third"])
    chance, kills, turns = random.Random(time.time_ns()), 0, 0
    while kills < KILLS or turns % TURNS:
        stage.feed(3)
        if turns % TURNS == 0:
            kills += stage.kill_at_a_moment(chance.choice(list(MOMENTS)))
        else:
            kills += stage.kill_at_random(chance)
        turns += 1
        if not turns % TURNS:
            stage.feed(1)
            stage.finish()
            stage.check()
            print(f"{kills} kills, {stage.file_count} files, every row in every log once")


@pytest.fixture(
    params=[
        pytest.param("zookeeper", marks=pytest.mark.thorough),
        pytest.param("s3", marks=pytest.mark.soak),
    ]
)
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Metadata on ZooKeeper, with bookies on disk; or all on S3."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    if request.param == "s3":
        with s3_server() as server:
            uri = server.url("metadata")
            init_cluster(uri, [server.url(f"bookie-{n}") for n in range(3)])
            yield uri
        return
    if missing():
        pytest.fail(missing())
    with zookeeper(folder) as servers:
        uri = f"zk://{servers.hosts}/bkspark"
        init_cluster(uri, [(folder / f"bookie-{n}").as_uri() for n in range(3)])
        yield uri


def test_sink_and_source_on_other_stores_go_on_where_a_killed_driver_was(
    uri: str, tmp_path: Path
) -> None:
    stage = Stage(uri, tmp_path, ["first", "second"])
    stage.feed(4)
    stage.kill_at_a_moment("before the metadata check")
    stage.feed(2)
    stage.finish()
    stage.check()
