"""Addresses of storage: one spelling of each, fit for messages, and the form of object stores."""

import os
import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from bkspark.errors import InvalidRequestError
from bkspark.protocol.bookies import STORE_NAME, in_store, require_store_name

# --- shown ---------------------------------------------------------------------------------------
# Addresses fit for messages, and the characters that no address may have.
#
# Rule 1. Text before an "@" may be a password, wherever it is, and so may text after a "?" or "#".
# Addresses here are often malformed, so they are not parsed: too much is hidden rather than too
# little. Only the name of a store is shown, since no other text can be one.
#
# Rule 2. A character that moves the cursor, or reverses a line, is refused in an address. Python's
# parser drops line breaks silently, and would lead to another place.


HIDDEN = "***"
_LENGTH_MAX = 200

_PARTS = re.compile(
    r"(?P<head>(?:[a-z][a-z0-9+.-]*:)?//|)(?:(?P<user>[^?#]*)(?:@|%40))?(?P<place>[^?#]*)(?P<rest>.*)",
    re.DOTALL | re.IGNORECASE,
)
# As ports have digits only, this is a user and a password; "[::1]" is a host.
_USER = re.compile(r"[^/\[]*:(?![0-9]+(?:[,/]|$))[^/]")
_COLON = re.compile(":|%3a", re.IGNORECASE)
_STORE = re.compile(rf"\?store=({STORE_NAME})")
_CONTAINER = re.compile(
    r"abfss?://[a-z0-9](?:-?[a-z0-9]){2,62}@[a-z0-9]{3,24}\.dfs\.[a-z0-9.-]+"
    rf"(?:/[A-Za-z0-9._=+/-]*)?(?:\?store=(?:{STORE_NAME}))?"
)
_UNFIT = ("Cc", "Cs", "Zl", "Zp")
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def shown_url(url: str) -> str:
    """``url`` without user, password, query and fragment, fit for messages and logs."""
    if _CONTAINER.fullmatch(url):  # what is before its "@" is no user
        return url[:_LENGTH_MAX]
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
    if _STORE.fullmatch(rest) and place != HIDDEN:
        shown += rest
    if shown.isprintable():
        return shown
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
    if url.isprintable():  # as nearly all are, and then no character is unfit
        return url
    unfit = next((char for char in url if _is_unfit(char)), "")
    if unfit:
        raise InvalidRequestError(
            f"{shown_url(url)!r} has a control character in it, U+{ord(unfit):04X}",
            hint="name a place without line breaks and escapes",
        )
    return url


def _is_unfit(char: str) -> bool:
    return unicodedata.category(char) in _UNFIT or char in _TURNS


# --- address -------------------------------------------------------------------------------------
# One spelling of each address, by the same rules for metadata stores and bookies.
#
# Rule 1. Blanks and line ends around an address are dropped; a scheme is in small letters. An
# absolute path without a scheme is a directory: ``/data/bk`` is ``file:///data/bk``. A scheme has
# one name: ``s3a`` is ``s3``, and ``az`` and ``abfs`` are ``abfss``.
#
# Rule 2. In the path of a directory ``//``, ``/./`` and a final slash are dropped. ``..`` is
# refused: through a symbolic link it leads to a different place than the path suggests.


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_SAME = {"s3a": "s3", "abfs": "abfss", "az": "abfss"}
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
    scheme = _SAME.get(scheme, scheme)
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


# --- place ---------------------------------------------------------------------------------------
# Addresses in an object store, and no other form of them::
#
#     s3://bucket/prefix
#     gs://bucket/prefix
#     abfss://container@account.dfs.core.windows.net/prefix
#     abfss://container/prefix                               the account is of the environment
#
# The rule: an address names a place, and may name a store: ``s3://bucket/prefix?store=east``. What
# the name means is looked up on each machine (``stores``). Without a name, credentials, the
# endpoint and every other setting come from the cloud's usual environment, for S3 also from
# fsspec's configuration. So no setting appears in an address, in a pickle or in the metadata store.
# Messages show the endpoint's host and port, and no other setting.
#
# A kind is admitted only if it creates an object atomically if absent (``contract``): for most
# protocols fsspec does a look-up and then a write, so two writers can both win.


