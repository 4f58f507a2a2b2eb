"""The post-check's question to a directory (R6), with few system calls: every append waits for it.

``checks.has_kept`` asks by a root, which opens every folder on the way for each look-up and reads
the cookie again behind each absence: over forty calls. Here everything is reached from descriptors
that are opened anew by the bookie's path, downwards only: ``..`` would cross into whatever has been
mounted over a folder meanwhile. So all of it is of one directory, whatever is mounted, moved or
renamed at the same time (H19).

1. The root, by its path, and its cookie, which stays open: nothing is believed before it.
2. The ledger's folder, one part at a time and through no link. Journal and markers are looked up
   in it, so that they are of one ledger even if its folder is exchanged.
3. The journal: the file that is written to, all of it.
4. The fence is absent, **then** the permission is there. Both in one open folder; in the other
   order a fence could be made behind the one look and all be deleted before the other.
5. The cookie's file is still the open one: the fence was not absent because the directory was
   being wiped, or not put back yet. An open file keeps its inode number from being given away.

Only a "yes" is given here. Whatever else is found, or goes wrong, is asked again by a root, which
knows what it means. Nothing is kept from one check to the next, neither a descriptor nor the time
of a change.
"""

import os

from bkspark.bookie import posix_calls
from bkspark.bookie.checks import check_cookie, split_name
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.posix_files import PosixJournal
from bkspark.bookie.posix_place import COOKIE_BYTES_MAX, path_of
from bkspark.format.layout import COOKIE


def has_surely_kept(
    address: BookieAddress, journal: PosixJournal, *, absent: str, present: str
) -> bool:
    """Whether the answer to ``contract.Bookie.has_kept`` is surely yes; False says nothing.

    Raises:
        BookieUnavailableError: the place is another bookie's, or the journal is closed.
    """
    try:
        with posix_calls.closing(posix_calls.open_root(path_of(address.url))) as root:
            cookie, status = posix_calls.open_file(root, COOKIE)
            with posix_calls.closing(cookie):
                found = posix_calls.read_open(cookie, status, 0, COOKIE_BYTES_MAX)
                check_cookie(address, found)
                is_kept = _shows(root, journal, absent, present)
                now = posix_calls.status_of(root, COOKIE)
                return is_kept and os.path.samestat(status, now)
    except OSError:
        return False


def _shows(root: int, journal: PosixJournal, absent: str, present: str) -> bool:
    """Whether the journal is there, then ``absent`` is not, and then ``present`` is."""
    markers, fence = split_name(absent)
    others, permission = split_name(present)
    records, name = split_name(journal.name)
    ledger = markers[:-1]
    if not ledger or others != markers or records[:-1] != ledger:
        return False
    with posix_calls.closing(posix_calls.open_folder(root, ledger)) as folder:
        seen = posix_calls.status_of(folder, f"{records[-1]}/{name}")
        if not journal.is_written_to(seen):
            return False
        with posix_calls.closing(posix_calls.open_folder(folder, markers[-1:])) as terms:
            if not _is_absent(terms, fence):
                return False
            posix_calls.status_of(terms, permission)
    return True


def _is_absent(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return True
    return False
