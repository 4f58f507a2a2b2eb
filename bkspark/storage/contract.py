"""What ``Objects`` and ``Upload`` ask of an object store: the contract of its kinds.

Each call is one request, sent once. ``connection.repeated`` repeats it where the caller may. Keys
are whole: the place of a bookie or a metadata store is in them.

The rule: **every answer but a certain one of the store is a doubt**, see ``connection``. These
answers are certain: ``NoSuchObject`` of a get or a delete, ``ObjectTaken`` of a put or of the end
of an upload, and ``RangeBehindEnd`` of a get. Every other failure is an ``StoreDoubt`` that says
whether the next attempt may succeed. So a kind

* compares and sets by the store's own precondition, and never by a look before the write;
* repeats no request by itself, neither after a lost answer nor after a refusal;
* answers from no cache;
* makes its connections anew in a forked process;
* shows no secret in an error, in a log or in a ``repr``.
"""

import io
from dataclasses import dataclass, field
from typing import Protocol

from bkspark import progress

TOKEN = "bkspark-token"
"""The name in the user metadata of an object under which its creator's token is."""
_SMALL_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """An object, or a range of its bytes.

    Attributes:
        size: of the whole object.
        token: stored with the object by its creator; "" if there is none.
        etag: names this state of the object; never comes back for other bytes under the key.
    """

    data: bytes
    size: int
    token: str
    etag: str


@dataclass(frozen=True, slots=True)
class ListingPage:
    """A page of a listing.

    Attributes:
        objects: ETag and size of each object by its key.
        folders: keys up to the next "/", with it, of deeper objects.
        next: where the next page begins; "" after the last page.
    """

    objects: dict[str, tuple[str, int]] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    next: str = ""


class Parts(Protocol):
    """A large object on its way. It is invisible, and its name free, until ``finish`` succeeds.

    Attributes:
        in_turn: whether a part may be sent only after the one before it.
    """

    in_turn: bool

    def send(self, number: int, part: bytes, /) -> None:
        """Send a part, which after a doubt may be sent again.

        All parts but the last are a multiple of 256 KiB, and have 5 MiB at least.

        Args:
            number: of the part; the first is 0.
        """

    def finish(self) -> str:
        """Make the object by one conditional request, if it is absent; returns its ETag.

        May be repeated after a doubt: it cannot happen twice.
        """

    def abandon(self) -> None:
        """Remove the parts, as far as the store knows such a request."""


class ObjectStore(Protocol):
    """The objects of one bucket."""

    def put(self, key: str, data: bytes, *, token: str = "", replaced: str = "") -> str:
        """Make an object if it is absent, or in place of the one with ETag ``replaced``.

        Args:
            data: at least one byte.
            token: stored with the object.

        Returns:
            The ETag of the new object.
        """

    def get(self, key: str, begin: int = 0, end: int | None = None) -> StoredBytes:
        """The bytes of an object from ``begin`` on, those from ``end`` on left out."""

    def list_page(self, prefix: str, after: str = "", page: str = "") -> ListingPage:
        """The objects and folders right under ``prefix``.

        Args:
            prefix: ends in "/", or is empty.
            after: keys up to this one are left out.
            page: ``next`` of the page before; "" for the first.
        """

    def delete(self, key: str) -> None:
        """Remove an object; a store may tell that there is none, and need not."""

    def server(self) -> str:
        """Host and port of the server, in one spelling; "" for AWS, without a request.

        Two buckets of one name are the same bucket exactly if their servers are the same.

        Raises:
            InvalidRequestError: this machine does not know the store, or cannot make a client.
        """

    def begin(self, key: str, token: str) -> Parts:
        """Begin a large object.

        A repetition after a doubt may leave parts behind that only the bucket's rules remove.
        """


class ReportedBytes(io.BytesIO):
    """Bytes that report progress to their maker's task when read for sending, in any thread."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._report = progress.reporter()

    def read(self, size: int | None = -1, /) -> bytes:
        self._report()
        return super().read(size)


def body(data: bytes) -> bytes | ReportedBytes:
    """``data`` as the body of a request; a large one reports progress while it is sent."""
    return ReportedBytes(data) if len(data) > _SMALL_BYTES else data
