"""What s3fs and S3 do by themselves: facts that the S3 backend is built around.

If one of these fails, a library has changed; read what the backend makes of the fact before
changing the test.
"""

import os
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
import s3fs

from bkspark.storage.address import parse
from bkspark.storage.objects import Objects
from tests.kit.s3 import HOST, S3Proxy, S3Server, s3_proxy, s3_server

pytestmark = pytest.mark.thorough


@pytest.fixture
def client(server: S3Server) -> Any:
    return boto3.client("s3", endpoint_url=server.endpoint)


@pytest.fixture
def objects(server: S3Server) -> Objects:
    return Objects(parse(server.url()))


@pytest.fixture
def proxy(server: S3Server) -> Iterator[S3Proxy]:
    with s3_proxy(server) as proxy:
        yield proxy


def test_default_s3fs_hides_a_fence_that_another_process_made(
    client: Any, objects: Objects
) -> None:
    """H1: one listing, and what appears later stays unseen for ever. Ours sees it."""
    place = objects.place
    path = f"{place.bucket}/{place.prefix}"
    client.put_object(Bucket=place.bucket, Key=place.key("terms/1"), Body=b"x")
    theirs = s3fs.S3FileSystem()
    assert theirs.ls(f"{path}/terms") == [f"{path}/terms/1"]
    assert not theirs.exists(f"{path}/terms/2")
    assert objects.look("terms/2") is None
    assert list(objects.entries("terms")) == ["1"]

    client.put_object(Bucket=place.bucket, Key=place.key("terms/2"), Body=b"fence")

    assert not theirs.exists(f"{path}/terms/2")
    assert theirs.ls(f"{path}/terms") == [f"{path}/terms/1"]
    with pytest.raises(FileNotFoundError):
        theirs.info(f"{path}/terms/2")
    assert s3fs.S3FileSystem() is theirs

    assert objects.look("terms/2") is not None
    assert list(objects.entries("terms")) == ["1", "2"]
    s3fs.S3FileSystem.clear_instance_cache()


def test_default_s3fs_overwrites_when_an_exclusive_file_is_empty(
    client: Any, objects: Objects
) -> None:
    """H6 (c). Ours creates, and stores nothing that is empty."""
    place = objects.place
    path = f"{place.bucket}/{place.key('marker')}"
    client.put_object(Bucket=place.bucket, Key=place.key("marker"), Body=b"old")
    theirs = s3fs.S3FileSystem()
    with theirs.open(path, "xb"):
        pass
    assert theirs.cat_file(path) == b""
    assert objects.create("marker", b"") is None
    assert objects.create("other", b"") is not None
    stored = client.get_object(Bucket=place.bucket, Key=place.key("other"))["Body"].read()
    assert stored == b"\0bkspark empty  "
    s3fs.S3FileSystem.clear_instance_cache()


def test_botocore_reports_a_lost_race_for_its_own_object(proxy: S3Proxy, objects: Objects) -> None:
    """H6 (a): the answer is lost, the request is repeated in silence, and meets itself."""
    place = objects.place
    theirs = boto3.client("s3")
    proxy.fail("PUT", times=1, reaches_store=True)
    with pytest.raises(theirs.exceptions.ClientError, match="PreconditionFailed"):
        theirs.put_object(Bucket=place.bucket, Key=place.key("x"), Body=b"mine", IfNoneMatch="*")
    assert proxy.statuses("PUT") == [200, 412]
    assert theirs.get_object(Bucket=place.bucket, Key=place.key("x"))["Body"].read() == b"mine"


def test_aiohttp_sends_a_request_again_when_its_connection_broke(
    proxy: S3Proxy, objects: Objects
) -> None:
    """Whatever botocore's and s3fs's settings are. Ours does so where it may, and nowhere else."""
    place = objects.place
    theirs = s3fs.S3FileSystem(skip_instance_cache=True)
    theirs.retries = 1
    theirs.config_kwargs = {"retries": {"total_max_attempts": 1}}
    arguments = {"Bucket": place.bucket, "Key": place.key("x"), "Body": b"x", "IfNoneMatch": "*"}
    proxy.fail("PUT", times=1, reaches_store=True)
    with pytest.raises(OSError, match="pre-conditions"):
        theirs.call_s3("put_object", **arguments)
    assert proxy.statuses("PUT") == [200, 412]
    proxy.heal()
    proxy.fail("PUT", times=1, reaches_store=True)
    assert objects.create("y", b"y", once=True) is not None
    assert proxy.statuses("PUT") == [200]


def test_server_stops_and_leaves_the_environment_as_it_was() -> None:
    before = dict(os.environ)
    with s3_server() as server:
        assert os.environ["AWS_ENDPOINT_URL"] == server.endpoint
    assert dict(os.environ) == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


@pytest.mark.parametrize("sent", [b"", b"cut"])
def test_a_request_that_is_cut_short_stores_nothing(
    server: S3Server, proxy: S3Proxy, objects: Objects, sent: bytes
) -> None:
    """A client that is killed while it writes has written nothing, as on S3 (IncompleteBody)."""
    path = f"/{objects.place.bucket}/{objects.place.key('name')}"
    head = f"PUT {path} HTTP/1.1\r\nHost: s3\r\nContent-Length: 5\r\n\r\n".encode()
    for port in (server.port, urlsplit(os.environ["AWS_ENDPOINT_URL"]).port):
        with socket.create_connection((HOST, port), timeout=10) as line:
            line.sendall(head + sent)
            line.shutdown(socket.SHUT_WR)
            while line.recv(4096):
                pass
    assert objects.look("name") is None
    assert proxy.statuses("PUT") == []
