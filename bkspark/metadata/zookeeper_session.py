"""The connection of a ZooKeeper store; the only file that imports kazoo."""

import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    LockTimeout,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import Callback
from kazoo.security import CREATOR_ALL_ACL

from bkspark import environment, progress
from bkspark.errors import (
    InvalidRequestError,
    OutcomeUnknownError,
    UnauthorizedError,
)
from bkspark.metadata import freshness, kept_sessions, patience
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.freshness import Freshness, Kind
from bkspark.metadata.kept_sessions import KeptSessions
from bkspark.metadata.zookeeper_access import HINT, SessionAccess, session_access, trouble
from bkspark.progress import Countdown
from bkspark.storage.changes import Changes, Listeners

# The connection of a ZooKeeper metadata store; the only file that imports kazoo.
#
# The rule: **a change is sent once; a look may be sent again.** A change whose answer is lost is
# unknown: its server may have died after the other servers applied the change. So kazoo's own
# retries, which would send the change again, are never used (R8, H6). A change that had to wait too
# long ends the whole connection; otherwise kazoo would send the change late, after the caller has
# received an error.
#
# Changes and looks both begin with a check of the marker, in a transaction. For a change, the check
# finds the right store or the change fails. For a look, the check gives linearizability: a
# transaction takes a quorum, and the look after it in the same session sees at least what the
# quorum had. ZooKeeper's ``sync`` takes no quorum: a leader that slept and does not yet know of the
# next leader answers a ``sync`` (H35).
#
# A transaction serves all later looks of its session for which it is new enough (``freshness``): a
# session never goes back in time, because a server that knows less than the session has seen
# refuses it. A new session begins anew.
#
# A look for which a recent answer is enough leaves a watch with the server. Until the watch fires,
# or the connection breaks, the answer is repeated without a request.
#
# No record depends on a session, so an expired session only costs a reconnection (H34), and a place
# in a row (``SessionPlace``), which is advisory.
#
# A session costs two writes of the quorum, so ``close`` leaves it to the next user of this process
# (``kept_sessions``), with its watches. Its user takes nothing else over: a session that stood in a
# row, or with a request on its way, is ended.


# A server that is silent for two thirds of this time is left for another.
SESSION_SECONDS = 6.0
# Longer than a session, so that one host that swallows packets does not hide the others.
CONNECT_SECONDS = 8.0
# After this part of the time it is asked why there is no connection.
_UNASKED = 0.25
# Longer than the servers need to choose a new leader, and to restart one after the other. The
# default (``patience``).
ANSWER_SECONDS = patience.DEFAULT_SECONDS
_CLOSE_SECONDS = 2.0
_WATCHES_MAX = 1000
_PAUSE_SECONDS = 0.05
_SEQUENCE_LENGTH = 10
_RECONNECT = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 0.5}

# The request may have been carried out, or may still be.
_UNSURE = (KazooException, KazooTimeoutError, RuntimeError, OSError)
# After these there is a connection again, if there can be one.
_RECONNECTING = (ConnectionLoss, SessionExpiredError)

Operation = Callable[[TransactionRequest], None]

# Nothing on stderr unless the application sets up logging; and never below INFO, where kazoo would
# show every value and the password.
logging.getLogger("kazoo").addHandler(logging.NullHandler())
_logger = logging.getLogger("kazoo.bkspark")
_logger.setLevel(logging.INFO)


class RefusedError(Exception):
    """A transaction that certainly changed nothing, with the failed operation and its error."""

    def __init__(self, operation: int, error: ZookeeperError) -> None:
        super().__init__(operation, error)
        self.operation = operation
        self.absent = isinstance(error, NoNodeError)
        self.exists = isinstance(error, NodeExistsError)


def exists(path: str) -> Operation:
    return lambda transaction: transaction.check(path, -1)


def create(path: str, value: bytes = b"") -> Operation:
    return lambda transaction: transaction.create(path, value)


def replace(path: str, value: bytes, version: int) -> Operation:
    return lambda transaction: transaction.set_data(path, value, version)


