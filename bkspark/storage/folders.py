"""Folders of other programs, read only: on a disk, or in a bucket.

The rule: **"absent" is certain, and everything else is a doubt.** A name that is certainly absent
raises ``FileNotFoundError``; every other ``OSError`` proves nothing. No answer comes from a cache.

Names are relative to the folder. They come from files of other programs, so a name that leaves the
folder is refused.
"""

import errno
import io
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from bkspark import environment, progress
from bkspark.errors import InvalidRequestError
from bkspark.storage.address import BucketPlace, canonical, shown_url, split_store
from bkspark.storage.objects import Objects

READ_BYTES = 8 * 2**20
"""Maximum bytes of one request."""
_GAP_BYTES = 2**20
"""A request reads over an unwanted gap of this size: a second request takes longer."""
_AT_ONCE = 8
_S3 = ("s3://", "s3a://")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


class Folder(Protocol):
    """A folder of files that other programs write.

    Attributes:
        url: the canonical address, without credentials.
    """

    url: str

    def sizes(self, folder: str, after: str = "") -> dict[str, int]:
        """The files right under ``folder`` whose names are greater than ``after``, with sizes.

        A folder that does not exist has no files.
        """
        ...

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """``length`` bytes from ``begin`` on, fewer at the end.

        Raises:
            FileNotFoundError: the file is certainly absent.
            OSError: the storage gave no certain answer.
        """
        ...

    def open(self, name: str, size: int) -> Any:
        """A file for pyarrow, to be closed by the caller.

        Args:
            size: the expected length in bytes.

        Raises:
            FileNotFoundError: the file is certainly absent.
            OSError: the storage gave no certain answer, or the length is another.
        """
        ...


def open_folder(given: str) -> Folder:
    """Return the folder at an address as Spark users write it: a path, ``file:`` or ``s3a:``.

    Raises:
        InvalidRequestError: no such address.
    """
    url = folder_url(given)
    if url.startswith("s3://"):
        return _S3Folder(url)
    if url.startswith("file:///"):
        return _LocalFolder(url)
    raise InvalidRequestError(
        f"{shown_url(given)!r} does not name a folder of a table",
        hint="write /absolute/path, file:///absolute/path, or s3://bucket/prefix",
    )


def folder_url(given: str) -> str:
    """Return an address of a folder in its one spelling: ``file:``, ``s3:``, or another scheme.

    Raises:
        InvalidRequestError: no such address.
    """
    url = canonical(given)
    return _place(url).url if url.startswith(_S3) else url


def _place(url: str) -> BucketPlace:
    plain, store = split_store(f"s3://{url.partition('://')[2]}")
    bucket, _, prefix = plain.removeprefix("s3://").partition("/")
    if not _BUCKET.fullmatch(bucket) or any(char in prefix for char in "?#"):
        raise InvalidRequestError(
            f"{shown_url(url)!r} does not name a folder in an S3 bucket",
            hint="write s3://bucket/prefix; the endpoint comes from AWS_ENDPOINT_URL, "
            "credentials from the AWS environment",
        )
    return BucketPlace(bucket, prefix.strip("/"), store)


def _checked(name: str) -> str:
    """Return ``name``, which stays inside of its folder."""
    if not name or name.startswith("/") or "\0" in name or ".." in name.split("/"):
        raise InvalidRequestError(f"{name[:200]!r} does not name a file of the folder")
    return name


