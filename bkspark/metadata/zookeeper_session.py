"""The connection and the records of a ZooKeeper store; the only file that imports kazoo."""

import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import CREATOR_ALL_ACL

from bkspark import environment, progress
from bkspark.errors import (
    InvalidRequestError,
    OutcomeUnknownError,
    UnauthorizedError,
)
from bkspark.metadata import contract, patience
from bkspark.metadata.contract import VersionedBytes, lost
from bkspark.progress import Countdown

# --- zookeeper credentials -----------------------------------------------------------------------
# The credentials of a ZooKeeper metadata store, given only by reference.
#
# ``BKSPARK_ZOOKEEPER_AUTH_FILE`` names a file, ``BKSPARK_ZOOKEEPER_AUTH`` is the variable itself;
# either holds ``user:password`` for ZooKeeper's digest scheme. The process that connects reads
# them. Where a variable would be shown, as Spark shows ``spark.executorEnv.*``, use the file.


VARIABLE = "BKSPARK_ZOOKEEPER_AUTH"
FILE_VARIABLE = "BKSPARK_ZOOKEEPER_AUTH_FILE"
HINT = f"set {VARIABLE}, or {FILE_VARIABLE}, to the user:password that made the store"


def credentials() -> str | None:
    """``user:password``, None if neither variable is set.

    Raises:
        InvalidRequestError: both are set, or the credentials are not of this form.
    """
    literal, file = os.environ.get(VARIABLE, ""), os.environ.get(FILE_VARIABLE, "")
    if literal and file:
        raise InvalidRequestError(f"set only one of {VARIABLE} and {FILE_VARIABLE}")
    if not literal and not file:
        return None
    found = _read(file) if file else literal
    user, colon, password = found.partition(":")
    if not user or not colon or not password or not found.isprintable():
        # The value itself is not shown: it may be the password alone.
        raise InvalidRequestError(
            f"the value of {(FILE_VARIABLE if file else VARIABLE)} does not look like user:password"
        )
    return found


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        raise InvalidRequestError(
            f"{FILE_VARIABLE}={file} cannot be read: {type(error).__name__}"
        ) from None


# --- zookeeper session ---------------------------------------------------------------------------
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
# Sessions hold no state, neither locks nor ephemeral nodes, so an expired session only costs a
# reconnection (H34).