def delete(path: str, version: int = -1) -> Operation:
    return lambda transaction: transaction.delete(path, version)


class ZooKeeperSession:
    """Connects at first use, and anew after ``close``, a fork or a time-out.

    Takes a kept connection if there is one that answers.

    Raises, besides the errors of the methods:
        OutcomeUnknownError: no certain answer; the message names the servers.
        UnauthorizedError: the servers want other credentials.
    """

    def __init__(self, hosts: str) -> None:
        self._hosts = hosts
        self._pid = os.getpid()
        self._confirmed = _Confirmed()
        self._synced = _Confirmed()
        self._listeners = Listeners()
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._was_connected = False
        self._trouble = ""
        self._finalizer: weakref.finalize[[KazooClient, int], ZooKeeperSession] | None = None

    def commit(self, doing: str, operations: Sequence[Operation]) -> None:
        """Carry out all operations or none.

        Raises:
            RefusedError: none was carried out.
        """
        limit = _limit()
        with self._connected(doing, limit) as connection:
            client = connection.client
            sent = _Confirmed.at(client)
            transaction = client.transaction()
            for operation in operations:
                operation(transaction)
            results = _result(transaction.commit_async(), limit)
            _raise_refusal(doing, results, len(operations))
            self._confirmed = sent

    def value(self, doing: str, marker: str, path: str) -> VersionedBytes | None:
        """The value at ``path``, None if absent; the version is the znode's own.

        Raises:
            RefusedError: ``marker`` is absent.
        """
        needed = freshness.needed()
        if needed is not None and needed.kind in (Kind.SYNCED, Kind.RECENT):
            return self._watched_value(doing, marker, path, needed)
        found = self._look(doing, marker, lambda client: client.get_async(path))
        return None if found is None else VersionedBytes(found[0] or b"", found[1].version)

    def children(self, doing: str, marker: str, path: str) -> list[str]:
        """Names right under ``path``, none if it does not exist.

        Raises:
            RefusedError: ``marker`` is absent.
        """
        return self._look(doing, marker, lambda client: client.get_children_async(path)) or []

    def contents(self, doing: str, path: str) -> tuple[bytes, list[str]] | None:
        """Value and children of any znode, no older than the connection; None if absent."""

        def ask(connection: _Connection, limit: Countdown) -> tuple[bytes, list[str]] | None:
            client = connection.client
            _result(client.sync_async(path), limit)
            try:
                value = _result(client.get_async(path), limit)[0]
                return value or b"", _result(client.get_children_async(path), limit)
            except NoNodeError:
                return None

        found: tuple[bytes, list[str]] | None = self._repeated(doing, ask)
        return found

    def make_path(self, doing: str, path: str) -> None:
        """Make a znode and its parents, where missing; repeating is harmless, so the call is
        retried.
        """

        def ask(connection: _Connection, limit: Countdown) -> None:
            _result(connection.client.ensure_path_async(path), limit)

        self._repeated(doing, ask)

    def watch(self, paths: Iterable[str], changes: Changes) -> None:
        """Tell ``changes`` whenever a watch over one of ``paths`` fires, or watches are lost."""
        self._listeners.add(paths, changes)

    def first_place(self, folder: str, text: str, seconds: float) -> "SessionPlace | None":
        """Stand in the row at ``folder`` by kazoo's lock; return when first, None in time.

        The wait ends with an error if the connection is abandoned. A broken connection that comes
        back keeps the place, unless the session has expired: then kazoo stands at the end again.
        """
        doing = f"stand in the row {folder}"
        with self._connected(doing, _limit()) as connection:
            connection.is_kept = False  # its end takes a place away that was left behind
            client = connection.client
            lock = client.Lock(folder, text)
            try:
                if not lock.acquire(timeout=None if seconds == inf else seconds):
                    return None
            except LockTimeout:
                return None
            except BaseException:  # an interrupted wait leaves no place behind
                if lock.node is not None:
                    client.delete_async(f"{folder}/{lock.node}")
                raise
        return SessionPlace(self, f"{folder}/{lock.node}")

    def row(self, folder: str) -> Sequence[str]:
        """The texts of the places in the row at ``folder``, the first place first."""
        doing = f"look at the row {folder}"
        _, places = self.contents(doing, folder) or (b"", [])
        in_order = sorted(places, key=lambda place: place[-_SEQUENCE_LENGTH:])
        found = (self.contents(doing, f"{folder}/{place}") for place in in_order)
        return [place[0].decode(errors="replace") for place in found if place is not None]

    def holds(self, doing: str, path: str) -> bool:
        """Whether an ephemeral znode of the present session is there, as far as its server
        knows.
        """

        def ask(connection: _Connection, limit: Countdown) -> bool:
            client = connection.client
            found, session = _found(client.exists_async(path), limit), client.client_id
            return bool(found and session) and found.ephemeralOwner == session[0]

        held: bool = self._repeated(doing, ask)
        return held

    def remove(self, doing: str, path: str) -> None:
        """Remove a znode that only this client uses, so the call is retried."""

        def ask(connection: _Connection, limit: Countdown) -> None:
            _found(connection.client.delete_async(path), limit)

        self._repeated(doing, ask)

    def close(self) -> None:
        """Leave the connection to the next user, or end it."""
        with self._lock if self._pid == os.getpid() else contextlib.nullcontext():
            connection, self._connection = self._connection, None
            finalizer, self._finalizer = self._finalizer, None
        if connection is None or finalizer is None:
            return
        if connection.may_be_kept():
            kept = environment.the_one(KeptSessions)
            if kept.keep(connection.access, connection, connection.idle_seconds):
                finalizer.detach()
                return
        stopping = finalizer()
        if stopping is not None:
            stopping.join(_CLOSE_SECONDS)

    def _look(self, doing: str, marker: str, ask: Callable[[KazooClient], Any]) -> Any:
        needed = freshness.needed()

        def ask_both(connection: _Connection, limit: Countdown) -> Any:
            client = connection.client
            if needed is not None and self._is_new_enough(client, marker, needed, limit):
                known = self._confirmed
                found = _found(ask(client), limit)
                if needed.kind is not Kind.FROM_HERE or known.holds(client, needed.tick):
                    return found
            # Both are sent at once: the servers keep the order of a session.
            sent = _Confirmed.at(client)
            transaction = client.transaction()
            exists(marker)(transaction)
            checked, asked = transaction.commit_async(), ask(client)
            _raise_refusal(doing, _result(checked, limit), 1)
            self._confirmed = sent
            return _found(asked, limit)

        return self._repeated(doing, ask_both)

    def _is_new_enough(
        self, client: KazooClient, marker: str, needed: Freshness, limit: Countdown
    ) -> bool:
        """Return whether an answer that ``client`` gets now is as new as ``needed``."""
        if needed.kind in (Kind.RECENT, Kind.GUESS) or self._confirmed.holds(client, needed.tick):
            return True
        if needed.kind is not Kind.SYNCED:
            return False
        if not self._synced.holds(client, needed.tick):
            sent = _Confirmed.at(client)
            _result(client.sync_async(marker), limit)
            self._synced = sent
        return True

    def _watched_value(
        self, doing: str, marker: str, path: str, needed: Freshness
    ) -> VersionedBytes | None:
        """The value at ``path``, as new as the client knows, and as a ``sync`` where needed."""

        def ask(connection: _Connection, limit: Countdown) -> VersionedBytes | None:
            client, watched = connection.client, connection.watched
            if needed.kind is Kind.SYNCED:
                self._is_new_enough(client, marker, needed, limit)
                watched.settle(limit)  # the server told of changes before it answered
            known = watched.value(path)
            if known is not None:
                return known
            watch = watched.begin(path)
            found = _found(client.get_async(path, watch), limit)
            if found is None:
                return None
            value = VersionedBytes(found[0] or b"", found[1].version)
            watched.note(path, watch, value)
            return value

        found: VersionedBytes | None = self._repeated(doing, ask)
        return found

    def _repeated(self, doing: str, ask: Callable[["_Connection", Countdown], Any]) -> Any:
        """Ask, and ask again as long as the connection breaks and there is time."""
        limit = _limit()
        while True:
            with self._connected(doing, limit) as connection:
                try:
                    return ask(connection, limit)
                except _RECONNECTING as error:
                    if not limit.left():
                        raise
                    if isinstance(error, ConnectionClosedError):
                        self._abandon(connection)
            environment.sleep(_PAUSE_SECONDS)

    @contextlib.contextmanager
    def _connected(self, doing: str, limit: Countdown) -> Iterator["_Connection"]:
        """The connection, for one call; the servers' errors become the caller's."""
        connection = self._begin_call(limit)
        try:
            yield connection
        except (NoAuthError, InvalidACLError) as error:
            raise _unauthorized(doing) from error
        except _UNSURE as error:
            if not isinstance(error, _RECONNECTING) or isinstance(error, ConnectionClosedError):
                self._abandon(connection)
            raise OutcomeUnknownError(
                f"ZooKeeper at {self._hosts} gave no definite answer ({doing}): {_reason(error)}",
                hint="read back the current state before trying again",
            ) from error
        finally:
            connection.calls.pop()

    def _begin_call(self, limit: Countdown) -> "_Connection":
        """The connection; a broken connection is made anew as long as there is time."""
        if self._pid != os.getpid():
            self._forget_parent()
        # Another task may be connecting. Its time limit is not this caller's.
        if not _is_taken(self._lock, limit):
            raise self._unanswered(limit)
        try:
            if self._connection is None:
                given = session_access(self._hosts)
                self._connection = self._kept(given, limit) or self._connect(given, limit)
                self._connection.watched.listeners = self._listeners
                self._was_connected = True
                self._finalizer = weakref.finalize(
                    self, _stop_in_background, self._connection.client, self._pid
                )
                self._finalizer.atexit = False
            self._connection.calls.append(None)
            return self._connection
        finally:
            self._lock.release()

    def _kept(self, given: SessionAccess, limit: Countdown) -> "_Connection | None":
        """A connection that an earlier user left, if it answers."""
        kept: _Connection | None = environment.the_one(KeptSessions).take(given)
        if kept is None:
            return None
        try:
            _result(kept.client.exists_async("/"), limit)
        except _UNSURE:
            _stop_in_background(kept.client, self._pid)
            return None
        return kept

    def _connect(self, given: SessionAccess, limit: Countdown) -> "_Connection":
        idle_seconds = kept_sessions.idle_seconds()
        client = KazooClient(
            self._hosts,
            timeout=SESSION_SECONDS,
            logger=_logger,
            connection_retry=_RECONNECT,
            auth_data=[("digest", given.credentials)] if given.credentials else None,
            default_acl=CREATOR_ALL_ACL if given.credentials else None,
            **dict(given.encryption),
        )
        if not self._was_connected:
            limit = Countdown(CONNECT_SECONDS)  # the address may be wrong
        # Not start(): it may block for long in stopping again.
        started, told = client.start_async(), environment.inbox()
        if not _is_set(started, limit, spare=limit.left() * (1 - _UNASKED)):
            # Handshakes may take long, so they have the rest of the same time, beside the client.
            environment.start(lambda: told.put(trouble(self._hosts)), "zookeeper-trouble")
            if not _is_set(started, limit):
                _stop_in_background(client, self._pid)
                self._trouble = "" if told.empty() else told.get()
                raise self._unanswered(limit)
        self._trouble = ""
        return _Connection(client, given, idle_seconds, _Watched(client))

    def _unanswered(self, limit: Countdown) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"no ZooKeeper server answered at {self._hosts} within {limit.seconds:g} s; "
            "nothing was sent",
            hint="check the address, and that a majority of the servers runs and is connected"
            + self._trouble,
        )

    def _abandon(self, connection: "_Connection") -> None:
        """Drop ``connection``, so that its waiting requests are never sent."""
        with self._lock:
            if self._connection is not connection:
                return
            finalizer, self._finalizer, self._connection = self._finalizer, None, None
        if finalizer is not None:
            finalizer()

    def _forget_parent(self) -> None:
        """Forget the parent's connection: a fork copies no threads, and may leave locks held."""
        if self._finalizer is not None:
            self._finalizer.detach()
        self._lock = threading.Lock()
        self._finalizer = self._connection = None
        self._listeners = Listeners()
        self._confirmed = self._synced = _Confirmed()
        self._pid = os.getpid()


class SessionPlace:
    """The first place in a row: an ephemeral znode of a name that is used once."""

    def __init__(self, session: ZooKeeperSession, path: str) -> None:
        self._session = session
        self._path = path

    def is_there(self, *, is_surely: bool) -> bool:
        doing = f"look whether {self._path} is there"
        if not is_surely:
            return self._session.holds(doing, self._path)
        try:
            with freshness.now():
                return self._session.value(doing, self._path, self._path) is not None
        except RefusedError:
            return False

    def leave(self) -> None:
        self._session.remove(f"leave {self._path}", self._path)


@dataclass(frozen=True, slots=True)
class _Confirmed:
    """A request that the servers answered: what the session sees later is at least as new.

    Attributes:
        tick: before it was sent.
    """

    client: KazooClient | None = None
    session: object = None
    tick: int = 0

    @classmethod
    def at(cls, client: KazooClient) -> "_Confirmed":
        """Return a request of ``client`` that is sent next."""
        return cls(client, client.client_id, freshness.tick())

    def holds(self, client: KazooClient, tick: int) -> bool:
        """Return whether the session is still the same, and the request was sent after ``tick``."""
        is_alive = self.session is not None and self.session == client.client_id
        return is_alive and self.tick > tick and self.client is client


@dataclass(eq=False)
class _Connection:
    """A connection, and what the next user takes over with it.

    Attributes:
        idle_seconds: how long it may be kept without a user.
        calls: has an item for each call that is in progress.
        is_kept: nothing of its user's is left on the servers when it is closed.
    """

    client: KazooClient
    access: SessionAccess
    idle_seconds: float
    watched: "_Watched"
    calls: list[None] = field(default_factory=list)
    is_kept: bool = True

    def may_be_kept(self) -> bool:
        """Whether another user would find it as if it were new."""
        is_usable = self.client.client_id is not None and self.watched.count() <= _WATCHES_MAX
        return self.is_kept and not self.calls and is_usable

    def when_broken(self, told: Callable[[object], None]) -> None:
        """Call ``told`` at the next change of the connection's state."""
        self.client.add_listener(told)

    def forget(self, told: Callable[[object], None]) -> None:
        self.client.remove_listener(told)

    def end(self) -> None:
        """End the session; may wait for the server."""
        with contextlib.suppress(*_UNSURE):
            self.client.stop()
            self.client.close()


