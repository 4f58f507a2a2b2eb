"""Where the files of a table are: the log names them in URL encoding, relative or absolute.

The rule: **a file outside of the table's folder is refused.** Such a table is a shallow clone, and
a ``VACUUM`` of the table that it was cloned from removes its rows.
"""

import re
from urllib.parse import unquote

from bkspark.errors import UnsupportedTableError
from bkspark.storage.address import shown_url, split_store

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")


def path_below(url: str, named: str) -> str:
    """The path below the table at ``url`` of a file that its log names.

    Raises:
        UnsupportedTableError: the file is outside of the table.
        ValueError: the name is malformed.
    """
    path = unquote(named, errors="strict") if "%" in named else named
    if _ABSOLUTE.match(named):
        place, root = _place(path), _place(unquote(split_store(url)[0], errors="strict"))
        if not place.startswith(f"{root}/"):
            raise _outside(url, path)
        path = place[len(root) + 1 :]
    if not path or "\0" in path:
        raise ValueError(f"{named[:200]!r} does not name a file")
    if ".." in path.split("/"):
        raise _outside(url, path)
    return path


def _place(url: str) -> str:
    """One spelling of an absolute address."""
    scheme, _, rest = url.partition(":") if not url.startswith("/") else ("file", "", url)
    if scheme.lower() == "file":
        return "file:/" + rest.lstrip("/").removeprefix("localhost/")
    return "s3" + url[len(scheme) :] if scheme.lower() in ("s3", "s3a", "s3n") else url


def _outside(url: str, path: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"the table at {shown_url(url)} has a file outside of its folder: {path[:200]}",
        hint="a shallow clone depends on another table: make a table of its own, by a deep copy",
    )
