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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from uuid import uuid4

from bkspark.storage import connection

# --- s3 ------------------------------------------------------------------------------------------


Application = Callable[..., Iterable[bytes]]
"""A WSGI application."""

HOST = "127.0.0.1"
# Other variables that could lead a client to another server, or delay its search for credentials.
_REMOVED = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3")
ACCESS_KEY, SECRET_KEY = "test-access-key", "test-secret-key"

_SET = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
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
    with another_server(f"bucket-{uuid4().hex[:12]}") as server, environment(server.port):
        yield server


@contextmanager
def new_bucket(running: S3Server) -> Iterator[S3Server]:
    """Make a bucket on a server that runs, and set the environment for its clients."""
    server = S3Server(running.port, f"bucket-{uuid4().hex[:12]}")
    _make_bucket(server)
    with environment(server.port):
        yield server


@contextmanager
def another_server(bucket: str) -> Iterator[S3Server]:
    """Start a server that no client is pointed to."""
    with subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("the S3 server did not start; is bkspark[test] installed?")
            server = S3Server(int(line), bucket)
            _make_bucket(server)
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


# --- s3 proxy ------------------------------------------------------------------------------------
# A proxy between a client and an S3 server that loses requests and answers.
#
#     with s3_proxy(server) as proxy:
#         proxy.fail("PUT", times=1, reaches_store=True)     # applied, and never answered
#         bookie.put_new(...)
#         assert proxy.statuses("PUT") == [200, 412]
#
# During the ``with`` the environment points to the proxy. ``seen`` shows the effect of each request
# at the store, whatever the client's answer was.


_HOP_BY_HOP = ("connection", "content-length", "expect", "transfer-encoding")
ALWAYS = 10**6
_PIECE_BYTES = 2**18


@dataclass
class ProxyFault:
    """A fault of the next ``times`` requests with a method.

    Attributes:
        part: of the path and the query; "" fits all.
        reaches_store: whether the store gets the request.
        is_late: whether the store gets the request later, when ``S3Proxy.deliver`` is called.
        status: of the answer; 0 closes the connection instead, None never answers.
        code: S3's word for the error.
        retry_after: seconds, in the header of the same name; 0 omits the header.
    """

    method: str
    part: str
    times: int
    reaches_store: bool
    status: int | None
    code: str
    is_late: bool
    retry_after: int = 0

    def fits(self, method: str, path: str) -> bool:
        return self.times > 0 and method == self.method and self.part in path


@dataclass
class S3Proxy:
    """The faults to come, and the requests seen.

    Attributes:
        seen: method, path with query, and status at the store, 0 if the store was not reached.
        dropped_header: left out of every request.
        held: late requests, to be delivered.
        bytes_per_second: of each body, in either direction; 0 for no limit.
        port: of the proxy.
        moved: bytes of bodies to the store, and from it, by method.
    """

    store_port: int
    seen: list[tuple[str, str, int]] = field(default_factory=list)
    faults: list[ProxyFault] = field(default_factory=list)
    dropped_header: str = ""
    is_over: threading.Event = field(default_factory=threading.Event)
    held: list[Callable[[], int]] = field(default_factory=list)
    bytes_per_second: float = 0.0
    port: int = 0
    moved: Counter[str] = field(default_factory=Counter)

    def fail(
        self,
        method: str,
        part: str = "",
        *,
        times: int = ALWAYS,
        reaches_store: bool = False,
        status: int | None = 0,
        code: str = "InternalError",
        is_late: bool = False,
        retry_after: int = 0,
    ) -> None:
        self.faults.append(
            ProxyFault(method, part, times, reaches_store, status, code, is_late, retry_after)
        )

    def deliver(self) -> list[int]:
        """Deliver the late requests to the store; returns the status of each."""
        held, self.held = self.held, []
        return [request() for request in held]

    def heal(self) -> None:
        self.faults.clear()
        self.seen.clear()
        self.held.clear()
        self.moved.clear()
        self.bytes_per_second = 0.0

    def take_time(self, byte_count: int) -> None:
        """Sleep for the transfer time of a piece of ``byte_count`` bytes."""
        if self.bytes_per_second:
            self.is_over.wait(byte_count / self.bytes_per_second)

    def statuses(self, method: str) -> list[int]:
        return [status for seen, _, status in self.seen if seen == method]


@contextmanager
def s3_proxy(server: S3Server) -> Iterator[S3Proxy]:
    """Run a proxy before ``server``, and set the environment for its clients."""
    with proxied(server.port) as proxy, environment(proxy.port):
        yield proxy


@contextmanager
def proxied(port: int) -> Iterator[S3Proxy]:
    """Run a proxy before the server at ``port``."""
    proxy = S3Proxy(port)

    class ProxyHandler(_Handler):
        shared = proxy

    listener = _Listener((HOST, 0), ProxyHandler)
    listener.daemon_threads = True
    proxy.port = listener.server_port
    # Kept connections would be waited for.
    listener.block_on_close = False
    thread = threading.Thread(target=listener.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield proxy
    finally:
        proxy.is_over.set()
        listener.shutdown()
        thread.join()
        listener.server_close()


class _Listener(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Ignore errors: a killed client's connection is reset."""


class _Handler(BaseHTTPRequestHandler):
    # Without this, head and body of an answer wait for each other, 40 ms each time.
    disable_nagle_algorithm = True
    protocol_version = "HTTP/1.1"
    shared: ClassVar[S3Proxy]

    def handle_request(self) -> None:
        body = self._body()
        fault = next((f for f in self.shared.faults if f.fits(self.command, self.path)), None)
        if fault is not None:
            fault.times -= 1
        if fault is None or fault.reaches_store:
            answer, data = self._ask_store(body)
            self.shared.seen.append((self.command, self.path, answer.status))
            self.shared.moved[self.command] += len(body) + len(data)
            if fault is None:
                self._answer(answer.status, answer.getheaders(), data)
                return
        else:
            self.shared.seen.append((self.command, self.path, 0))
            if fault.is_late:
                self.shared.held.append(lambda: self._ask_store(body)[0].status)
        self._fail(fault)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_request

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def _body(self) -> bytes:
        """The complete body; an interrupted request has no effect at the store."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            length = int(self.headers.get("Content-Length") or 0)
            body = self._read(length)
            if len(body) < length:
                raise ConnectionAbortedError("the request was cut short")
            return body
        chunks = []
        while length := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self._read(length))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _read(self, length: int) -> bytes:
        pieces = []
        while length and (piece := self.rfile.read(min(length, _PIECE_BYTES))):
            self.shared.take_time(len(piece))
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)

    def _ask_store(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        left_out = {*_HOP_BY_HOP, self.shared.dropped_header.lower()}
        headers = {k: v for k, v in self.headers.items() if k.lower() not in left_out}
        client = http.client.HTTPConnection(HOST, self.shared.store_port, timeout=30)
        try:
            client.request(self.command, self.path, body, headers)
            answer = client.getresponse()
            return answer, answer.read()
        finally:
            client.close()

    def _fail(self, fault: ProxyFault) -> None:
        if fault.status:
            error = f"<Error><Code>{fault.code}</Code><Message>told to</Message></Error>"
            headers = [("Content-Type", "application/xml")]
            if fault.retry_after:
                headers.append(("Retry-After", str(fault.retry_after)))
            self._answer(fault.status, headers, error.encode() if fault.code else b"")
            return
        if fault.status is None:
            self.shared.is_over.wait(30)
        self.close_connection = True

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            for first in range(0, len(data), _PIECE_BYTES):
                piece = data[first : first + _PIECE_BYTES]
                self.shared.take_time(len(piece))
                self.wfile.write(piece)


if __name__ == "__main__":
    _serve()
