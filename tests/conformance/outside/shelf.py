"""A package that adds bookies and a metadata store at ``shelf:///directory``.

It keeps the contract with the help of what bkspark has for directories, which stands here for a
client of some other storage.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from bkspark.bookie.contract import (
    Bookie,
    BookieAddress,
    BookieKind,
    BookieRoot,
    BookieStorage,
    Journal,
)
from bkspark.bookie.posix import PosixBookie
from bkspark.bookie.posix_place import PosixStorage
from bkspark.errors import InvalidRequestError
from bkspark.metadata.contract import MetadataKind
from bkspark.metadata.files import FileMetadataStore


def directory(url: str) -> str:
    """The directory of a shelf."""
    if not url.startswith("shelf:///"):
        raise InvalidRequestError(f"{url!r} is no shelf", hint="write shelf:///directory")
    return url.replace("shelf", "file", 1)


@dataclass(frozen=True, slots=True)
class ShelfBookie:
    address: BookieAddress

    def open_root(self) -> AbstractContextManager[BookieRoot]:
        return self._bookie().open_root()

    def post_check(self, journal: Journal, *, fence: str, permission: str) -> bool:
        return self._bookie().post_check(journal, fence=fence, permission=permission)

    def _bookie(self) -> Bookie:
        return PosixBookie(replace(self.address, url=directory(self.address.url)))


class ShelfStore(FileMetadataStore):
    """A metadata store in a directory."""

    def __init__(self, uri: str) -> None:
        super().__init__(directory(uri))

    def __reduce__(self) -> tuple[type["ShelfStore"], tuple[str]]:
        return type(self), (self.uri,)

    @property
    def uri(self) -> str:
        return super().uri.replace("file", "shelf", 1)


def _storage(url: str) -> BookieStorage:
    return PosixStorage(directory(url))


BOOKIE = BookieKind(ShelfBookie, _storage)
STORE = MetadataKind(ShelfStore)
