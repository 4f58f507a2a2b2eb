"""Stand-ins for ZooKeeper's servers and for kazoo's client: what becomes of a request is scripted.

    servers = Servers()
    servers.script("multi", Fate.DONE, Fate.ANSWER_LOST)

Requests of a kind take their fates in turn; those that find none are answered. A callable is called
before the request takes effect: another client may act in it. The tree of the servers is one, but
each client reads it as of the last transaction that it sent. A follower may be as far behind as
that, and ``sync`` does not help, because a leader that slept answers it (H35), until ``has_woken``.
A watch fires when its client sees another value.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from itertools import count
from typing import Any

from kazoo.client import TransactionRequest
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    ZookeeperError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import CheckVersion, Create, Delete, SetData

Tree = dict[str, tuple[bytes, int]]
"""Values and versions by path."""


class Fate(Enum):
    """What becomes of a request."""

    DONE = auto()
    REQUEST_LOST = auto()
    ANSWER_LOST = auto()
    EXPIRED = auto()
    EXPIRED_BEHIND_IT = auto()
    CLOSED = auto()
    FORBIDDEN = auto()
    SILENT = auto()
    """No answer comes; the request is carried out by ``Servers.wake``, unless it was called off."""


_TAKES_EFFECT = {Fate.DONE, Fate.ANSWER_LOST, Fate.EXPIRED_BEHIND_IT}
_RAISED: dict[Fate, type[Exception]] = {
    Fate.REQUEST_LOST: ConnectionLoss,
    Fate.ANSWER_LOST: ConnectionLoss,
    Fate.EXPIRED: SessionExpiredError,
    Fate.EXPIRED_BEHIND_IT: SessionExpiredError,
    Fate.CLOSED: ConnectionClosedError,
    Fate.FORBIDDEN: NoAuthError,
}
Step = Fate | Callable[[], object] | list[object]
"""A fate; what happens before the request takes effect; or the answer as it is, with no effect."""


@dataclass(frozen=True)
class Stat:
    version: int


class Servers:
    """A tree of znodes.

    Attributes:
        tree: what the quorum has.
        requests: kind and path of all so far, lost ones included.
        clients: all that have connected.
        is_up: whether a client can connect.
        has_woken: whether a ``sync`` helps.
    """

    def __init__(self) -> None:
        self.tree: Tree = {"/": (b"", 0)}
        self.requests: list[str] = []
        self.clients: list[Client] = []
        self.is_up = True
        self.has_woken = False
        self._scripts: dict[str, list[Step]] = {}
        self._silent: list[Callable[[], None]] = []

    def script(self, kind: str, *steps: Step) -> None:
        """What becomes of the next requests of a kind; ``any`` is for those of every kind."""
        self._scripts[kind] = list(steps)

    def connect(self, hosts: str, **settings: Any) -> "Client":
        """What replaces kazoo's client."""
        client = Client(self, hosts, settings)
        self.clients.append(client)
        return client

    def tell_all(self) -> None:
        """Bring each client's server up to date; the watches that fired take effect."""
        for client in self.clients:
            client.see()
            due, client.handler.due = client.handler.due, []
            for fired in due:
                fired()

    def wake(self) -> None:
        """Carry out what was never answered, as far as its sender did not call it off."""
        for late in self._silent:
            late()

    def ask(self, client: "Client", kind: str, name: str, work: Callable[[], Any], to: Any) -> None:
        self.requests.append(f"{kind} {name}".strip())
        step = Fate.CLOSED if client.is_closed else self._next_step(kind)
        client.is_closed = step is Fate.CLOSED
        if step in (Fate.EXPIRED, Fate.EXPIRED_BEHIND_IT):
            client.expire()
        if callable(step):
            step()
            step = Fate.DONE
        if isinstance(step, list):
            return to.set(step)
        if step is Fate.SILENT:
            self._silent.append(lambda: None if client.is_stopped else work())
            return None
        answer = None
        try:
            answer = work() if step in _TAKES_EFFECT else None
        except ZookeeperError as error:
            answer = error
        failure = _RAISED[step]() if step in _RAISED else answer
        return to.set_exception(failure) if isinstance(failure, Exception) else to.set(answer)

    def multi(self, operations: list[Any]) -> list[object]:
        """All of ``operations`` or, if one is refused, none: then what the answer says of each."""
        changed = dict(self.tree)
        results: list[object] = []
        for number, operation in enumerate(operations):
            try:
                results.append(_carry_out(changed, operation))
            except ZookeeperError as error:
                rolled_back = [RolledBackError() for _ in operations[:number]]
                left_out = [RuntimeInconsistency() for _ in operations[number + 1 :]]
                return [*rolled_back, error, *left_out]
        self.tree = changed
        return results

    def _next_step(self, kind: str) -> Step:
        for script in (self._scripts.get(kind), self._scripts.get("any")):
            if script:
                return script.pop(0)
        return Fate.DONE


_sessions = count(1)


