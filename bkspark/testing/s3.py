"""A real S3 server for tests, moto's, in a process of its own that every process can reach.

    with s3_server() as server:
        init_cluster(server.url("metadata"), [server.url("b1"), server.url("b2")])

During the ``with`` the environment names the server, also for processes started then. The server
stops at the end of the ``with``, and when the process that started it dies.

moto looks whether an object exists and then stores it, and two requests could interleave; so the
server handles one request after the other. The server refuses a key that is a folder of an earlier
requested key, as do servers that keep objects as files.
"""

import http.client
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from bkspark.storage import connection

Application = Callable[..., Iterable[bytes]]
"""A WSGI application."""

HOST = "127.0.0.1"
# Other variables that could lead a client to another server, or delay its search for credentials.
_REMOVED = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3")
_SET = {
    "AWS_ACCESS_KEY_ID": "test-access-key",
    "AWS_SECRET_ACCESS_KEY": "test-secret-key",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


@dataclass(frozen=True)
class S3Server:
    """A server with one empty bucket."""

    port: int
    bucket: str

    @property
    def endpoint(self) -> str:
        return endpoint(self.port)

    def url(self, prefix: str = "") -> str:
        """The URL of ``prefix``, or of an unused prefix."""
        return f"s3://{self.bucket}/{prefix or uuid4().hex}"


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start a server, and set the environment for its clients."""
    with subprocess.Popen(
        [sys.executable, "-m", "bkspark.testing.s3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("the S3 server did not start; is bkspark[test] installed?")
            server = S3Server(int(line), f"bucket-{uuid4().hex[:12]}")
            _make_bucket(server)
            with environment(server.port):
                yield server
        finally:
            process.kill()


@contextmanager
def environment(port: int) -> Iterator[None]:
    """Point this process and its children to the S3 server at ``port``."""
    before = dict(os.environ)
    os.environ.update(_SET, AWS_ENDPOINT_URL=endpoint(port))
    for name in _REMOVED:
        os.environ.pop(name, None)
    connection.forget()
    try:
        yield
    finally:
        for name in {*_SET, *_REMOVED, "AWS_ENDPOINT_URL"}:
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]
        connection.forget()


def endpoint(port: int) -> str:
    """The value of ``AWS_ENDPOINT_URL`` for the server at ``port``."""
    return f"http://{HOST}:{port}"


def _make_bucket(server: S3Server) -> None:
    client = http.client.HTTPConnection(HOST, server.port, timeout=30)
    try:
        client.request("PUT", f"/{server.bucket}")
        status = client.getresponse().status
    finally:
        client.close()
    if status != 200:
        raise RuntimeError(f"the S3 server made no bucket: {status}")


def _serve() -> None:
    from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    class S3Handler(MotoRequestHandler):
        protocol_version = "HTTP/1.1"

        def send_response(self, code: int, message: str | None = None) -> None:
            # Without a Server header: moto sends one too, and a strict client refuses a second.
            self.send_response_only(code, message)

        def log(self, *_: Any) -> None:
            """Log nothing: a test's output shows failures, not requests."""

    application = _one_by_one(_without_nested_keys(create_backend_app("s3")))
    server = make_server(HOST, 0, application, threaded=True, request_handler=S3Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    # Ends with the process that started it, however that process ends.
    sys.stdin.read()


class Keys:
    """A set of keys; none is a folder of another key."""

    def __init__(self) -> None:
        self.all: set[str] = set()
        self._folders: set[str] = set()

    def add(self, key: str) -> bool:
        """Add ``key``, unless it and another key are folder and content."""
        folders = set(_folders_of(key))
        if key in self._folders or not self.all.isdisjoint(folders):
            return False
        self.all.add(key)
        self._folders |= folders
        return True


def _folders_of(key: str) -> Iterator[str]:
    while key := key.rpartition("/")[0]:
        yield key


def _without_nested_keys(application: Application) -> Application:
    keys = Keys()

    def handle(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"][1:]
        is_key = "/" in path.rstrip("/") and not path.endswith("/")
        if is_key and environ["REQUEST_METHOD"] in ("PUT", "POST") and not keys.add(path):
            start_response("400 Bad Request", [("Content-Type", "application/xml")])
            return [b"<Error><Code>ParentIsObject</Code></Error>"]
        return application(environ, start_response)

    return handle


def _one_by_one(application: Application) -> Application:
    lock = threading.Lock()

    def handle(*request: Any) -> Iterable[bytes]:
        with lock:
            return list(application(*request))

    return handle


if __name__ == "__main__":
    _serve()
