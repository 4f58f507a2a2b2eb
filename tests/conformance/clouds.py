"""The other clouds, each with a proxy before its server."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bkspark.storage.google import EMULATOR
from tests.kit.s3 import S3Proxy, proxied

from . import azurite, fake_gcs
from .started import HOST, environment


@dataclass(frozen=True)
class Cloud:
    """A server that is reached by way of a proxy.

    Attributes:
        put: the method of a request that makes an object at once, and a part of its address.
        no_bucket: the status and the code for a missing bucket.
    """

    url: Callable[[], str]
    proxy: S3Proxy
    put: tuple[str, str]
    no_bucket: tuple[int, str]

    def puts(self, name: str = "") -> list[int]:
        """What the server answered to puts."""
        method, part = self.put
        return [
            status
            for seen, path, status in self.proxy.seen
            if seen == method and part in path and name in path
        ]


@contextmanager
def google(folder: Path) -> Iterator[Cloud]:
    with (
        fake_gcs.fake_gcs(folder) as server,
        proxied(server.port) as proxy,
        environment({EMULATOR: f"http://{HOST}:{proxy.port}"}),
    ):
        put = ("POST", "uploadType=multipart")
        yield Cloud(server.url, proxy, put, (404, "NoSuchBucket"))


@contextmanager
def azure(folder: Path) -> Iterator[Cloud]:
    with azurite.azurite(folder) as server, proxied(server.port) as proxy:
        given = azurite.connection_string(proxy.port)
        with environment({"AZURE_STORAGE_CONNECTION_STRING": given}):
            yield Cloud(server.url, proxy, ("PUT", "/ledgers/"), (404, "ContainerNotFound"))


CLOUDS: dict[str, tuple[Callable[[Path], AbstractContextManager[Cloud]], str]] = {
    "google": (google, fake_gcs.missing()),
    "azure": (azure, azurite.missing()),
}
