"""Files kept open, so that a later post-check recognises a bookie's directory.

A path that leads to the numbers of an open file leads to that file: while it is open, its inode
number is not reused. A copied, restored or recreated directory has different numbers.
``posix_post_check`` draws the conclusions.
"""

import os
from dataclasses import dataclass

from bkspark.bookie.contract import BookieAddress
from bkspark.storage import posix_calls


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An open file or folder, and its path for later look-ups."""

    path: str
    descriptor: int
    status: os.stat_result

    def is_at(self, found: os.stat_result) -> bool:
        """Whether ``found`` is this file."""
        return found.st_ino == self.status.st_ino and found.st_dev == self.status.st_dev

    def close(self) -> None:
        os.close(self.descriptor)


@dataclass(frozen=True, slots=True)
class PinnedDirectory:
    """The open files of one directory that holds a journal.

    Attributes:
        address: of the bookie in the directory.
        journal_path: of the journal.
        cookie: its file, with the content ``cookie_bytes``.
        markers: the folder of the ledger's term markers, ``markers_parts`` under the root.
    """

    address: BookieAddress
    journal_path: str
    cookie: OpenFile
    cookie_bytes: bytes
    markers: OpenFile
    markers_parts: tuple[str, ...]

    def is_cookie_there(self) -> bool:
        """Whether the cookie's path leads to the open cookie, with unchanged content."""
        if not self.cookie.is_at(os.stat(self.cookie.path, follow_symlinks=False)):
            return False
        # One byte more than expected, to notice added bytes.
        length = len(self.cookie_bytes) + 1
        return os.pread(self.cookie.descriptor, length, 0) == self.cookie_bytes

    def open_markers(self) -> int:
        """Descriptor of the folder under the path of the markers, opened now.

        Not the already open descriptor: a caching file system looks again only at an open.
        """
        return os.open(self.markers.path, posix_calls.FOLDER_FLAGS)

    def close(self) -> None:
        self.cookie.close()
        self.markers.close()
