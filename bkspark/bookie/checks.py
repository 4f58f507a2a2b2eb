"""Checks shared by all backends: names stay inside the bookie, and the cookie is the expected one.

Names read from storage are hostile input, so only plain names of plain parts pass. No part may
begin with a dot, so ``.tmp-…`` is left to the backends. A cookie that differs from the expected one
raises ``BookieUnavailableError``: the contents of such a place prove nothing.
"""

import re
from functools import lru_cache

from bkspark.bookie.contract import Bookie, BookieAddress, Journal
from bkspark.errors import BookieUnavailableError, CorruptDataError, InvalidRequestError
from bkspark.format import cookie as cookie_format
from bkspark.storage.shown import shown_url

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
_NAME = re.compile(rf"{_PART}(?:/{_PART}){{0,15}}")

# Every look-up begins with a cookie, nearly always the same bytes; refusals are not remembered.
_decode = lru_cache(maxsize=64)(cookie_format.decode)


@lru_cache(maxsize=4096)
def split_name(name: str) -> tuple[tuple[str, ...], str]:
    """The folders of ``name`` and its last part."""
    if not _NAME.fullmatch(name):
        raise InvalidRequestError(
            f"{name[:80]!r} is not the name of a file in a bookie",
            hint="names are relative, of parts of letters, digits, '.', '_' and '-' "
            "that begin with a letter or digit",
        )
    *folders, last = name.split("/")
    return tuple(folders), last


def check_range(begin: int, length: int | None) -> None:
    """Refuse a negative range."""
    if begin < 0 or (length is not None and length < 0):
        raise InvalidRequestError(f"range of {length} bytes from {begin} on is not allowed")


def check_cookie(address: BookieAddress, data: bytes | None) -> None:
    """Check that ``data`` is the cookie of the bookie at ``address``.

    Args:
        data: the bytes found under the cookie's name; None if there are none.

    Raises:
        BookieUnavailableError: names the difference.
    """
    if data is None:
        raise BookieUnavailableError(
            f"{_place(address)} has no cookie",
            hint="mount its disk; if its data is lost, replace the bookie",
        )
    try:
        found = _decode(data)
    except CorruptDataError as error:
        raise BookieUnavailableError(
            f"{_place(address)} has an unreadable cookie: {error.args[0]}",
            hint=error.hint or "check the disk; if its data is lost, replace the bookie",
        ) from error
    if found.cluster_id != address.cluster_id:
        raise BookieUnavailableError(
            f"{_place(address)} belongs to cluster {found.cluster_id}, not {address.cluster_id}",
            hint="check the URL and the metadata store's URL",
        )
    if found.bookie_id != address.bookie_id:
        raise BookieUnavailableError(
            f"{_place(address)} is the storage of bookie {found.bookie_id}",
            hint="check whether disks were swapped, or two bookies have the same place",
        )
    if found.incarnation != address.incarnation:
        raise BookieUnavailableError(
            f"{_place(address)} was initialised again: it is incarnation {found.incarnation}, "
            f"not {address.incarnation}",
            hint="its former data is lost; recover the ledgers that used it",
        )


def group_in(data: bytes | None) -> int | None:
    """The group in a checked cookie; None if a single user owns the bookie."""
    return _decode(data or b"").group


def _place(address: BookieAddress) -> str:
    return f"bookie {address.bookie_id}: {shown_url(address.url)}"


def post_check(bookie: Bookie, journal: Journal, *, fence: str, permission: str) -> bool:
    """Do ``Bookie.post_check`` by a root, for backends where combined look-ups are no faster."""
    with bookie.open_root() as root:
        if not root.has_journal(journal):
            raise BookieUnavailableError(
                f"bookie {bookie.address.bookie_id} does not show the journal "
                "that was written to it"
            )
        return root.size(fence) is None and root.size(permission) is not None
