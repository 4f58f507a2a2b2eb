"""A relay between a client and a server of ZooKeeper, which can be cut and loses messages."""

import contextlib
import socket
import struct
import threading
from typing import Literal


class Relay:
    """Hands messages on in both directions, and loses what it is told to, once.

    Attributes:
        address: for the client.
    """

    def __init__(self, target: str) -> None:
        self.lose: Literal["request", "answer"] | None = None
        self._target = ("127.0.0.1", int(target.rpartition(":")[2]))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self._is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection and accept none until ``mend``."""
        self._is_cut = True
        self._end_all()

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self.cut()
        # Closing alone does not wake up who accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                if self._is_cut:
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                self._open += [client, server]
                for pair in ((client, server, "request"), (server, client, "answer")):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, kind: str) -> None:
        with (
            source,
            sink,
            source.makefile("rb") as stream,
            contextlib.suppress(OSError, ValueError),
        ):
            while len(head := stream.read(4)) == 4:
                body = stream.read(int.from_bytes(head, "big"))
                # Pings and the like have no number of their own.
                is_call = struct.unpack(">i", body[:4])[0] > 0
                if is_call and self.lose == kind:
                    self.lose = None
                    break
                sink.sendall(head + body)
            self._end(source, sink)

    def _end_all(self) -> None:
        self._end(*self._open)
        self._open.clear()

    def _end(self, *ended: socket.socket) -> None:
        for each in ended:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
