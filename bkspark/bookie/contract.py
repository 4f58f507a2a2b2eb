"""The contract of a bookie's storage.

A ``Bookie`` is an address. ``open_root`` looks the storage up *anew* and returns a ``BookieRoot``
only if the cookie names the expected incarnation. Every read, write and look-up uses such a root,
so no client trusts, or writes to, a directory that was wiped, swapped or not mounted.

Guarantees of every backend:

* **Write once.** ``put_new`` and ``create`` never replace an existing name; exactly one of any
  number of competing callers wins. A name's bytes never change after it appears; only a journal
  grows, at its end, by its one owner.
* **All or nothing.** A name appears with all its bytes, and durable, or not at all.
* **No stale absence.** A look-up that starts after a write returned sees the write, also from
  another process, and also after an earlier look-up by the same process.
* **Unknown is not absent.** ``None``/``False`` mean a certain absence. Every doubt is
  ``BookieUnavailableError``.

All methods raise ``BookieUnavailableError`` when the storage has no certain answer (I/O error, no
permission, gone, full, wrong cookie); for a write the outcome is then unknown. Names are relative,
``/``-separated, made by ``bkspark.format.layout``.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from bkspark.format.digest import Buffer as Buffer
from bkspark.protocol.bookies import Labels, in_store
from bkspark.protocol.ledger.metadata import Member

# --- contract ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BookieAddress:
    """The data needed to find a bookie again from any process; picklable.

    Attributes:
        url: for example ``file:///disk1/bk``.
        incarnation: of the expected initialisation; a different incarnation is a different bookie.
        store: name of the object store that ``url`` is in; empty for the default of each process.
        labels: of the bookie when it was looked up; they do not identify it.
    """

    bookie_id: str
    incarnation: str
    cluster_id: str
    url: str
    domain: str = ""
    store: str = ""
    labels: Labels = field(default_factory=dict, compare=False)

    @property
    def place(self) -> str:
        """``url`` with the name of its store, as ``bookie.uri.storage`` takes it."""
        return in_store(self.url, self.store)

    @property
    def member(self) -> Member:
        """The bookie's name in metadata."""
        return Member(self.bookie_id, self.incarnation)


