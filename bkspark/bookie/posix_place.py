"""The place of a POSIX bookie, given by the path in its URL, and the cookie stored there."""

import os
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from bkspark.errors import InvalidRequestError
from bkspark.format.layout import COOKIE
from bkspark.storage import posix_calls
from bkspark.storage.shown import require_fit, shown_url

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
