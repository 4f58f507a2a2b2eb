"""Maps a URL to a kind of storage, built in or from another package.

A kind is loaded at first use: the client of an object store is large, and each process that Spark
starts would load it.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

from bkspark import environment
from bkspark.bookie.contract import (
    Bookie,
    BookieAddress,
    BookieKind,
    BookieRoot,
    BookieStorage,
    StaysFound,
)
from bkspark.bookie.posix import PosixBookie
from bkspark.bookie.posix_place import PosixStorage
from bkspark.errors import InvalidRequestError
from bkspark.storage import outside
from bkspark.storage.address import instead_of, shown_url


def _memory_bookie(address: BookieAddress) -> Bookie:
    from bkspark.bookie.memory import MemoryBookie

    return MemoryBookie(address)


def _memory_storage(url: str) -> BookieStorage:
    from bkspark.bookie.memory import MemoryStorage

    return MemoryStorage(url)


def _bucket_bookie(address: BookieAddress) -> Bookie:
    from bkspark.bookie.object_store import BucketBookie

    return BucketBookie(address)


def _bucket_storage(url: str) -> BookieStorage:
    from bkspark.bookie.object_store import BucketStorage

    return BucketStorage(url)


_BOOKIES: dict[str, Callable[[BookieAddress], Bookie]] = {
    "file": PosixBookie,
    "memory": _memory_bookie,
    "s3": _bucket_bookie,
    "gs": _bucket_bookie,
    "abfss": _bucket_bookie,
}
_STORAGES: dict[str, Callable[[str], BookieStorage]] = {
    "file": PosixStorage,
    "memory": _memory_storage,
    "s3": _bucket_storage,
    "gs": _bucket_storage,
    "abfss": _bucket_storage,
}


def open_bookie(address: BookieAddress) -> Bookie:
    """The bookie at ``address``, without a look-up."""
    return environment.opened(address.bookie_id, _BOOKIES[_scheme(address.url)](address))


def storage(url: str) -> BookieStorage:
    """The storage at ``url``, which may name a store, in any state of use."""
    return _STORAGES[_scheme(url)](url)


def _scheme(url: str) -> str:
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme in _BOOKIES:
        return scheme
    kind = outside.kind_of(outside.BOOKIES, scheme, BookieKind) if scheme else None
    if kind is None:
        known = ", ".join(f"{name}://" for name in [*_BOOKIES, *outside.schemes(outside.BOOKIES)])
        raise InvalidRequestError(
            f"bookie URL {shown_url(url)!r} has no supported scheme",
            hint=instead_of(scheme, f"supported: {known}; a directory is file:///absolute/path"),
        )
    _STORAGES[scheme] = kind.storage
    _BOOKIES[scheme] = kind.bookie
    return scheme


def root_of(address: BookieAddress, *, is_found: bool) -> AbstractContextManager[BookieRoot]:
    """Find the storage of a bookie.

    Args:
        is_found: whether the caller has just found it, and looks at what it writes anew.
    """
    bookie = open_bookie(address)
    if is_found and isinstance(bookie, StaysFound):
        return bookie.found_root()
    return bookie.open_root()
