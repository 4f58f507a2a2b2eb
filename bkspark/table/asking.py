"""Turns what storage and pyarrow answer into the errors of a table."""

from collections.abc import Iterator
from contextlib import contextmanager

from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    TableUnavailableError,
    UnsupportedTableError,
)
from bkspark.storage.address import shown_url
from bkspark.storage.folders import SizeDiffersError

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
