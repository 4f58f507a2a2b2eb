"""Turns what storage and pyarrow answer into the errors of a table."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    TableUnavailableError,
    UnsupportedTableError,
)
from bkspark.storage.address import shown_url, split_store
from bkspark.storage.folders import SizeDiffersError

# --- paths ---------------------------------------------------------------------------------------
# Where the files of a table are: the log names them in URL encoding, relative or absolute.
#
# The rule: **a file outside of the table's folder is refused.** Such a table is a shallow clone,
# and a ``VACUUM`` of the table that it was cloned from removes its rows.


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


# --- asking --------------------------------------------------------------------------------------


_REASON_MAX = 300


class FileGoneError(Exception):
    """A file that was there in a listing or in a version is certainly absent."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@contextmanager
def asking_for(url: str, name: str) -> Iterator[None]:
    """Translate the errors of the block, which reads a file of the table at ``url``.

    Raises:
        FileGoneError: the file is certainly absent.
        TableUnavailableError: storage gave no certain answer.
        CorruptDataError: the file's bytes or its length are not what they should be.
        UnsupportedTableError: pyarrow has no code for the file.
    """
    try:
        yield
    except BookKeeperError:
        raise
    except FileNotFoundError as error:
        raise FileGoneError(name) from error
    except SizeDiffersError as error:
        raise damaged(url, name, error.strerror) from error
    except OSError as error:
        if error.errno is None:  # of pyarrow: it could not decode what it had read
            raise damaged(url, name, error) from error
        raise unavailable(url, name, error) from error
    except NotImplementedError as error:
        raise UnsupportedTableError(
            f"a file of the table at {shown_url(url)} cannot be read: {name}: {_reason(error)}",
            hint="rewrite it with Spark's defaults, or read the table with Spark",
        ) from error
    except (ValueError, LookupError) as error:
        raise damaged(url, name, error) from error


def damaged(url: str, name: str, reason: object) -> CorruptDataError:
    """The error of a file of a table whose bytes are not what they should be."""
    return CorruptDataError(
        f"the table at {shown_url(url)} is damaged: {name}: {_reason(reason)}",
        hint="restore the file from a backup of the table",
    )


def unavailable(url: str, name: str, error: OSError) -> TableUnavailableError:
    """The error of a file about which storage gave no certain answer."""
    return TableUnavailableError(
        f"the table at {shown_url(url)} cannot be read: {name}: {_reason(error.strerror or error)}",
        hint=getattr(error, "hint", "") or "check that its storage can be reached, and try again",
    )


def _reason(given: object) -> str:
    return " ".join(str(given).split())[:_REASON_MAX]
