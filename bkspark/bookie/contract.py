"""The contract of a bookie's storage.

A ``Bookie`` is an address. ``open_root`` looks the storage up *anew* and hands out a ``BookieRoot``
only if its cookie names the expected incarnation; every read, write and look-up goes through such a
root, so nothing is believed of, or written to, a directory that was wiped, swapped or not mounted.

What every backend must give:

* **Write once.** ``put_new`` and ``create`` never replace a name that exists; of any number of
  racing callers exactly one wins. A name's bytes never change after it appears; only a journal
  grows, at its end, by its one owner.
* **All or nothing.** A name appears with all its bytes, and durable, or not at all.
* **No stale absence.** A look-up that starts after a write returned sees it, also from another
  process, and also if the same process looked before.
* **Unknown is not absent.** ``None``/``False`` mean a sure absence. Every doubt is
  ``BookieUnavailableError``.

All methods raise ``BookieUnavailableError`` when the storage cannot answer surely (I/O error, no
permission, gone, full, wrong cookie); for a write this means that the outcome is unknown. Names are
relative, ``/``-separated, made by ``bkspark.format.layout``.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from bkspark.format.digest import Buffer as Buffer
from bkspark.protocol.ledger.metadata import Member


@dataclass(frozen=True, slots=True)
class BookieAddress:
    """Everything needed to find a bookie again from any process; picklable.

    Attributes:
        url: for example ``file:///disk1/bk``.
        incarnation: of the initialisation that is meant; another one is another bookie.
    """

    bookie_id: str
    incarnation: str
    cluster_id: str
    url: str
    domain: str = ""

    @property
    def member(self) -> Member:
        """What metadata names it by."""
        return Member(self.bookie_id, self.incarnation)


@dataclass(frozen=True, slots=True)
class Usage:
    """How much there is in a folder: files, and bytes in them."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.files + other.files, self.bytes + other.bytes)


class EntryFile(Protocol):
    """A new file on its way; invisible until ``finish`` returns."""

    def write(self, data: Buffer) -> None:
        """Append ``data``; may be buffered."""
        ...

    def finish(self) -> None:
        """Make the file durable, then visible under its name; nothing may follow."""
        ...

    def discard(self) -> None:
        """Give it up and leave nothing behind; harmless after ``finish`` or an error."""
        ...


class Journal(Protocol):
    """The one file to which one writer of one term appends on one bookie."""

    @property
    def name(self) -> str: ...

    @property
    def end(self) -> int:
        """Bytes that are durable: where the next record goes."""
        ...

    def append(self, parts: Sequence[Buffer]) -> None:
        """Append one record and make it durable before returning.

        After any error the journal is finished: nothing may be appended behind a record whose
        durability is unknown (H24). Later calls raise.
        """
        ...

    def close(self) -> None: ...


class ReadableRoot(Protocol):
    """What readers need of a ``BookieRoot``."""

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        """``length`` bytes from ``begin`` on, fewer at the end; None if the name is absent."""
        ...

    def size(self, name: str) -> int | None:
        """Length in bytes; None if the name is absent."""
        ...

    def list(self, folder: str) -> list[str]:
        """Sorted names of all that lies right under ``folder``; empty if it is absent.

        Only temporary files of the bookie's own are left out. A name that ends in "/" is no file:
        a folder, a link, or what is left of a journal that has lost its beginning. Names of others'
        making may hold any character. A hint, see H21.
        """
        ...


