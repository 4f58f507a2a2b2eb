"""A proxy between a client and an S3 server that loses requests and answers.

    with s3_proxy(server) as proxy:
        proxy.fail("PUT", times=1, reaches_store=True)     # applied, and never answered
        bookie.put_new(...)
        assert proxy.statuses("PUT") == [200, 412]

During the ``with`` the environment points to the proxy. ``seen`` shows the effect of each request
at the store, whatever the client's answer was.
"""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from bkspark.testing.s3 import HOST, S3Server, environment

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
    """

    store_port: int
    seen: list[tuple[str, str, int]] = field(default_factory=list)
    faults: list[ProxyFault] = field(default_factory=list)
    dropped_header: str = ""
    is_over: threading.Event = field(default_factory=threading.Event)
    held: list[Callable[[], int]] = field(default_factory=list)
    bytes_per_second: float = 0.0

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
        self.bytes_per_second = 0.0

    def take_time(self, byte_count: int) -> None:
        """Sleep for the transfer time of a piece of ``byte_count`` bytes."""
        if self.bytes_per_second:
            self.is_over.wait(byte_count / self.bytes_per_second)

    def statuses(self, method: str) -> list[int]:
        return [status for seen, _, status in self.seen if seen == method]


@contextmanager
def s3_proxy(server: S3Server) -> Iterator[S3Proxy]:
    """Run a proxy before ``server``."""
    proxy = S3Proxy(server.port)

    class ProxyHandler(_Handler):
        shared = proxy

    listener = _Listener((HOST, 0), ProxyHandler)
    listener.daemon_threads = True
    # Kept connections would be waited for.
    listener.block_on_close = False
    thread = threading.Thread(target=listener.serve_forever, args=(0.05,))
    thread.start()
    try:
        with environment(listener.server_port):
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
