"""Files that stay open, so that a later post-check knows a bookie's directory again.

Whatever a path leads to with the numbers of an open file *is* that file: as long as it is open, no
other is given its inode number. A copy of a directory, or one that was restored or made anew, has
other numbers. ``posix_post_check`` says what is concluded from it.
"""

import os
from dataclasses import dataclass

from bkspark.bookie.contract import BookieAddress
from bkspark.storage import posix_calls


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file or folder that was found once, and where to look for it again."""

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
    """What was met in one directory, together with a journal.

    Attributes:
        address: whose directory it is.
        journal_path: where the journal was.
        cookie: its file, and ``cookie_bytes`` what is in it.
        markers: the folder of the ledger's term markers, ``markers_parts`` under the root.
    """

    address: BookieAddress
    journal_path: str
    cookie: OpenFile
    cookie_bytes: bytes
    markers: OpenFile
    markers_parts: tuple[str, ...]

    def is_cookie_there(self) -> bool:
        """Whether the cookie's path leads to the cookie that is open, and it says the same."""
        if not self.cookie.is_at(os.stat(self.cookie.path, follow_symlinks=False)):
            return False
        # One byte more than expected, so that something behind it is seen.
        length = len(self.cookie_bytes) + 1
        return os.pread(self.cookie.descriptor, length, 0) == self.cookie_bytes

    def open_markers(self) -> int:
        """Descriptor of what lies under the path of the markers, opened now.

        Not the one that is open: a file system with a cache looks again for one that is opened.
        """
        return os.open(self.markers.path, posix_calls.FOLDER_FLAGS)

    def close(self) -> None:
        self.cookie.close()
        self.markers.close()