class BookieRoot(ReadableRoot, Protocol):
    """A bookie's storage, found by path just now and known to be the right one."""

    def put_new(self, name: str, data: Buffer, *, once: bool = False) -> bool:
        """Create ``name`` with ``data`` if absent.

        Args:
            once: send the request that makes it no second time, whatever becomes of the first: one
                that is late would make the name anew where it was lost since (R19).

        Returns:
            True if this call created it; False if it was there already, durable by now.

        Durability: data and name survive a power cut when it returns, whatever it returns: one
        found in place is synced again before it is reported (R1, RB-36).
        """
        ...

    def create(self, name: str) -> EntryFile:
        """Begin a large write-once file; the name must be the caller's own."""
        ...

    def open_journal(self, name: str, first: Sequence[Buffer] = ()) -> Journal:
        """Create journal ``name``, which must not exist, durable: empty, or with a first record.

        It is asked for once, as ``put_new`` says.
        """
        ...

    def has_journal(self, journal: Journal) -> bool:
        """Whether ``journal``, as written, is what this root shows under its name.

        On POSIX the same inode, at least ``journal.end`` bytes long (R6, H19).
        """
        ...

    def sync(self, name: str) -> bool:
        """Make a file found in place durable, name and bytes; False if it is absent.

        Whoever wrote it may have died before it could (H23).
        """
        ...

    def delete(self, name: str) -> bool:
        """Remove ``name`` durably. Returns whether it was there."""
        ...

    def forget_journal(self, name: str) -> bool:
        """Remove a journal that counts for nothing any more, for good; whether it was removed.

        It stays as it is where its writer, if he goes on, could make a part of it appear again:
        what is left of a journal without a beginning is strange, and in everybody's way.
        """
        ...

    def sweep(self, folder: str) -> int:
        """Remove what writers that died in mid-file left right under ``folder``; how many files.

        No look-up ever asks for such a name, so this is safe at any time; but a writer that lives
        gets an error for the file it loses. ``bkspark.admin.leftovers`` says where to.
        """
        ...

    def unfinished(self, folder: str) -> Usage:
        """What ``sweep`` would remove right under ``folder``; nothing if it is absent."""
        ...

    def usage(self, folder: str) -> Usage:
        """What lies right under ``folder``, unfinished files too; nothing if it is absent."""
        ...

    def remove_folder(self, folder: str) -> Usage:
        """Remove every file right under ``folder``, unfinished ones too, by name in ascending
        order, and then the folder, if nothing else is in it; says what was removed.

        Unlike ``delete`` it need not be durable: what a power cut brings back has to be removed
        again. Others may remove the same, or make files there, at the same time.
        """
        ...

    def free_bytes(self) -> int:
        """Free space for new data; 0 if unknown."""
        ...

    def total_bytes(self) -> int:
        """Free space and what is used of the same disk, by whomever; 0 if unknown."""
        ...

    def write_problem(self) -> str:
        """Why nothing new can be written, in one line, as far as it shows without writing; else
        empty.
        """
        ...

    def close(self) -> None: ...


class Bookie(Protocol):
    """A bookie as an address: picklable, holds no resources."""

    @property
    def address(self) -> BookieAddress: ...

    def open_root(self) -> AbstractContextManager[BookieRoot]:
        """Find the storage by its path anew and check its cookie.

        Raises:
            BookieUnavailableError: absent, unreadable, or another cookie than expected.
        """
        ...

    def post_check(self, journal: Journal, *, fence: str, permission: str) -> bool:
        """Whether a writer's permission stands: no ``fence``, then the ``permission`` is there.

        The whole post-check in one question (R6), because every append waits for the answer. It is
        of one place, found by its path anew, with the expected cookie and with ``journal`` in it,
        as ``has_journal`` says. The names are looked up one behind the other, in this order.

        Raises:
            BookieUnavailableError: the place cannot answer, or does not show the journal.
        """
        ...


class BookieStorage(Protocol):
    """Storage that is not a bookie yet, or may be somebody else's; for ``init`` and ``doctor``."""

    def read_cookie(self) -> bytes | None:
        """The cookie's bytes; None if there surely is none."""
        ...

    def require_suitable(self, cookie: bytes | None = None, group: int | None = None) -> None:
        """Return if ``format`` would accept this place; changes nothing.

        Args:
            cookie: what was found there: it may be, if nothing else is.
            group: of users that share the cluster; its members may have made what is there.

        Raises:
            InvalidRequestError: it is taken, not empty, missing, or of an unsuitable kind.
        """
        ...

    def format(self, cookie: bytes) -> None:
        """Make an empty place a bookie by creating its cookie, or make the same one durable.

        Raises:
            InvalidRequestError: there is something in it already, or another cookie.
        """
        ...

    def failure_domain(self) -> str:
        """What is lost together with it: the disk, mount or bucket it lies on."""
        ...


@dataclass(frozen=True, slots=True)
class BookieKind:
    """A kind of bookie, for the entry points ``bkspark.bookies`` of other packages.

    Attributes:
        bookie: makes the bookie at an address, and looks nothing up.
        storage: makes the storage at a URL, and looks nothing up.
    """

    bookie: Callable[[BookieAddress], Bookie]
    storage: Callable[[str], BookieStorage]