class _Watched:
    """Values over which a server keeps watch, of one connection.

    A watch fires before the session sees anything newer. Each change of the connection's state
    forgets all values.

    Attributes:
        listeners: of the connection's present user.
    """

    def __init__(self, client: KazooClient) -> None:
        self.client = client
        self.listeners = Listeners()
        self._guard = threading.Lock()
        self._begun: dict[str, Callable[[object], None]] = {}
        self._values: dict[str, VersionedBytes] = {}
        client.add_listener(self._forget_all)

    def count(self) -> int:
        return len(self._begun)

    def value(self, path: str) -> VersionedBytes | None:
        """Return the value at ``path``, None if it is not watched."""
        return self._values.get(path)

    def begin(self, path: str) -> Callable[[object], None]:
        """Return a watch for ``path``."""

        def fired(_event: object) -> None:
            with self._guard:
                if self._begun.get(path) is fired:
                    del self._begun[path]
                    self._values.pop(path, None)
            self.listeners.tell(path)

        with self._guard:
            self._begun[path] = fired
            self._values.pop(path, None)
        return fired

    def note(self, path: str, watch: Callable[[object], None], value: VersionedBytes) -> None:
        """Keep the ``value`` that came with a watch, unless the watch has fired since."""
        with self._guard:
            if self._begun.get(path) is watch:
                self._values[path] = value

    def settle(self, limit: Countdown) -> None:
        """Return when the watches that fired so far have been dealt with."""
        settled = threading.Event()
        self.client.handler.dispatch_callback(Callback("watch", settled.set, ()))
        if not _is_set(settled, limit):
            raise KazooTimeoutError(f"no watch was dealt with within {limit.seconds:g} s")

    def _forget_all(self, _state: object) -> None:
        with self._guard:
            self._begun.clear()
            self._values.clear()
        self.listeners.tell(None)


