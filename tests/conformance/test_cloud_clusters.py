"""Spark on each of the other clouds, and one cluster that is spread over three."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path

import pytest

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.storage import connection, stores
from tests.integration.rig import flat, partitions_of
from tests.kit.s3 import S3Server

from . import azurite, fake_gcs
from .bucket_rig import SILENT, BucketRig
from .clouds import CLOUDS
from .started import HOST, environment

pytestmark = [pytest.mark.thorough, pytest.mark.download, pytest.mark.timeout(1800)]

DRIVER = Path(__file__).with_name("cloud_driver.py")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", CLOUDS)
def test_a_dataframe_and_a_stream(name: str, tmp_path: Path) -> None:
    start, missing = CLOUDS[name]
    if missing:
        pytest.skip(missing)
    with start(tmp_path) as cloud:
        uri = f"{cloud.url()}/metadata"
        init_cluster(uri, [cloud.url() for _ in range(3)])
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, str(DRIVER), uri, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"batch": [*range(2000)], "copied": [*range(2000)]}


@pytest.fixture
def servers(
    server: S3Server, tmp_path: Path
) -> Iterator[tuple[S3Server, fake_gcs.GoogleServer, azurite.AzureServer]]:
    """A server of each kind; those of Google and Azure are known by the file of stores alone."""
    with ExitStack() as started:
        for missing in (fake_gcs.missing(), azurite.missing()):
            if missing:
                pytest.skip(missing)
        google = started.enter_context(fake_gcs.fake_gcs(tmp_path))
        azure = started.enter_context(azurite.azurite(tmp_path))
        (tmp_path / "azure.key").write_text(azurite.KEY)
        (tmp_path / "stores.toml").write_text(
            f'[google]\nendpoint_url = "http://{HOST}:{google.port}"\n'
            f'[azure]\nendpoint_url = "http://{HOST}:{azure.port}/{azurite.ACCOUNT}"\n'
            f'account = "{azurite.ACCOUNT}"\nidentity_file = "azure.key"\n'
        )
        elsewhere = {
            stores.VARIABLE: str(tmp_path / "stores.toml"),
            fake_gcs.EMULATOR: "http://127.0.0.1:1",
            "AZURE_STORAGE_CONNECTION_STRING": "",
        }
        started.enter_context(environment(elsewhere))
        yield server, google, azure
    connection.forget()


class ThreeClouds(BucketRig):
    """The metadata and a bookie are on S3, one bookie is in Google's store, and one in Azure."""

    def __post_init__(self) -> None:
        s3, google, azure = self.place.split()
        self.uri = f"{s3}/metadata"
        init_cluster(self.uri, [f"{s3}/b1"])
        with Cluster(self.uri) as cluster:
            cluster.add_bookie("", google, store="google")
            cluster.add_bookie("", azure, store="azure")
            self.urls = {name: record.place for name, record in cluster.bookies().items()}


def _read(uri: str, ledger_id: int) -> list[bytes]:
    with BookKeeper(uri) as keeper:
        return [entry.value for entry in keeper.open_ledger(ledger_id).read()]


def test_a_cluster_on_three_clouds(
    servers: tuple[S3Server, fake_gcs.GoogleServer, azurite.AzureServer], tmp_path: Path
) -> None:
    rig = ThreeClouds(tmp_path, place=" ".join(server.url() for server in servers))
    with Cluster(rig.uri) as cluster:
        assert len({record.domain for record in cluster.bookies().values()}) == 3
        records = repr(cluster.bookies())
    assert HOST not in records
    partitions = partitions_of(2, 3)
    rig.write(partitions)
    assert rig.rows() == flat(partitions)
    log = rig.log()
    assert log is not None
    for bookie_id in rig.urls:
        assert rig.lose_rows(bookie_id, log.listed_ids[0]) > 0
        assert verbs.repair(rig.uri).left == []
        assert rig.rows() == flat(partitions)
    with BookKeeper(rig.uri) as keeper:
        left = keeper.create_ledger(settings=SILENT)
        left.append(b"one")
        left.release()
        assert keeper.recover_ledger(left.ledger_id).last_entry_id == 0
    for way in ("fork", "spawn"):
        with get_context(way).Pool(1) as pool:
            assert pool.apply(_read, (rig.uri, left.ledger_id)) == [b"one"]