# A server that is silent for two thirds of this time is left for another.
SESSION_SECONDS = 6.0
# Longer than a session, so that one host that swallows packets does not hide the others.
CONNECT_SECONDS = 8.0
# Longer than the servers need to choose a new leader, and to restart one after the other. The
# default (``patience``).
ANSWER_SECONDS = patience.DEFAULT_SECONDS
_CLOSE_SECONDS = 2.0
_PAUSE_SECONDS = 0.05
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

    Raises, besides the errors of the methods:
        OutcomeUnknownError: no certain answer; the message names the servers.
        UnauthorizedError: the servers want other credentials.
    """

    def __init__(self, hosts: str) -> None:
        self._hosts = hosts
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._connected: KazooClient | None = None
        self._was_connected = False
        self._finalizer: weakref.finalize[[KazooClient, int], ZooKeeperSession] | None = None

    def commit(self, doing: str, operations: Sequence[Operation]) -> None:
        """Carry out all operations or none.

        Raises:
            RefusedError: none was carried out.
        """
        limit = _limit()
        client = self._client(limit)
        with self._translated(doing, client):
            transaction = client.transaction()
            for operation in operations:
                operation(transaction)
            results = _result(transaction.commit_async(), limit)
            _raise_refusal(doing, results, len(operations))

    def value(self, doing: str, marker: str, path: str) -> VersionedBytes | None:
        """The value at ``path``, None if absent; the version is the znode's own.

        Raises:
            RefusedError: ``marker`` is absent.
        """
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

        def ask(client: KazooClient, limit: Countdown) -> tuple[bytes, list[str]] | None:
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
        self._repeated(doing, lambda client, limit: _result(client.ensure_path_async(path), limit))

    def close(self) -> None:
        with self._lock if self._pid == os.getpid() else contextlib.nullcontext():
            finalizer, self._finalizer, self._connected = self._finalizer, None, None
        if finalizer is not None:
            stopping = finalizer()
            if stopping is not None:
                stopping.join(_CLOSE_SECONDS)

    def _look(self, doing: str, marker: str, ask: Callable[[KazooClient], Any]) -> Any:
        def ask_both(client: KazooClient, limit: Countdown) -> Any:
            # Both are sent at once: the servers keep the order of a session.
            transaction = client.transaction()
            exists(marker)(transaction)
            checked, asked = transaction.commit_async(), ask(client)
            _raise_refusal(doing, _result(checked, limit), 1)
            # Not raised and caught: the error would keep all this alive, and with it an unused
            # connection.
            _wait(asked, limit)
            return None if isinstance(asked.exception, NoNodeError) else _result(asked, limit)

        return self._repeated(doing, ask_both)

    def _repeated(self, doing: str, ask: Callable[[KazooClient, Countdown], Any]) -> Any:
        """Ask, and ask again as long as the connection breaks and there is time."""
        limit = _limit()
        while True:
            client = self._client(limit)
            with self._translated(doing, client):
                try:
                    return ask(client, limit)
                except _RECONNECTING as error:
                    if not limit.left():
                        raise
                    if isinstance(error, ConnectionClosedError):
                        self._abandon(client)
            environment.sleep(_PAUSE_SECONDS)

    @contextlib.contextmanager
    def _translated(self, doing: str, client: KazooClient) -> Iterator[None]:
        try:
            yield
        except (NoAuthError, InvalidACLError) as error:
            raise _unauthorized(doing) from error
        except _UNSURE as error:
            if not isinstance(error, _RECONNECTING) or isinstance(error, ConnectionClosedError):
                self._abandon(client)
            raise OutcomeUnknownError(
                f"ZooKeeper at {self._hosts} gave no definite answer ({doing}): {_reason(error)}",
                hint="read back the current state before trying again",
            ) from error

    def _client(self, limit: Countdown) -> KazooClient:
        """The connection; a broken connection is made anew as long as there is time."""
        if self._pid != os.getpid():
            self._forget_parent()
        with self._lock:
            if self._connected is None:
                self._connected = self._connect(limit)
                self._was_connected = True
                self._finalizer = weakref.finalize(
                    self, _stop_in_background, self._connected, self._pid
                )
                self._finalizer.atexit = False
            return self._connected

    def _connect(self, limit: Countdown) -> KazooClient:
        auth = credentials()
        client = KazooClient(
            self._hosts,
            timeout=SESSION_SECONDS,
            logger=_logger,
            connection_retry=_RECONNECT,
            auth_data=[("digest", auth)] if auth else None,
            default_acl=CREATOR_ALL_ACL if auth else None,
        )
        if not self._was_connected:
            limit = Countdown(CONNECT_SECONDS)  # the address may be wrong
        # Not start(): it may block for long in stopping again.
        if not _is_set(client.start_async(), limit):
            _stop_in_background(client, self._pid)
            raise OutcomeUnknownError(
                f"no ZooKeeper server answered at {self._hosts} within {limit.seconds:g} s; "
                "nothing was sent",
                hint="check the address, and that a majority of the servers runs and is connected",
            )
        return client

    def _abandon(self, client: KazooClient) -> None:
        """Drop ``client``, so that its waiting requests are never sent."""
        with self._lock:
            if self._connected is not client:
                return
            finalizer, self._finalizer, self._connected = self._finalizer, None, None
        if finalizer is not None:
            finalizer()

    def _forget_parent(self) -> None:
        """Forget the parent's connection: a fork copies no threads, and may leave locks held."""
        if self._finalizer is not None:
            self._finalizer.detach()
        self._lock = threading.Lock()
        self._finalizer = self._connected = None
        self._pid = os.getpid()


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


def _is_set(event: threading.Event, limit: Countdown) -> bool:
    """Wait for ``event`` within ``limit``, reporting progress to tasks that wait for the caller."""
    while not event.is_set():
        seconds = limit.step()
        if not seconds:
            return False
        progress.made()
        event.wait(seconds)
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


# --- zookeeper records ---------------------------------------------------------------------------
# Compare-and-set out of znode versions, in transactions.
#
# The rule: **one transaction per change, and it checks all its preconditions.** The transaction
# checks that the store's marker exists. A create also checks that no tombstone exists for the key;
# a replacement also checks the version last seen. So a store that was never formatted, or was
# removed, is never mistaken for a store without records, and a deleted record never comes back::
#
#     <root>/METADATA_STORE_1/<random>       the marker; the digit is this format
#     <root>/records/<folder>/<name>         the value and nothing else
#     <root>/deleted/<folder>/<name>         tombstone: the record was deleted for ever
#
# ``<folder>`` is the key up to its last part, with ':' for '/', or '~' for a key of one part. So
# all records lie equally deep, and none inside another. Version n of a record is version n-1 of its
# znode, which ZooKeeper counts. A key is never used again, so neither is a version.
#
# The random name belongs to one store alone. A client looks the name up when it first uses the
# store, and all later transactions check the name: another cluster's store at the same path is not
# mistaken for the opened store, and is not changed.
#
# A transaction cannot check for an absence directly, but it can make a znode and remove it again,
# which fails if the znode exists.


_MARKER_PREFIX = "METADATA_STORE_"
_MARKER = f"{_MARKER_PREFIX}1"
_MARKER_TEXT = b"bkspark metadata store, format 1\n"
_KINDS = ("records", "deleted")

_ZNODE_VERSION_MAX = 2**31 - 1
# Each failed attempt means that another client made or deleted the very same record in between.
_ATTEMPTS_MAX = 10


class ZooKeeperRecords:
    """Records below ``root``. Keys must be valid; ``uri`` is for messages.

    Args:
        bound_to: the random name of the store, empty before it is known.
    """

    def __init__(self, session: ZooKeeperSession, root: str, uri: str, bound_to: str = "") -> None:
        self._session = session
        self._root = root
        self._uri = uri
        self._marker = f"{root}/{_MARKER}" + (f"/{bound_to}" if bound_to else "")

    def look_up(self) -> str:
        """The random name of the store at ``root``."""
        marker = f"{self._root}/{_MARKER}"
        with self._marker_needed():
            found = self._session.children("open it", marker, marker)
        if not found:
            raise self._other_format()  # without a name it could not be told from another store
        return min(found)

    def format(self) -> None:
        doing = f"format {self._uri}"
        value, children = self._session.contents(doing, self._root) or (b"", [])
        if _MARKER in children and not self._has_records(doing):
            return
        if value or children:
            what = "exists already" if _MARKER in children else "has other nodes"
            raise self._cannot_be_made(f"it {what}")
        self._session.make_path(doing, self._root)
        folders = [create(f"{self._root}/{kind}") for kind in _KINDS]
        try:
            marker = [create(self._marker, _MARKER_TEXT)]
            marker.append(create(f"{self._marker}/{environment.token()}"))
            self._session.commit(doing, [*marker, *folders])
        except RefusedError as refused:
            raise self._cannot_be_made("another client changed it just now") from refused

    def _has_records(self, doing: str) -> bool:
        """Whether there is a record; folders may exist before the first record."""
        kinds = [f"{self._root}/{kind}" for kind in _KINDS]
        folders = [f"{kind}/{name}" for kind in kinds for name in self._names_in(doing, kind)]
        return any(self._names_in(doing, folder) for folder in folders)

    def _names_in(self, doing: str, path: str) -> list[str]:
        return (self._session.contents(doing, path) or (b"", []))[1]

    def get(self, key: str) -> VersionedBytes | None:
        with self._marker_needed():
            found = self._session.value(f"get {key!r}", self._marker, self._path("records", key))
        return None if found is None else VersionedBytes(found.value, found.version + 1)

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        if expected is None:
            return self._create(key, value)
        # A version that no znode can have differs from the znode's version, like any other wrong
        # version.
        version = min(expected - 1, _ZNODE_VERSION_MAX)
        try:
            self._commit(f"put {key!r}", [replace(self._path("records", key), value, version)])
        except RefusedError as refused:
            raise lost(key, expected) from refused
        return expected + 1

    def list(self, prefix: str) -> list[str]:
        folder = f"{self._root}/records/{_folder(prefix)}"
        with self._marker_needed():
            return sorted(self._session.children(f"list {prefix!r}", self._marker, folder))

    def delete(self, key: str) -> None:
        doing = f"delete {key!r}"
        record, tombstone = self._path("records", key), self._path("deleted", key)
        present = [create(tombstone), delete(record)]
        absent = [create(tombstone), create(record), delete(record)]
        for attempt in range(_ATTEMPTS_MAX):
            try:
                return self._commit(doing, absent if attempt % 2 else present)
            except RefusedError as refused:
                if refused.operation == 0 and refused.exists:
                    return None
                if refused.operation == 0:
                    self._make_folders(doing, key)
        raise _restless(key)

    def _create(self, key: str, value: bytes) -> int:
        doing = f"put {key!r}"
        record, tombstone = self._path("records", key), self._path("deleted", key)
        for _ in range(2):
            try:
                self._commit(doing, [create(tombstone), delete(tombstone), create(record, value)])
                return 1
            except RefusedError as refused:
                if not refused.absent:
                    raise lost(key, None) from refused
            # The first record of its kind.
            self._make_folders(doing, key)
        raise _restless(key)

    def _make_folders(self, doing: str, key: str) -> None:
        for kind in _KINDS:
            # Refused because the folder exists: as good.
            with contextlib.suppress(RefusedError):
                self._commit(doing, [create(self._path(kind, key).rpartition("/")[0])])

    def _commit(self, doing: str, operations: Sequence[Operation]) -> None:
        """Carry out all ``operations`` or, if one is refused, none."""
        try:
            self._session.commit(doing, [exists(self._marker), *operations])
        except RefusedError as refused:
            if refused.operation == 0:
                raise self._no_store() from refused
            refused.operation -= 1
            raise

    @contextlib.contextmanager
    def _marker_needed(self) -> Iterator[None]:
        try:
            yield
        except RefusedError as refused:
            raise self._no_store() from refused

    def _path(self, kind: str, key: str) -> str:
        folder, _, name = key.rpartition("/")
        return f"{self._root}/{kind}/{_folder(folder) or '~'}/{name}"

    def _no_store(self) -> InvalidRequestError:
        _, children = self._session.contents(f"look at {self._uri}", self._root) or (b"", [])
        if any(name.startswith(_MARKER_PREFIX) and name != _MARKER for name in children):
            return self._other_format()
        if _MARKER in children:
            return contract.another_store(self._uri)
        return InvalidRequestError(
            f"no bkspark cluster at {self._uri}",
            hint=f"run `bkspark init {self._uri}`, or check the path and the servers",
        )

    def _other_format(self) -> InvalidRequestError:
        return InvalidRequestError(
            f"the metadata store at {self._uri} has another format",
            hint="use the version of bkspark that made it, or a newer version",
        )

    def _cannot_be_made(self, why: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"no metadata store can be made at {self._uri}: {why}",
            hint="use the existing store (`bkspark bookie add URL` adds a bookie), or another path",
        )


def _folder(prefix: str) -> str:
    return prefix.replace("/", ":")


def _restless(key: str) -> OutcomeUnknownError:
    return OutcomeUnknownError(
        f"other clients changed metadata record {key!r} in each attempt",
        hint="try again when fewer clients change it",
    )
