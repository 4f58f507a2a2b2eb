"""Google Cloud Storage for tests: fake-gcs-server, built by Go from the module proxy.

The wheel of the same name brings an older server, which makes the object of a resumable upload
without its condition; version 1.56.1 compares the generation at the end of the upload too.
"""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from bkspark.bookie.object_store import records_folder
from bkspark.storage.google import EMULATOR

from .started import HOST, built_by_go, environment, missing_go, started

VERSION = "v1.56.1"
_MODULE = "github.com/fsouza/fake-gcs-server"
_NAME = f"fake-gcs-server-{VERSION}"


def missing() -> str:
    """Why the server cannot be built here; empty if it can."""
    return missing_go(_NAME)


@dataclass(frozen=True)
class GoogleServer:
    """A server with one empty bucket."""

    port: int
    bucket: str

    def url(self, prefix: str = "") -> str:
        """The URL of ``prefix``, or of an unused prefix."""
        return f"gs://{self.bucket}/{prefix or uuid4().hex}"

    def ask(
        self, method: str, path: str, data: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Make a request past all of the project's code."""
        client = http.client.HTTPConnection(HOST, self.port, timeout=30)
        try:
            client.request(method, path, data, headers or {})
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()

    def make_bucket(self, name: str) -> None:
        made = json.dumps({"name": name}).encode()
        status, _ = self.ask("POST", "/storage/v1/b", made, {"Content-Type": "application/json"})
        assert status == 200

    def keys(self, prefix: str) -> list[str]:
        path = f"/storage/v1/b/{self.bucket}/o?prefix={quote(prefix)}"
        found: dict[str, Any] = json.loads(self.ask("GET", path)[1])
        return [entry["name"] for entry in found.get("items", ())]


@contextmanager
def fake_gcs(folder: Path) -> Iterator[GoogleServer]:
    """Start a server that keeps its objects in memory, and point the environment to it."""
    program = built_by_go(_NAME, f"{_MODULE}@{VERSION}")

    def command(port: int) -> list[str]:
        options = {"-scheme": "http", "-host": HOST, "-port": str(port), "-backend": "memory"}
        words = [word for option in options.items() for word in option]
        return [str(program / "fake-gcs-server"), *words, "-public-host", HOST]

    with started(command, folder / "fake-gcs.log") as port:
        server = GoogleServer(port, f"bucket-{uuid4().hex[:12]}")
        server.make_bucket(server.bucket)
        with environment({EMULATOR: f"http://{HOST}:{port}"}):
            yield server


class GooglePlace:
    """A prefix, reached past all of the project's code."""

    def __init__(self, server: GoogleServer) -> None:
        self.url = server.url()
        self._server = server
        self._prefix = self.url.removeprefix(f"gs://{server.bucket}/") + "/"

    def get(self, name: str) -> bytes | None:
        body = self._body(self._prefix + name)
        if body != b"\0bkspark journal":
            return body
        return b"".join(self._body(key) or b"" for key in self._records(name))

    def set(self, name: str, data: bytes) -> None:
        self._put(self._prefix + name, data, {})

    def remove(self, name: str) -> None:
        self._server.ask("DELETE", self._object(self._prefix + name))

    def truncate(self, name: str, size: int) -> None:
        """Cut the last record of the journal ``name`` to ``size`` bytes, and keep its token."""
        key = self._records(name)[-1]
        described = json.loads(self._server.ask("GET", self._object(key))[1])
        self._put(key, (self._body(key) or b"")[:size], described.get("metadata", {}))

    def names(self) -> list[str]:
        return [key.removeprefix(self._prefix) for key in self._server.keys(self._prefix)]

    def wipe(self) -> None:
        for key in self._server.keys(self._prefix):
            self._server.ask("DELETE", self._object(key))

    def move_away(self) -> None:
        self.wipe()

    def _records(self, name: str) -> list[str]:
        return sorted(self._server.keys(f"{self._prefix}{records_folder(name)}/"))

    def _object(self, key: str) -> str:
        return f"/storage/v1/b/{self._server.bucket}/o/{quote(key, safe='')}"

    def _body(self, key: str) -> bytes | None:
        status, data = self._server.ask("GET", f"/{self._server.bucket}/{quote(key)}")
        return data if status == 200 else None

    def _put(self, key: str, data: bytes, metadata: dict[str, str]) -> None:
        described = json.dumps({"name": key, "metadata": metadata}).encode()
        parts = b"--B\r\nContent-Type: application/json\r\n\r\n%s\r\n--B\r\n\r\n%s\r\n--B--"
        status, _ = self._server.ask(
            "POST",
            f"/upload/storage/v1/b/{self._server.bucket}/o?uploadType=multipart",
            parts % (described, data),
            {"Content-Type": "multipart/related; boundary=B"},
        )
        assert status == 200