@dataclass(frozen=True, slots=True)
class Usage:
    """The contents of a folder: number of files, and their bytes."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.files + other.files, self.bytes + other.bytes)


class EntryFile(Protocol):
    """A new, unfinished file; invisible until ``finish`` returns."""

    def write(self, data: Buffer) -> None:
        """Append ``data``; may be buffered."""
        ...

    def finish(self) -> None:
        """Make the file durable, then visible under its name; no call may follow."""
        ...

    def discard(self) -> None:
        """Give the file up and leave no trace; harmless after ``finish`` or an error."""
        ...


class Journal(Protocol):
    """The journal of a writer on a bookie; each writer and term has a separate journal."""

    @property
    def name(self) -> str: ...

    @property
    def end(self) -> int:
        """Number of durable bytes: the start of the next record."""
        ...

    def append(self, parts: Sequence[Buffer]) -> None:
        """Append one record and make it durable before returning.

        Any error ends the journal: no record may follow a record whose durability is unknown (H24).
        Later calls raise.
        """
        ...

    def close(self) -> None: ...


class ReadableRoot(Protocol):
    """The part of a ``BookieRoot`` for readers."""

    @property
    def bytes_per_request(self) -> int:
        """How many bytes are read in the time of one more request, roughly.

        A reader of two ranges reads a smaller gap between them too, in one request.
        """
        ...

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        """``length`` bytes from ``begin`` on, fewer at the end; None if the name is absent."""
        ...

    def size(self, name: str) -> int | None:
        """Length in bytes; None if the name is absent."""
        ...

    def list(self, folder: str) -> list[str]:
        """Sorted names right under ``folder``; empty if the folder is absent.

        Only the bookie's own temporary files are left out. A name that ends in "/" is no file: a
        folder, a link, or the rest of a journal that has lost its beginning. Names made by other
        programs may hold any character. The list is a hint, see H21.
        """
        ...


@runtime_checkable
class ReadsRanges(Protocol):
    """A root that answers several reads at a lower price than each of them."""

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """What ``read`` gives for each begin and length, up to the first that has no answer.

        Raises:
            BookieUnavailableError: the first of them has no answer.
        """
        ...


class BookieRoot(ReadableRoot, Protocol):
    """A bookie's storage, just found by its path, with a checked cookie."""

    def put_new(self, name: str, data: Buffer, *, once: bool = False) -> bool:
        """Create ``name`` with ``data`` if absent.

        Args:
            once: never repeat the creating request, whatever its outcome: a delayed second request
                would recreate the name after a loss (R19).

        Returns:
            True if this call created the name; False if it existed, durable by now.

        Durability: data and name survive a power cut after the return, whatever the result: an
        existing name is synced again before it is reported (R1, RB-36).
        """
        ...

    def create(self, name: str) -> EntryFile:
        """Begin a large write-once file; the name must be the caller's own."""
        ...

    def open_journal(self, name: str, first: Sequence[Buffer] = ()) -> Journal:
        """Create the new journal ``name``, durable: empty, or with a first record.

        The creating request is sent once, as with ``once`` of ``put_new``.
        """
        ...

    def has_journal(self, journal: Journal) -> bool:
        """Whether this root shows ``journal``, as written, under the journal's name.

        On POSIX the same inode, at least ``journal.end`` bytes long (R6, H19).
        """
        ...

    def sync(self, name: str) -> bool:
        """Make an existing file durable, name and bytes; False if the file is absent.

        The file's writer may have died before its own sync (H23).
        """
        ...

    def delete(self, name: str) -> bool:
        """Remove ``name`` durably. Returns whether ``name`` existed."""
        ...

    def forget_journal(self, name: str) -> bool:
        """Remove a journal that no longer counts, for good; return whether it was removed.

        The journal stays if its writer, still running, could make a part of it reappear: the rest
        of a journal without a beginning would disturb every later look-up.
        """
        ...

    def sweep(self, folder: str) -> int:
        """Remove files that killed writers left right under ``folder``; return their number.

        No look-up uses the names of such files, so sweeping is safe at any time; but a running
        writer gets an error for its removed file. ``bkspark.admin.leftovers`` chooses the folders.
        """
        ...

    def unfinished(self, folder: str) -> Usage:
        """The files that ``sweep`` would remove right under ``folder``; none if it is absent."""
        ...

    def usage(self, folder: str) -> Usage:
        """All files right under ``folder``, unfinished files too; none if it is absent."""
        ...

    def remove_folder(self, folder: str) -> Usage:
        """Remove every file right under ``folder``, in ascending order, and then the folder if
        empty.

        Removes unfinished files too, and returns what was removed. Unlike ``delete``, the removal
        need not be durable: files that a power cut brings back must be removed again. Other clients
        may remove or make files there at the same time.
        """
        ...

    def free_bytes(self) -> int:
        """Free space for new data; 0 if unknown."""
        ...

    def total_bytes(self) -> int:
        """Free space plus all used space of the same disk; 0 if unknown."""
        ...

    def write_problem(self) -> str:
        """The known reason against writing, in one line, found without writing; else empty."""
        ...

    def close(self) -> None: ...


class Bookie(Protocol):
    """A bookie as an address: picklable, holds no resources."""

    @property
    def address(self) -> BookieAddress: ...

    def open_root(self) -> AbstractContextManager[BookieRoot]:
        """Find the storage by its path anew and check its cookie.

        Raises:
            BookieUnavailableError: absent, unreadable, or a different cookie than expected.
        """
        ...

    def post_check(self, journal: Journal, *, fence: str, permission: str) -> bool:
        """Whether a writer's permission stands: no ``fence``, then the ``permission`` is there.

        The whole post-check in one question (R6), because every append waits for the answer. All
        facts are of one place, found by its path anew, with the expected cookie and with
        ``journal`` in it, as ``has_journal`` says. The names are looked up one after the other, in
        this order.

        Raises:
            BookieUnavailableError: the place cannot answer, or does not show the journal.
        """
        ...


