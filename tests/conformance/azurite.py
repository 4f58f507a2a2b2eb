"""Azure Blob Storage for tests: azurite, Microsoft's own emulator, installed by npm."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from bkspark.bookie.object_store import records_folder

from .started import HOST, cached, environment, installed, started

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient

VERSION = "3.37.0"
_NAME = f"azurite-{VERSION}"
ACCOUNT = "devstoreaccount1"
# Published by Microsoft, for azurite alone.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def missing() -> str:
    """Why the server cannot be had here; empty if it can."""
    if not shutil.which("node"):
        return "there is no node to run azurite with"
    is_there = shutil.which("npm") or cached(_NAME).exists()
    return "" if is_there else "there is no npm to install azurite with"


@dataclass(frozen=True)
class AzureServer:
    """A server with one empty container."""

    port: int
    container: str

    @property
    def connection_string(self) -> str:
        return connection_string(self.port)

    def url(self, prefix: str = "") -> str:
        """The URL of ``prefix``, or of an unused prefix."""
        return f"abfss://{self.container}/{prefix or uuid4().hex}"

    def client(self, container: str = "") -> "ContainerClient":
        """A client past all of the project's code."""
        from azure.storage.blob import ContainerClient  # slow, and most test runs need none

        name = container or self.container
        return ContainerClient.from_connection_string(self.connection_string, name)

    def make_container(self, name: str) -> None:
        with self.client(name) as client:
            client.create_container()


def connection_string(port: int) -> str:
    """The connection string for a server at ``port``."""
    endpoint = f"http://{HOST}:{port}/{ACCOUNT}"
    return f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};"


@contextmanager
def azurite(folder: Path) -> Iterator[AzureServer]:
    """Start a server that keeps its objects in memory, and point the environment to it."""
    npm = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
    program = installed(_NAME, lambda own: [*npm, "--prefix", str(own), f"azurite@{VERSION}"])
    script = program / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"

    def command(port: int) -> list[str]:
        flags = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        return ["node", str(script), "--blobHost", HOST, "--blobPort", str(port), *flags]

    with started(command, folder / "azurite.log") as port:
        server = AzureServer(port, f"container-{uuid4().hex[:12]}")
        server.make_container(server.container)
        with environment({"AZURE_STORAGE_CONNECTION_STRING": server.connection_string}):
            yield server


class AzurePlace:
    """A prefix, reached past all of the project's code."""

    def __init__(self, server: AzureServer) -> None:
        self.url = server.url()
        self._client: Any = server.client()
        self._prefix = self.url.removeprefix(f"abfss://{server.container}/") + "/"

    def get(self, name: str) -> bytes | None:
        if self._prefix + name not in self._keys():
            return None
        body = self._body(self._prefix + name)
        if body != b"\0bkspark journal":
            return body
        return b"".join(self._body(key) for key in self._records(name))

    def set(self, name: str, data: bytes) -> None:
        self._client.upload_blob(self._prefix + name, data, overwrite=True)

    def remove(self, name: str) -> None:
        self._client.delete_blob(self._prefix + name)

    def truncate(self, name: str, size: int) -> None:
        """Cut the last record of the journal ``name`` to ``size`` bytes, and keep its token."""
        key = self._records(name)[-1]
        metadata = self._client.get_blob_client(key).get_blob_properties().metadata
        body = self._body(key)[:size]
        self._client.upload_blob(key, body, overwrite=True, metadata=metadata)

    def names(self) -> list[str]:
        return [key.removeprefix(self._prefix) for key in self._keys()]

    def wipe(self) -> None:
        for key in self._keys():
            self._client.delete_blob(key)

    def move_away(self) -> None:
        self.wipe()

    def _records(self, name: str) -> list[str]:
        folder = f"{self._prefix}{records_folder(name)}/"
        return sorted(key for key in self._keys() if key.startswith(folder))

    def _keys(self) -> list[str]:
        return [blob.name for blob in self._client.list_blobs(name_starts_with=self._prefix)]

    def _body(self, key: str) -> bytes:
        return bytes(self._client.download_blob(key).readall())
