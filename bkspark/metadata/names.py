"""Checks of keys and addresses, which are hostile input and are checked before any other use."""

import re
from urllib.parse import SplitResult, urlsplit

from bkspark.errors import InvalidRequestError

# A part never begins with a dot: it could be ".." or pass for a store's own temporary file.
_KEY = re.compile(r"[a-z]+(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
# File systems end a name at 255 bytes; a store puts a few of its own around a part.
_PART_LENGTH_MAX = 200


def key(name: str) -> str:
    """Return ``name`` if it may be the key of a record."""
    if (
        not _KEY.fullmatch(name)
        or ".." in name
        or any(len(part) > _PART_LENGTH_MAX for part in name.split("/"))
    ):
        raise InvalidRequestError(
            f"metadata key {name[:80]!r} is not allowed",
            hint="bkspark.format.layout makes the keys",
        )
    return name


def split_uri(uri: str) -> SplitResult:
    """The parts of ``uri``; for a malformed URI an error of bkspark without secrets."""
    try:
        return urlsplit(uri)
    except ValueError:
        # Not chained: the original message may quote the credentials.
        raise InvalidRequestError(
            "the metadata store URI cannot be parsed", hint="write file:///directory"
        ) from None


def another_store(shown: str) -> InvalidRequestError:
    """The error for a store that was replaced by another store at the same place."""
    return InvalidRequestError(
        f"the metadata store at {shown} is not the one that was opened: another cluster has "
        "replaced it, and nothing was changed in it",
        hint="open the cluster again if the new cluster is the right one, or bring the old "
        "one back",
    )