@runtime_checkable
class TellsGrowth(Protocol):
    """A bookie that is asked for less if it only tells whether a journal has grown."""

    def may_have_grown(self, name: str, end: int) -> bool:
        """Whether the journal ``name`` may be longer than ``end`` bytes, its length when last read.

        False is no proof of anything: a place that was wiped shows no growth either. It only lets a
        reader that waits look later.

        Raises:
            BookieUnavailableError: the place cannot answer.
        """
        ...


@runtime_checkable
class ConfirmsTogether(Protocol):
    """An opened root whose absences each take a request more: is the cookie still there?"""

    def confirmed_at_end(self) -> AbstractContextManager[None]:
        """Look for the cookie once, at the end of the block: until then no absence is certain.

        Raises:
            BookieUnavailableError: at the end: no absence of the block counts.
        """
        ...


def confirmed_at_end(root: "BookieRoot") -> AbstractContextManager[None]:
    """As of ``ConfirmsTogether``; other roots are certain of each absence anyway."""
    return root.confirmed_at_end() if isinstance(root, ConfirmsTogether) else nullcontext()


@runtime_checkable
class KeepsPieces(Protocol):
    """An opened root that keeps a journal in pieces, of which each takes a request."""

    def pieces_begin(self, name: str, end: int, count: int) -> int:
        """Return where the last ``count`` pieces begin that begin before byte ``end``.

        Only a hint how much to read at once: 0 if unknown.
        """
        ...


@runtime_checkable
class StaysFound(Protocol):
    """A bookie whose place is looked for by a request, and needs nothing to be opened."""

    def found_root(self) -> AbstractContextManager[BookieRoot]:
        """As ``open_root``, for a client that has found the bookie a moment ago: without a look.

        For writes only that a post-check follows, which finds the place anew.
        """
        ...


class BookieStorage(Protocol):
    """Storage before its use as a bookie, or in other use; for ``init`` and ``doctor``."""

    def read_cookie(self) -> bytes | None:
        """The cookie's bytes; None if there is certainly no cookie."""
        ...

    def require_suitable(self, cookie: bytes | None = None, group: int | None = None) -> None:
        """Return if ``format`` would accept this place; changes no file.

        Args:
            cookie: the cookie found there, which is accepted if there is no other file.
            group: of users that share the cluster; its members may have made the files there.

        Raises:
            InvalidRequestError: the place is taken, not empty, missing, or of an unsuitable kind.
        """
        ...

    def format(self, cookie: bytes) -> None:
        """Make an empty place a bookie by creating its cookie, or make the same cookie durable.

        Raises:
            InvalidRequestError: the place has files already, or a different cookie.
        """
        ...

    def failure_domain(self) -> str:
        """The storage's unit of failure: its disk, mount or bucket."""
        ...


@dataclass(frozen=True, slots=True)
class BookieKind:
    """A kind of bookie, for the entry points ``bkspark.bookies`` of other packages.

    Attributes:
        bookie: makes the bookie at an address, without a look-up.
        storage: makes the storage at a URL, without a look-up.
    """

    bookie: Callable[[BookieAddress], Bookie]
    storage: Callable[[str], BookieStorage]


# --- messages ------------------------------------------------------------------------------------
# Names a bookie exactly once in a message.
#
# A bookie's messages mostly begin with its name. Code that adds the name to such a message uses
# these functions, so no line names the bookie twice.


def told_of(bookie_id: str, message: object) -> str:
    """``message`` with the bookie's name at its beginning, once."""
    text, name = str(message), f"bookie {bookie_id}"
    return text if _rest(name, text) is not None else f"{name}: {text}"


def on_bookie(bookie_id: str, message: object) -> str:
    """``message`` after "on" and the bookie's id, for a line about a different subject."""
    return f"on {bookie_id}: {about(f'bookie {bookie_id}', message)}"


def about(subject: str, message: object) -> str:
    """``message`` without ``subject``, for a line that begins with ``subject``."""
    text = str(message)
    rest = _rest(subject, text)
    return text if rest is None else rest.removeprefix(":").lstrip()


def _rest(subject: str, text: str) -> str | None:
    """The part of ``text`` after ``subject``; None if ``text`` does not begin with ``subject``."""
    rest = text.removeprefix(subject)
    is_longer_name = rest[:1].isalnum() or rest[:1] in ("-", "_", ".")
    return None if not subject or rest == text or is_longer_name else rest
