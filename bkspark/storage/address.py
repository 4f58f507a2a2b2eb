"""One spelling of each address, by the same rules for metadata stores and bookies.

Rule 1. Blanks and line ends around an address are dropped; a scheme is in small letters. An
absolute path without a scheme is a directory: ``/data/bk`` is ``file:///data/bk``.

Rule 2. In the path of a directory ``//``, ``/./`` and a final slash are dropped. ``..`` is refused:
through a symbolic link it leads to a different place than the path suggests.
"""

import os
import re
from urllib.parse import quote, unquote, urlsplit

from bkspark.errors import InvalidRequestError
from bkspark.storage.shown import require_fit, shown_url

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_SAFE = "/!$&'()*+,;=:@~"


def canonical(given: str) -> str:
    """The canonical spelling of address ``given``.

    Raises:
        InvalidRequestError: a control character, or a directory named by "..".
    """
    url = require_fit(given.strip(" \t\r\n"))
    if url.startswith("//"):  # a host, and perhaps a password, as in an address without its scheme
        return url
    if url.startswith("/"):
        return _directory(given, url)
    found = _SCHEME.match(url)
    if found is None:
        return url
    scheme = found[0].lower()
    url = scheme + url[found.end() :]
    if scheme != "file":
        return url
    try:
        parts = urlsplit(url)
        path = unquote(parts.path, errors="strict")
    except ValueError:  # opening the address reports the error
        return url
    is_plain = parts.netloc in ("", "localhost") and not (parts.query or parts.fragment)
    return _directory(given, path) if is_plain and path.startswith("/") else url


def _directory(given: str, path: str) -> str:
    if ".." in path.split("/"):
        raise InvalidRequestError(
            f"{shown_url(given)!r} has '..' in it", hint="write the path without '..'"
        )
    if "\0" in path:
        raise InvalidRequestError(f"{shown_url(given)!r} has the character NUL in it")
    plain = os.path.normpath(path)
    return f"file://{quote('/' + plain.lstrip('/'), safe=_SAFE)}"