class _LocalFolder:
    """A directory. Links are followed: the directory is the user's, and is only read."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._path = unquote(urlsplit(url).path)

    def sizes(self, folder: str, after: str = "") -> dict[str, int]:
        found: dict[str, int] = {}
        try:
            entries = os.scandir(os.path.join(self._path, folder))
        except FileNotFoundError:
            return found
        with entries:
            for entry in entries:
                # A file may be renamed or removed during the listing.
                with suppress(FileNotFoundError):
                    if entry.name > after and entry.is_file():
                        found[entry.name] = entry.stat().st_size
        return found

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        descriptor = self._opened(name)
        try:
            end = os.fstat(descriptor).st_size
            end = end if length is None else min(end, begin + length)
            chunks = []
            while begin < end:
                chunk = os.pread(descriptor, min(end - begin, READ_BYTES), begin)
                if not chunk:
                    break
                chunks.append(chunk)
                begin += len(chunk)
                progress.made()
            return b"".join(chunks)
        finally:
            os.close(descriptor)

    def open(self, name: str, size: int) -> Any:
        import pyarrow as pa

        descriptor = self._opened(name)
        try:
            _require_size(os.fstat(descriptor).st_size, size)
            return pa.OSFile(os.path.join(self._path, name))
        finally:
            os.close(descriptor)

    def _opened(self, name: str) -> int:
        # O_NONBLOCK: opening a pipe in a file's place must not wait for the pipe's other end.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(os.path.join(self._path, _checked(name)), flags)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, f"{name} is not a file")
        return descriptor


class _S3Folder:
    """A prefix in a bucket. Settings come from the AWS environment, as for bookies."""

    def __init__(self, url: str) -> None:
        place = _place(url)
        self.url = place.url
        self._objects = Objects(place)

    def sizes(self, folder: str, after: str = "") -> dict[str, int]:
        return self._objects.stored_sizes(folder, after)

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        found = self._objects.read(_checked(name), begin, length)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, f"{name} does not exist")
        return found.data

    def open(self, name: str, size: int) -> Any:
        found = self._objects.read(_checked(name), max(0, size - _FOOTER_BYTES), _FOOTER_BYTES)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, f"{name} does not exist")
        _require_size(found.size, size)
        file = RangedFile(self, name, size)
        file.keep(max(0, size - _FOOTER_BYTES), found.data)
        return file


_FOOTER_BYTES = 2**16
"""What pyarrow reads first of a Parquet file, at its end."""


class SizeDiffersError(OSError):
    """A file has another length than the caller expected."""


def _require_size(found: int, expected: int) -> None:
    if found != expected:
        raise SizeDiffersError(errno.EIO, f"it has {found} bytes, and {expected} were expected")


def fetch_ahead(file: Any, ranges: Sequence[tuple[int, int]]) -> None:
    """Read ranges ``(begin, end)`` of an opened file ahead, where each request takes long."""
    if isinstance(file, RangedFile):
        file.fetch(ranges)


class RangedFile(io.RawIOBase):
    """A file of a folder that is read by requests for ranges, which may be fetched ahead."""

    def __init__(self, folder: Folder, name: str, size: int) -> None:
        super().__init__()
        self._folder = folder
        self._name = name
        self._size = size
        self._at = 0
        self._kept: dict[int, bytes] = {}

    def keep(self, begin: int, data: bytes) -> None:
        """Keep bytes that were read from ``begin`` on."""
        self._kept[begin] = data

    def fetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Read the ranges ``(begin, end)`` ahead, and forget all that was read before."""
        pieces = [
            (first, min(first + READ_BYTES, end))
            for begin, end in _joined(ranges)
            for first in range(begin, end, READ_BYTES)
        ]

        def read(piece: tuple[int, int]) -> tuple[int, bytes]:
            return piece[0], self._read_range(*piece)

        self._kept = dict(environment.for_each(read, pieces, at_once=_AT_ONCE, name="read-table"))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._size

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        data = self._ranged(self._at, end)
        self._at += len(data)
        return data

    def _ranged(self, begin: int, end: int) -> bytes:
        pieces = []
        while begin < end:
            piece = self._piece(begin, end)
            pieces.append(piece)
            begin += len(piece)
        return b"".join(pieces)

    def _piece(self, begin: int, end: int) -> bytes:
        """Bytes from ``begin`` on, at least one: from what was fetched, or by a request."""
        for first, data in self._kept.items():
            if first <= begin < first + len(data):
                return data[begin - first : end - first]
        nearest = min((first for first in self._kept if begin < first < end), default=end)
        return self._read_range(begin, min(nearest, begin + READ_BYTES))

    def _read_range(self, begin: int, end: int) -> bytes:
        data = self._folder.read(self._name, begin, end - begin)
        if len(data) != end - begin:
            raise SizeDiffersError(errno.EIO, "it became shorter while it was read")
        return data


def _joined(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in order, with small gaps between them closed."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if joined and begin <= joined[-1][1] + _GAP_BYTES:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined
