"""The file systems on which metadata stores and bookies may lie.

The rule: **a file system is admitted if it is known to belong to one host, or if it passes
``litmus``.** A network file system may answer "absent" from a cache long after another host has
created the file (R5, H2). Such an answer would hide a fence, and a trial on one host cannot detect
such caches. So kinds with such caches are refused without a trial, except NFS mounted to look up
each name anew.
"""

import os
import re
from dataclasses import dataclass

from bkspark.storage import litmus

MOUNTS = "/proc/self/mountinfo"

_LOCAL = re.compile(
    r"ext[234]|xfs|btrfs|zfs|f2fs|jfs|nilfs2|reiserfs|bcachefs|tmpfs|ramfs|overlay|apfs|hfs|ufs"
)
_CACHING = re.compile(r"nfs\d*|cifs|smb\d*|smbfs|ncpfs|afs|coda|fuse(blk|\..*)?|virtiofs")
_LOOKS_UP_ANEW = "lookupcache=none"
_CACHING_NOTHING = frozenset({"cache=none", "cache=0", "cache=0x0"})


@dataclass(frozen=True, slots=True)
class Mount:
    """The kernel's description of a file system.

    Attributes:
        kind: for example ``ext4``.
    """

    kind: str
    options: frozenset[str] = frozenset()

    @property
    def is_local(self) -> bool:
        return _LOCAL.fullmatch(self.kind) is not None

    @property
    def hides_files(self) -> bool:
        """Whether this host may answer look-ups from an old cache."""
        if re.fullmatch(r"nfs\d*", self.kind):
            return _LOOKS_UP_ANEW not in self.options
        if self.kind == "9p":
            caches = {option for option in self.options if option.startswith("cache=")}
            return not caches <= _CACHING_NOTHING
        return _CACHING.fullmatch(self.kind) is not None


def why_unsafe(path: str) -> str:
    """Why data at ``path`` might be lost, in one line; empty if there is no known reason.

    Args:
        path: of a directory; its parent must exist.
    """
    mount = mount_of(path)
    if mount is not None and mount.is_local:
        return ""
    of_type = "an unknown type" if mount is None else f"type {mount.kind}"
    if mount is not None and mount.hides_files:
        return (
            f"{path} is on a file system of {of_type}, which may hide new files from other "
            "hosts for a while"
        )
    found = litmus.failure(path if os.path.isdir(path) else os.path.dirname(path))
    return found and f"{path} is on a file system of {of_type} that failed a test: {found}"


def mount_of(path: str) -> Mount | None:
    """The present or future file system of ``path``; None if the kernel does not tell."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            lines = mounts.read().splitlines()
    except OSError:
        return None
    real = os.path.realpath(path)
    best, found = "", None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 6:
            continue
        mount_point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        is_around = real == mount_point or real.startswith(f"{mount_point.rstrip('/')}/")
        # Of two mounts on one point the later one is visible.
        if is_around and len(mount_point) >= len(best):
            options = f"{fields[5]},{kinds[-1]}".split(",")
            best, found = mount_point, Mount(kinds[0], frozenset(options))
    return found
