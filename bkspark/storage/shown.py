"""Addresses fit for messages, and the characters that no address may have.

Rule 1. Text before an "@" may be a password, wherever it is, and so may text after a "?" or "#".
Addresses here are often malformed, so they are not parsed: too much is hidden rather than too
little.

Rule 2. A character that moves the cursor, or reverses a line, is refused in an address. Python's
parser drops line breaks silently, and would lead to another place.
"""

import re
import unicodedata

from bkspark.errors import InvalidRequestError

HIDDEN = "***"
_LENGTH_MAX = 200

_PARTS = re.compile(
    r"(?P<head>(?:[a-z][a-z0-9+.-]*:)?//|)(?:(?P<user>[^?#]*)(?:@|%40))?(?P<place>[^?#]*)(?P<rest>.*)",
    re.DOTALL | re.IGNORECASE,
)
# As ports have digits only, this is a user and a password; "[::1]" is a host.
_USER = re.compile(r"[^/\[]*:(?![0-9]+(?:[,/]|$))[^/]")
_COLON = re.compile(":|%3a", re.IGNORECASE)
_UNFIT = ("Cc", "Cs", "Zl", "Zp")
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def shown_url(url: str) -> str:
    """``url`` without user, password, query and fragment, fit for messages and logs."""
    found = _PARTS.fullmatch(url)
    assert found is not None  # the pattern matches any text
    head, user, place, rest = found["head"], found["user"], found["place"], found["rest"]
    is_path = head.lower() in ("file://", "") and (user or place).startswith("/")
    if user is not None and is_path and not _COLON.search(user):
        place = url[len(head) : len(url) - len(rest)]
    elif user is not None:
        place = f"{HIDDEN}@{place}"
    elif _may_be_user(place, rest, is_path=is_path, has_host=bool(head)):
        place = HIDDEN
    shown = (head + place)[:_LENGTH_MAX]
    return "".join("\N{REPLACEMENT CHARACTER}" if _is_unfit(char) else char for char in shown)


def _may_be_user(place: str, rest: str, *, is_path: bool, has_host: bool) -> bool:
    """Whether a "?" or "#" has cut a password in two, or a password stands without a host."""
    if "@" in rest and (_COLON.search(place) or not is_path):
        return True
    return has_host and not is_path and _USER.match(place) is not None


def require_fit(url: str) -> str:
    """Return ``url``, if it can be shown and parsed.

    Raises:
        InvalidRequestError: a control character, or a character that turns the text's direction.
    """
    unfit = next((char for char in url if _is_unfit(char)), "")
    if unfit:
        raise InvalidRequestError(
            f"{shown_url(url)!r} has a control character in it, U+{ord(unfit):04X}",
            hint="name a place without line breaks and escapes",
        )
    return url


def _is_unfit(char: str) -> bool:
    return unicodedata.category(char) in _UNFIT or char in _TURNS
