"""The post-check of a directory (R6), with few system calls, because every append waits for it.

``checks.post_check`` asks by a root, which opens every folder on the way for each look-up and reads
the cookie again after each absence: over forty calls. Here the first check of a journal walks from
the root once, downwards only and through no link. In **one** directory the walk finds the right
cookie, the journal and the folder of markers. Cookie and folder stay open as *pins*. This check and
every later one looks them up by their paths, and a file with the numbers of an open file is the
same file. So each look is proven to be of that one directory, whatever is mounted, moved, wiped or
put back at the same time (H19):

1. The cookie is there, unchanged: no earlier look counts.
2. The journal is the file being written, complete.
3. The folder of markers is opened anew, so that no cache of an older look answers for it.
4. The folder lacks the fence, **then** shows the permission. In the other order a fence could be
   made after the one look, and the whole folder be deleted before the other.
5. The cookie is still there, unchanged: the fence was not absent merely because the directory was
   being wiped, or not put back yet.

The pins say which directory was meant, never its contents: no answer of an earlier check is reused.
This module only gives a "yes". After any other finding or error the caller asks by a root, which
interprets the finding, and the next check walks from the root.

Only the walk notices a folder on the way that was replaced by a link to itself. Readers, recoveries
and the next journal, which follow no link, are refused there until the link is gone; no record is
lost.
"""

import os
from contextlib import ExitStack

from bkspark.bookie.checks import check_cookie, split_name
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.posix_files import PosixJournal
from bkspark.bookie.posix_pinned import OpenFile, PinnedDirectory
from bkspark.bookie.posix_place import COOKIE_BYTES_MAX, path_of
from bkspark.format.layout import COOKIE
from bkspark.storage import posix_calls


def surely_passes(
    address: BookieAddress, journal: PosixJournal, *, fence: str, permission: str
) -> bool:
    """Whether ``contract.Bookie.post_check`` certainly passes; False means unknown.

    Raises:
        BookieUnavailableError: the place belongs to another bookie, or the journal is closed.
    """
    markers, fence_name = split_name(fence)
    others, permission_name = split_name(permission)
    if not markers or others != markers:
        return False
    try:
        pinned = journal.pinned
        if pinned is None or pinned.address != address or pinned.markers_parts != markers:
            pinned = _met(address, journal, markers)
            journal.remember(pinned)
        if pinned is not None and _shows(pinned, journal, fence_name, permission_name):
            return True
    except OSError:
        pass
    journal.remember(None)
    return False


def _shows(pinned: PinnedDirectory, journal: PosixJournal, fence: str, permission: str) -> bool:
    """Whether the directory shows cookie, journal, no ``fence``, and then ``permission``."""
    if not pinned.is_cookie_there():
        return False
    if not journal.is_written_to(os.stat(pinned.journal_path, follow_symlinks=False)):
        return False
    with posix_calls.closing(pinned.open_markers()) as markers:
        if not pinned.markers.is_at(os.fstat(markers)) or not _is_absent(markers, fence):
            return False
        posix_calls.status_of(markers, permission)
    return pinned.is_cookie_there()


def _is_absent(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return True
    return False


def _met(
    address: BookieAddress, journal: PosixJournal, parts: tuple[str, ...]
) -> PinnedDirectory | None:
    """The pinned files beside ``journal`` at ``address``; None for a different directory."""
    path = path_of(address.url)
    with posix_calls.closing(posix_calls.open_root(path)) as root, ExitStack() as opened:
        cookie, status = posix_calls.open_file(root, COOKIE)
        opened.callback(os.close, cookie)
        words = posix_calls.read_open(cookie, status, 0, COOKIE_BYTES_MAX)
        check_cookie(address, words)
        markers = _open_markers(root, journal, parts)
        if markers is None:
            return None
        opened.callback(os.close, markers)
        pinned = PinnedDirectory(
            address=address,
            journal_path=f"{path}/{journal.name}",
            cookie=OpenFile(f"{path}/{COOKIE}", cookie, status),
            cookie_bytes=words,
            markers=OpenFile(f"{path}/{'/'.join(parts)}", markers, os.fstat(markers)),
            markers_parts=parts,
        )
        opened.pop_all()
        return pinned


def _open_markers(root: int, journal: PosixJournal, parts: tuple[str, ...]) -> int | None:
    """Descriptor of the folder of markers, if it lies beside ``journal`` in directory ``root``."""
    records, name = split_name(journal.name)
    *ledger, last = parts
    if records[:-1] != tuple(ledger):
        return None
    with posix_calls.closing(posix_calls.open_folder(root, ledger)) as folder:
        seen = posix_calls.status_of(folder, f"{records[-1]}/{name}")
        if not journal.is_written_to(seen):
            return None
        return os.open(last, posix_calls.FOLDER_FLAGS, dir_fd=folder)