class Handler(SequentialThreadingHandler):
    """Calls back in the caller's thread; what is ``due`` waits for the next call back."""

    def __init__(self) -> None:
        super().__init__()
        self.due: list[Callable[[], None]] = []

    def dispatch_callback(self, callback: Any) -> None:
        due, self.due = self.due, []
        for late in due:
            late()
        callback.func(*callback.args)


class Client:
    """Stands in for ``KazooClient``, as far as a session uses it.

    Attributes:
        is_stopped: whether its user is done with it: nothing is sent any more.
        is_closed: whether its connection is, without anybody wanting it.
        client_id: of its session; another one after the session has expired.
        on_watch: called before the answer that a watch comes with.
    """

    chroot = ""

    def __init__(self, servers: Servers, hosts: str, settings: dict[str, Any]) -> None:
        self.hosts = hosts
        self.settings = settings
        self.logger = settings["logger"]
        self.default_acl = settings.get("default_acl")
        self.handler = Handler()
        self.client_id = next(_sessions)
        self.is_stopped = False
        self.is_closed = False
        self._servers = servers
        self._seen = servers.tree
        self.on_watch: Callable[[Callable[[object], None]], object] = lambda _watch: None
        self._watches: dict[str, list[Callable[[object], None]]] = {}
        self._listeners: list[Callable[[object], None]] = []

    def add_listener(self, listener: Callable[[object], None]) -> None:
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[object], None]) -> None:
        self._listeners.remove(listener)

    def see(self) -> None:
        """See what the quorum has; the watches of what is new fire."""
        before, self._seen = self._seen, self._servers.tree
        for path in [p for p in self._watches if before.get(p) != self._seen.get(p)]:
            for watch in self._watches.pop(path):
                self.handler.due.append(partial(watch, path))

    def go_back(self, to: Tree) -> None:
        """Get another session, from a server that has seen no more than ``to``."""
        self.expire()
        self._seen = to

    def expire(self) -> None:
        """Lose the session, with all watches, and get another one."""
        self.client_id = next(_sessions)
        self._watches.clear()
        self.tell("LOST")

    def tell(self, state: str = "SUSPENDED") -> None:
        """Tell the listeners of the connection's state."""
        for listener in self._listeners:
            listener(state)

    def start_async(self) -> threading.Event:
        connected = threading.Event()
        if self._servers.is_up:
            connected.set()
        return connected

    def stop(self) -> None:
        self.is_stopped = True

    def close(self) -> None:
        """Nothing is open."""

    def transaction(self) -> TransactionRequest:
        return TransactionRequest(self)

    def _call(self, request: Any, result: Any) -> None:
        def work() -> list[object]:
            results = self._servers.multi(request.operations)
            self.see()
            return results

        self._servers.ask(self, "multi", "", work, result)

    def get_async(self, path: str, watch: Callable[[object], None] | None = None) -> Any:
        def work() -> tuple[bytes, Stat]:
            value, version = _node(self._seen, path)
            if watch is not None:
                self._watches.setdefault(path, []).append(watch)
                self.on_watch(watch)
            return value, Stat(version)

        return self._asked("get", path, work)

    def exists_async(self, path: str) -> Any:
        return self._asked("exists", path, lambda: path in self._seen)

    def get_children_async(self, path: str) -> Any:
        def work() -> list[str]:
            _node(self._seen, path)
            return _children(self._seen, path)

        return self._asked("children", path, work)

    def sync_async(self, path: str) -> Any:
        def work() -> str:
            if self._servers.has_woken:
                self.see()
            return path

        return self._asked("sync", path, work)

    def ensure_path_async(self, path: str) -> Any:
        def work() -> bool:
            tree = dict(self._servers.tree)
            parts = path.strip("/").split("/")
            for end in range(1, len(parts) + 1):
                tree.setdefault("/" + "/".join(parts[:end]), (b"", 0))
            self._servers.tree = self._seen = tree
            return True

        return self._asked("ensure", path, work)

    def _asked(self, kind: str, path: str, work: Callable[[], Any]) -> Any:
        result = self.handler.async_result()
        self._servers.ask(self, kind, path, work, result)
        return result


def _carry_out(tree: Tree, operation: Any) -> object:
    path = operation.path
    match operation:
        case Create():
            if path in tree:
                raise NodeExistsError
            _node(tree, path.rpartition("/")[0] or "/")
            tree[path] = (operation.data, 0)
            return path
        case CheckVersion() | SetData() | Delete():
            version = _node(tree, path)[1]
            if operation.version not in (-1, version):
                raise BadVersionError
    if isinstance(operation, SetData):
        tree[path] = (operation.data, version + 1)
    elif isinstance(operation, Delete):
        if _children(tree, path):
            raise NotEmptyError
        del tree[path]
    return True


def _node(tree: Tree, path: str) -> tuple[bytes, int]:
    if path not in tree:
        raise NoNodeError
    return tree[path]


def _children(tree: Tree, path: str) -> list[str]:
    start = f"{path.rstrip('/')}/"
    rests = (node.removeprefix(start) for node in tree if node.startswith(start))
    return [rest for rest in rests if rest and "/" not in rest]
