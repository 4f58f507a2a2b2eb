"""Two S3 servers in one process, and one cluster that is spread over both."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import boto3
import pytest

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.storage import connection, stores
from tests.integration.rig import flat, partitions_of
from tests.kit.s3 import S3Server, another_server

from .bucket_rig import SILENT, BucketRig

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def other(server: S3Server) -> Iterator[S3Server]:
    """A second server, with a bucket of the same name."""
    with another_server(server.bucket) as other:
        yield other


@pytest.fixture
def file(server: S3Server, other: S3Server, tmp_path: Path) -> Iterator[Path]:
    """The file of stores; each server has an account of its own."""
    accounts = tmp_path / "credentials"
    accounts.write_text(
        "".join(
            f"[{name}]\naws_access_key_id = {name}-key\naws_secret_access_key = {name}-secret\n"
            for name in ("east", "west")
        )
    )
    file = tmp_path / "stores.toml"
    file.write_text(
        f'[east]\nendpoint_url = "{other.endpoint}"\nprofile = "east"\nregion = "eu-east-1"\n'
        f'addressing_style = "path"\n[again]\nendpoint_url = "{other.endpoint}"\n'
        f'[west]\nendpoint_url = "{server.endpoint}"\nprofile = "west"\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(stores.VARIABLE, str(file))
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(accounts))
        connection.forget()
        yield file
    connection.forget()


class SpreadRig(BucketRig):
    """The metadata and two bookies are on one server, and the third bookie on the other."""

    def __post_init__(self) -> None:
        urls = [f"{self.place}/b{number}" for number in (1, 2, 3)]
        self.uri = f"{self.place}/metadata?store=west"
        init_cluster(self.uri, urls[:1])
        with Cluster(self.uri) as cluster:
            cluster.add_bookie("", urls[1], store="west")
            cluster.add_bookie("", urls[2], store="east")
            self.urls = {name: record.place for name, record in cluster.bookies().items()}


def keys(server: S3Server) -> set[str]:
    client = boto3.client("s3", endpoint_url=server.endpoint)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=server.bucket)
    return {entry["Key"] for page in pages for entry in page.get("Contents", [])}


def test_a_cluster_on_two_servers(file: Path, server: S3Server, other: S3Server) -> None:
    rig = SpreadRig(file.parent, place=server.url())
    partitions = partitions_of(2, 3)
    rig.write(partitions)
    log = rig.log()
    assert log is not None
    assert rig.rows() == flat(partitions)
    assert rig.lose_rows("bookie-3", log.listed_ids[0]) > 0
    assert verbs.repair(rig.uri).left == []
    assert rig.rows() == flat(partitions)
    with BookKeeper(rig.uri) as keeper:
        left = keeper.create_ledger(settings=SILENT)
        left.append(b"one")
        left.release()
        assert keeper.recover_ledger(left.ledger_id).last_entry_id == 0
    below = rig.place.removeprefix(f"s3://{server.bucket}/")
    assert {key.split("/")[1] for key in keys(server) if key.startswith(below)} == {
        *("metadata", "b1", "b2")
    }
    assert {key.split("/")[1] for key in keys(other) if key.startswith(below)} == {"b3"}


def test_each_store_has_its_own_settings(file: Path) -> None:
    clients = {name: connection._connected(name).s3 for name in ("", "east", "again", "west")}
    keys = {n: c._request_signer._credentials.access_key for n, c in clients.items()}
    assert keys == {
        "": "test-access-key",
        "east": "east-key",
        "again": "test-access-key",
        "west": "west-key",
    }
    assert {n: c.meta.region_name for n, c in clients.items()} == {
        "": "us-east-1",
        "east": "eu-east-1",
        "again": "us-east-1",
        "west": "us-east-1",
    }
    assert clients["east"].meta.config.s3["addressing_style"] == "path"


def test_a_named_store_takes_no_endpoint_of_the_environment(file: Path) -> None:
    file.write_text("[aws]\n[none]\nprofile = 'none'\n[odd]\nregion = 'r'\nca_file = 'credentials'")
    assert connection.endpoint_of("aws") == ""
    assert connection.endpoint_of("odd") == ""
    assert connection._connected("odd").s3._endpoint.http_session._verify.endswith("/credentials")
    with pytest.raises(InvalidRequestError, match="store none cannot be used here") as caught:
        connection.endpoint_of("none")
    assert caught.value.hint == "set the profile of store none"


def read(uri: str, ledger_id: int) -> list[bytes]:
    with BookKeeper(uri) as keeper:
        return [entry.value for entry in keeper.open_ledger(ledger_id).read()]


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_another_process_finds_the_stores(file: Path, server: S3Server, way: str) -> None:
    rig = SpreadRig(file.parent, place=server.url())
    with BookKeeper(rig.uri) as keeper, keeper.create_ledger(settings=SILENT) as ledger:
        ledger.append(b"one")
    with ProcessPoolExecutor(1, mp_context=get_context(way)) as pool:
        assert pool.submit(read, rig.uri, ledger.ledger_id).result(60) == [b"one"]


def test_a_machine_without_the_store_reads_other_copies(
    file: Path, server: S3Server, forget: Callable[[], None]
) -> None:
    rig = SpreadRig(file.parent, place=server.url())
    with BookKeeper(rig.uri) as keeper, keeper.create_ledger(settings=SILENT) as ledger:
        ledger.append(b"one")
    text = file.read_text()
    file.write_text(text.replace("[east]", "[eastern]"))
    forget()
    assert read(rig.uri, ledger.ledger_id) == [b"one"]
    with Cluster(rig.uri) as cluster:
        [problem] = [status.problem for status in cluster.probe() if status.problem]
    assert "store east is not known on this machine" in problem
    os.environ.pop(stores.VARIABLE)
    forget()
    with pytest.raises((InvalidRequestError, BookieUnavailableError), match="is not set"):
        Cluster(rig.uri)