# Neither "." nor "..", and no hidden part: such names belong to the store, see ``objects``.
_PART = r"[A-Za-z0-9_][A-Za-z0-9._=+-]*"
_BUCKET = {
    "s3": r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
    "gs": r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]",
    "abfss": r"[a-z0-9](?:-?[a-z0-9]){2,62}",
}
_HOST = r"[a-z0-9]{3,24}\.dfs(?:\.[a-z0-9-]+)+"
_URLS = {
    scheme: re.compile(
        rf"{scheme}://({bucket})(?:@({_HOST if scheme == 'abfss' else '(?!)'}))?"
        rf"((?:/{_PART})*)/?(?:{_STORE.pattern})?"
    )
    for scheme, bucket in _BUCKET.items()
}
# The limit of S3, Google and Azure is 1024 bytes; the longest name below a place takes some 150.
_PREFIX_LENGTH_MAX = 512
_OBJECTS = tuple(f"{scheme}://" for scheme in _BUCKET)
_HINTS = {
    "s3": "write s3://bucket/prefix; the endpoint comes from AWS_ENDPOINT_URL, "
    "credentials from the AWS environment, or both from a store: s3://bucket/prefix?store=NAME",
    "gs": "write gs://bucket/prefix; credentials come from Google's environment, or from a store: "
    "gs://bucket/prefix?store=NAME",
    "abfss": "write abfss://container@account.dfs.core.windows.net/prefix; credentials come from "
    "Azure's environment, or from a store: abfss://container/prefix?store=NAME",
}

_NO_HDFS = (
    "HDFS cannot be used: Python's clients neither create a file only if it is absent, nor sync it"
)
_BY_S3 = (
    "write s3://bucket/prefix, and name the server's S3 endpoint by AWS_ENDPOINT_URL or a store"
)
_AS_AZURE = "write abfss://container@account.dfs.core.windows.net/prefix"
_INSTEAD = {
    **dict.fromkeys(("hdfs", "webhdfs", "viewfs"), _NO_HDFS),
    **dict.fromkeys(("http", "https", "minio", "oss", "cosn", "obs"), _BY_S3),
    **dict.fromkeys(("wasb", "wasbs", "adl"), _AS_AZURE),
    "gcs": "write gs://bucket/prefix",
    "s3n": "write s3://bucket/prefix",
    "dbfs": "write the address of the bucket that it stands for",
}
"""What to do about a scheme that people try, where another address or none leads there."""


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """A prefix in a bucket.

    Attributes:
        bucket: of Azure it is a container.
        prefix: without slashes at its ends; "" is the whole bucket.
        store: name of the store; "" for the default of the process.
        host: of the account in Azure, if the address names it.
    """

    bucket: str
    prefix: str
    store: str = ""
    scheme: str = "s3"
    host: str = ""

    @property
    def url(self) -> str:
        bucket = f"{self.bucket}@{self.host}" if self.host else self.bucket
        return in_store(f"{self.scheme}://{bucket}/{self.prefix}".rstrip("/"), self.store)

    def key(self, name: str) -> str:
        """The key of the object called ``name`` here."""
        return f"{self.prefix}/{name}" if self.prefix else name


def parse(url: str) -> BucketPlace:
    """The place named by ``url``.

    Raises:
        InvalidRequestError: no such address, or more than bucket and prefix.
    """
    scheme = url.partition("://")[0]
    scheme = scheme if scheme in _URLS else "s3"
    found = _URLS[scheme].fullmatch(url)
    if found is None or len(found[3]) > _PREFIX_LENGTH_MAX:
        raise InvalidRequestError(
            f"{shown_url(url)!r} does not name a place in an object store", hint=_HINTS[scheme]
        )
    return BucketPlace(found[1], found[3].strip("/"), found[4] or "", scheme, found[2] or "")


def instead_of(scheme: str, supported: str) -> str:
    """The advice for an address of a scheme that is not supported."""
    known = _INSTEAD.get(scheme.lower())
    return known or f"{supported}; a package that adds a scheme must be installed on every machine"


def is_in_object_store(url: str) -> bool:
    """Whether ``url``, in its one spelling, is a place in a bucket."""
    return url.startswith(_OBJECTS)


def with_store(url: str, store: object) -> str:
    """The address ``url``, in one spelling, in a store; ``url`` may name the store itself.

    Raises:
        InvalidRequestError: ``store`` is no name, ``url`` names another store, or is in none.
    """
    url = canonical(url)
    if isinstance(store, str) and not store:
        return url
    try:
        name = require_store_name(store)
    except ValueError as error:
        raise InvalidRequestError(
            str(error),
            hint="a name has small letters, digits, '_' and '-', and begins with a letter",
        ) from None
    if not is_in_object_store(url):
        raise InvalidRequestError(
            f"{shown_url(url)!r} is not in an object store, so it cannot be in store {name}",
            hint="name a store only for s3://, gs:// and abfss://",
        )
    plain, named = split_store(url)
    if named not in ("", name):
        raise InvalidRequestError(
            f"{shown_url(url)} names another store than {name}", hint="name one store"
        )
    return in_store(plain, name)


def is_billed(url: str) -> bool:
    """Whether each look at the place costs a request of an object store."""
    return is_in_object_store(url)


def split_store(url: str) -> tuple[str, str]:
    """The address ``url`` without its store, and the name of the store; "" if it names none."""
    plain, mark, _ = url.partition("?")
    found = _STORE.fullmatch(url[len(plain) :]) if mark and is_in_object_store(url) else None
    return (plain, found[1]) if found else (url, "")
