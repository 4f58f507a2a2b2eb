"""Makes files of other programs durable: Spark and Delta do not, on a disk."""

import os
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

_ON_DISK = "file:///"


def sync_files(url: str, names: Iterable[str]) -> None:
    """Make files durable, and the folders that lead to them from the folder at ``url``.

    Stores in buckets are durable by themselves: nothing is done there.

    Args:
        names: relative to the folder.

    Raises:
        FileNotFoundError: a file is gone.
        OSError: a file may not be durable.
    """
    if not url.startswith(_ON_DISK):
        return
    root = unquote(urlsplit(url).path).rstrip("/")
    folders = {os.path.dirname(root), root}
    for name in names:
        path = os.path.join(root, name)
        _sync(path)
        while len(path := os.path.dirname(path)) > len(root):
            folders.add(path)
    for folder in sorted(folders, key=len, reverse=True):
        _sync(folder)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