def _found(asked: Any, limit: Countdown) -> Any:
    """The answer to a look, None if the znode is absent.

    Not raised and caught: the error would keep its frames alive, and with them an unused
    connection.
    """
    _wait(asked, limit)
    return None if isinstance(asked.exception, NoNodeError) else _result(asked, limit)


def _raise_refusal(doing: str, results: Sequence[object], count: int) -> None:
    """Return only if the answer confirms all ``count`` operations."""
    for operation, result in enumerate(results):
        if isinstance(result, (NoAuthError, InvalidACLError)):
            raise _unauthorized(doing) from result
        if isinstance(result, (NoNodeError, NodeExistsError, BadVersionError)):
            raise RefusedError(operation, result)
        if isinstance(result, ZookeeperError) and not isinstance(
            result, (RolledBackError, RuntimeInconsistency)
        ):
            raise InvalidRequestError(f"ZooKeeper refused to {doing}: {_reason(result)}")
    if len(results) != count or any(isinstance(result, Exception) for result in results):
        raise RuntimeInconsistency("the answer does not say which operation failed")


def _unauthorized(doing: str) -> UnauthorizedError:
    return UnauthorizedError(f"ZooKeeper does not allow us to {doing}", hint=HINT)


def _limit() -> Countdown:
    """The time limit of one call; time in which the process was stopped is not counted."""
    chosen = patience.chosen()
    return Countdown(ANSWER_SECONDS if chosen is None else chosen)


