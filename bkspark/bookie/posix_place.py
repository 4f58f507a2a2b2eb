"""The place of a POSIX bookie: the path in its URL, its cookie, and an empty private directory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from bkspark.bookie.checks import UnavailableOnOSError
from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import cluster as cluster_format
from bkspark.format.layout import COOKIE
from bkspark.storage import posix_calls
from bkspark.storage.access import FOLDER_MODE, Access, NotPrivateError, settle_place
from bkspark.storage.address import require_fit, shown_url

# --- posix place ---------------------------------------------------------------------------------
# The place of a POSIX bookie, given by the path in its URL, and the cookie stored there.


# A cookie has some 200 bytes; a longer file is none, and need not be read to the end.
COOKIE_BYTES_MAX = 2**16


# Each post-check calls this.
@lru_cache(maxsize=1024)
def path_of(url: str) -> str:
    """The absolute path in a ``file:`` URL."""
    require_fit(url)
    try:
        parts = urlsplit(url)
        path = unquote(parts.path, errors="strict")
    except ValueError:
        parts, path = None, ""
    is_plain = (
        parts is not None
        and parts.scheme == "file"
        and parts.netloc in ("", "localhost")
        and not (parts.query or parts.fragment)
        and "\0" not in path
        and not path.startswith("//")
    )
    path = path.rstrip("/") or path[:1]
    if not is_plain or not path.startswith("/") or os.path.normpath(path) != path:
        raise InvalidRequestError(
            f"{shown_url(url)!r} does not name a local directory",
            hint="write file:///absolute/path, with no '..', and %23 or %3F for '#' or '?'",
        )
    return path


def read_cookie(root: int) -> bytes | None:
    """The bytes under the cookie's name in directory ``root``; None if absent."""
    try:
        return posix_calls.read_range(root, COOKIE, 0, COOKIE_BYTES_MAX)
    except FileNotFoundError:
        return None


# --- posix storage -------------------------------------------------------------------------------
# A future bookie's directory, which must be empty and private.
#
# ``cluster.admission`` checks first whether the file system is suitable.


@dataclass(frozen=True, slots=True)
class PosixStorage:
    """The present or future directory at ``file:///absolute/path``."""

    url: str

    def read_cookie(self) -> bytes | None:
        path = path_of(self.url)
        with self._unavailable_on_error("read the cookie in", path):
            try:
                with self._opened(path) as root:
                    return read_cookie(root)
            except FileNotFoundError:
                return None

    def require_suitable(self, cookie: bytes | None = None, group: int | None = None) -> None:
        path = path_of(self.url)
        parent = os.path.dirname(path)
        with self._unavailable_on_error("look at", path):
            if not os.path.isdir(parent):
                raise InvalidRequestError(
                    f"{parent} is not a directory",
                    hint="mount the disk or make that directory first; this command makes "
                    "only the last directory of a path",
                )
            with suppress(FileNotFoundError), self._opened(path) as root:
                _check_is_usable(root, path, cookie, Access(group))

    def format(self, cookie: bytes) -> None:
        group = _group_in(cookie)
        self.require_suitable(cookie, group)
        path = path_of(self.url)
        parent = os.path.dirname(path)
        with self._unavailable_on_error("initialise", path):
            with suppress(FileExistsError):
                os.mkdir(path, FOLDER_MODE)
            with self._opened(path) as root:
                _check_is_usable(root, path, cookie, Access(group))
                _settle(path, group)
                with self._opened(parent) as above:
                    os.fsync(above)
                is_new = posix_calls.put_new(root, COOKIE, cookie, Access(group))
                if not is_new and read_cookie(root) != cookie:
                    raise _already_a_bookie(path)

    def failure_domain(self) -> str:
        path = path_of(self.url)
        with self._unavailable_on_error("look up", path):
            try:
                device = os.stat(path).st_dev
            except FileNotFoundError:
                device = os.stat(os.path.dirname(path)).st_dev
        return domain_of(device)

    def _unavailable_on_error(self, operation: str, path: str) -> UnavailableOnOSError:
        return UnavailableOnOSError(shown_url(self.url), operation, path, path)

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        with posix_calls.closing(posix_calls.open_root(path)) as descriptor:
            yield descriptor


def domain_of(device: int) -> str:
    """The failure domain of files on a disk."""
    return f"disk-{os.major(device)}:{os.minor(device)}"


def _group_in(cookie: bytes) -> int | None:
    """The group in the cookie; None for an invalid cookie, which its reader refuses."""
    try:
        return cluster_format.decode_cookie(cookie).group
    except CorruptDataError:
        return None


def _settle(path: str, group: int | None) -> None:
    try:
        settle_place(path, group)
    except NotPrivateError as error:
        raise InvalidRequestError(str(error.strerror), hint=error.hint) from error


def _check_is_usable(root: int, path: str, cookie: bytes | None, access: Access) -> None:
    try:
        access.require_trusted(os.fstat(root), path)
    except NotPrivateError as error:
        raise InvalidRequestError(str(error.strerror), hint=error.hint) from error
    # A temporary file is left behind by a killed initialisation.
    names = [name for name in os.listdir(root) if not name.startswith(posix_calls.TEMP_PREFIX)]
    if COOKIE in names:
        if read_cookie(root) != cookie:
            raise _already_a_bookie(path)
        names.remove(COOKIE)
    if names:
        raise InvalidRequestError(
            f"{path} is not empty: it holds {sorted(names)[0][:80]!r}",
            hint="give a new directory inside it, or remove its files",
        )


def _already_a_bookie(path: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{path} is a bookie already", hint="give another directory; the data was not touched"
    )
