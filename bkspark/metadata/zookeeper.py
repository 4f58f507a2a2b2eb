"""A metadata store in Apache ZooKeeper, at ``zk://host:port,host:port/path``.

The rule: **an address never holds credentials, and a pickle holds only the address.** The process
that uses a store connects at first use, and signs in with its own credentials
(``zookeeper_credentials``).

This file handles addresses, keys and sizes. ``zookeeper_records`` explains how records become
znodes and why they are safe, ``zookeeper_session`` when an answer is certain. kazoo is imported at
first use, so that users of other stores do not need it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bkspark.errors import InvalidRequestError
from bkspark.metadata import contract, freshness
from bkspark.metadata.contract import VersionedBytes
from bkspark.storage.address import shown_url
from bkspark.storage.changes import Changes

if TYPE_CHECKING:
    from bkspark.metadata.zookeeper_records import ZooKeeperRecords
    from bkspark.metadata.zookeeper_session import SessionPlace, ZooKeeperSession

# A server refuses packets of 1 MiB by cutting the connection, which would look like a lost answer.
# The difference is for key, path, access list and headers.
VALUE_BYTES_MAX = 2**20 - 2**13
_KEY_LENGTH_MAX = 1000
_PATH_LENGTH_MAX = 500

_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
_PATH = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)+")


class ZooKeeperMetadataStore:
    """A ``MetadataStore`` that threads may share. A forked child connects on its own."""

    pays_to_read = True

    def __init__(self, uri: str) -> None:
        self._hosts, self._root = _address(uri)
        self._session: ZooKeeperSession | None = None
        self._bound_to: str | None = None

    def __reduce__(self) -> tuple[type["ZooKeeperMetadataStore"], tuple[str]]:
        return type(self), (self.uri,)

    @property
    def uri(self) -> str:
        return f"zk://{self._hosts}{self._root}"

    def format(self) -> None:
        """Make an empty path, created if missing, a metadata store.

        A store without a record stays as it is.

        Raises:
            InvalidRequestError: the path is not empty.
            OutcomeUnknownError: the servers gave no certain answer; may be repeated.
        """
        self._records_of("").format()

    def get(self, key: str) -> VersionedBytes | None:
        return self._records().get(_key(key))

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        if expected is not None and expected < 1:
            raise InvalidRequestError(f"version {expected} of {key!r} cannot exist")
        if len(value) > VALUE_BYTES_MAX:
            raise InvalidRequestError(
                f"metadata record {_key(key)!r} would be {len(value):,} bytes, "
                f"and ZooKeeper takes {VALUE_BYTES_MAX:,}",
                hint="store less in it, or use a file:// metadata store",
            )
        named = _key(key)  # refused before any server is asked
        return self._records().put(named, bytes(value), expected)

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        found = self._records().get(_key(key))
        # What may lag says nothing against a newer version.
        is_late = found is not None and freshness.may_lag() and found.version < seen.version
        return is_late or found == seen

    def list(self, prefix: str) -> list[str]:
        return self._records().list(_key(prefix))

    def delete(self, key: str) -> None:
        self._records().delete(_key(key))

    @property
    def watchable(self) -> "ZooKeeperMetadataStore":
        """The store, whose server tells its client of changes."""
        return self

    def watch(self, keys: Iterable[str], changes: Changes) -> bool:
        self._records().watch([*map(_key, keys)], changes)
        return True

    @property
    def sessions(self) -> "ZooKeeperMetadataStore":
        """The store has sessions: it notices the end of a client."""
        return self

    @property
    def session_seconds(self) -> float:
        from bkspark.metadata import zookeeper_session

        return zookeeper_session.SESSION_SECONDS

    def first_place(self, key: str, text: str, seconds: float) -> "SessionPlace | None":
        return self._records().first_place(_key(key), text, seconds)

    def row(self, key: str) -> Sequence[str]:
        return self._records().row(_key(key))

    def rows(self, begin: str) -> Sequence[str]:
        return self._records().rows(begin)

    def close(self) -> None:
        """Leave the servers. May be repeated; the next call connects again."""
        if self._session is not None:
            self._session.close()

    def _records(self) -> "ZooKeeperRecords":
        """The records of the store found at the first use."""
        if self._bound_to is None:
            self._bound_to = self._records_of("").look_up()
        return self._records_of(self._bound_to)

    def _records_of(self, bound_to: str) -> "ZooKeeperRecords":
        try:
            from bkspark.metadata.zookeeper_records import ZooKeeperRecords
            from bkspark.metadata.zookeeper_session import ZooKeeperSession
        except ModuleNotFoundError as error:
            raise InvalidRequestError(
                f"the metadata store {self.uri} needs the package {error.name}",
                hint="pip install 'bkspark[zookeeper]'",
            ) from error
        # Two threads may both make a session; the loser's session is closed when dropped.
        session = self._session = self._session or ZooKeeperSession(self._hosts)
        return ZooKeeperRecords(session, self._root, self.uri, bound_to)


def _key(key: str) -> str:
    if len(contract.key(key)) > _KEY_LENGTH_MAX:
        raise InvalidRequestError(f"metadata key {key[:80]!r} is too long")
    return key


def _address(uri: str) -> tuple[str, str]:
    """Servers and path. The order of the servers stays: it is part of the store's name."""
    parts = contract.split_uri(uri)
    path = parts.path.rstrip("/")
    hosts = [_HOST.fullmatch(host) for host in parts.netloc.split(",")]
    if (
        parts.scheme != "zk"
        or not all(host and 0 < int(host[1] or 2181) < 2**16 for host in hosts)
        or parts.query
        or parts.fragment
    ):
        raise InvalidRequestError(
            f"{shown_url(uri)!r} is not a URL of a path in ZooKeeper",
            hint="write zk://host:2181,host:2181/path, without user and password",
        )
    if (
        not _PATH.fullmatch(path)
        or ".." in path
        or len(path) > _PATH_LENGTH_MAX
        or f"{path}/".startswith("/zookeeper/")
    ):
        raise InvalidRequestError(
            f"{shown_url(uri)!r}: a metadata store cannot be at this path in ZooKeeper",
            hint="use a path of letters, digits, '.', '_' and '-' such as /bkspark; "
            "/zookeeper belongs to ZooKeeper",
        )
    return parts.netloc, path