def _is_set(event: threading.Event, limit: Countdown, spare: float = 0.0) -> bool:
    """Wait for ``event`` within ``limit``, reporting progress to tasks that wait for the caller.

    Args:
        spare: seconds of the limit that must be left.
    """
    while not event.is_set():
        seconds = min(limit.step(), limit.left() - spare)
        if seconds <= 0:
            return False
        progress.made()
        event.wait(seconds)
    return True


def _is_taken(lock: threading.Lock, limit: Countdown) -> bool:
    """Take ``lock`` within ``limit``, reporting progress as ``_is_set`` does."""
    while not lock.acquire(blocking=False):
        seconds = limit.step()
        if not seconds:
            return False
        progress.made()
        if lock.acquire(timeout=seconds):
            break
    return True


def _wait(asked: Any, limit: Countdown) -> None:
    """Wait until kazoo has an answer to the request ``asked``.

    Raises:
        KazooTimeoutError: no answer in time.
    """
    while not asked.ready():
        seconds = limit.step()
        if not seconds:
            raise KazooTimeoutError(f"no answer within {limit.seconds:g} s")
        progress.made()
        asked.wait(seconds)


def _result(asked: Any, limit: Countdown) -> Any:
    _wait(asked, limit)
    return asked.get()


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _stop_in_background(client: KazooClient, pid: int) -> environment.Task | None:
    """Stop ``client`` in another thread, because stopping waits for the server, perhaps gone."""
    if os.getpid() != pid:
        return None

    def stop() -> None:
        with contextlib.suppress(*_UNSURE):
            client.stop()
            client.close()

    return environment.start(stop, "zookeeper-close")
