"""An S3 server with a bucket for each file of tests that needs one, a bookie behind a faulty line
to it, and every kind of metadata store.
"""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie, BookieAddress, BookieRoot
from bkspark.metadata.contract import MetadataStore
from bkspark.metadata.uri import format_store
from bkspark.storage import connection
from bkspark.testing.bookie_place import CLUSTER, INCARNATION, a_cookie
from tests.kit.s3 import ALWAYS, S3Proxy, S3Server, another_server, new_bucket, s3_proxy
from tests.kit.zookeeper import missing, zookeeper


@pytest.fixture(scope="session")
def running_server() -> Iterator[S3Server]:
    """Starting one takes longer than most files use it. No client is pointed to it."""
    with another_server("unused") as server:
        yield server


@pytest.fixture(scope="module")
def server(running_server: S3Server) -> Iterator[S3Server]:
    with new_bucket(running_server) as server:
        yield server


@pytest.fixture(scope="module")
def only_proxy(server: S3Server) -> Iterator[S3Proxy]:
    with s3_proxy(server) as proxy:
        yield proxy


@pytest.fixture
def proxy(only_proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    """A line to the server without a fault so far; what fails is tried again at once.

    It is tried until the fault is over, or not at all if the fault lasts.
    """

    def retry_seconds() -> float:
        return 0.0 if any(fault.times > ALWAYS // 2 for fault in only_proxy.faults) else 60.0

    monkeypatch.setattr(connection, "PAUSES_SECONDS", (0.001, 0.001))
    monkeypatch.setattr(connection, "retry_seconds", retry_seconds)
    yield only_proxy
    only_proxy.heal()


@pytest.fixture
def forget() -> Iterator[Callable[[], None]]:
    """For a test that changes what a connection begins with; forgotten at its end too."""
    yield connection.forget
    connection.forget()


@pytest.fixture
def s3_bookie(server: S3Server, proxy: S3Proxy) -> Bookie:
    """A bookie that is reached by way of ``proxy``."""
    url = server.url()
    uri.storage(url).format(a_cookie())
    proxy.heal()
    return uri.open_bookie(BookieAddress("b1", INCARNATION, CLUSTER, url))


@pytest.fixture
def root(s3_bookie: Bookie) -> Iterator[BookieRoot]:
    with s3_bookie.open_root() as root:
        yield root


class BackDoor:
    """The server's bucket, reached past the proxy and all of the project's code."""

    def __init__(self, server: S3Server) -> None:
        self._bucket = server.bucket
        self._client: Any = boto3.client("s3", endpoint_url=server.endpoint)

    def keys(self, url: str) -> list[str]:
        """Names of the objects at ``url``, none hidden."""
        prefix = self._key(url, "")
        found = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix)
        return [entry["Key"].removeprefix(prefix) for entry in found.get("Contents", [])]

    def get(self, url: str, name: str) -> bytes:
        found = self._client.get_object(Bucket=self._bucket, Key=self._key(url, name))
        return bytes(found["Body"].read())

    def put(self, url: str, name: str, data: bytes, **settings: str) -> None:
        self._client.put_object(
            Bucket=self._bucket, Key=self._key(url, name), Body=data, **settings
        )

    def remove(self, url: str, name: str) -> None:
        self._client.delete_object(Bucket=self._bucket, Key=self._key(url, name))

    def uploads(self) -> list[str]:
        """Keys of uploads that are under way."""
        found = self._client.list_multipart_uploads(Bucket=self._bucket)
        return [upload["Key"] for upload in found.get("Uploads", [])]

    def _key(self, url: str, name: str) -> str:
        return f"{url.removeprefix(f's3://{self._bucket}/')}/{name}"


@pytest.fixture(scope="module")
def back_door(server: S3Server) -> BackDoor:
    return BackDoor(server)


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with zookeeper(tmp_path_factory.mktemp("zookeeper")) as servers:
        yield servers.hosts


@pytest.fixture(
    params=[
        "file",
        "memory",
        "s3",
        pytest.param("zk", marks=pytest.mark.skipif(bool(missing()), reason=missing())),
    ]
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MetadataStore]:
    uris: dict[str, Callable[[], str]] = {
        "file": lambda: (tmp_path / "metadata").as_uri(),
        "memory": lambda: f"memory://{secrets.token_hex(8)}",
        "s3": lambda: str(request.getfixturevalue("server").url()),
        "zk": lambda: f"zk://{request.getfixturevalue('hosts')}/tests/{secrets.token_hex(8)}",
    }
    found = format_store(uris[request.param]())
    yield found
    found.close()
