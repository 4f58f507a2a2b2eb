"""Object stores by name: what a name means on this machine, from the file of ``BKSPARK_STORES``.

A bookie's record names its store, and so may the address of a metadata store. So one process can
use several servers, accounts and regions, and no address of a server is stored in a cluster. The
file is in TOML, and each table of it is a store::

    [east]
    endpoint_url = "https://s3.east.example:9000"
    region = "us-east-1"
    addressing_style = "path"
    ca_file = "east-ca.pem"
    profile = "east"

The rule: **the file has no secrets.** Credentials come from the profile of that name in the files
of AWS, from the file named ``identity_file`` for Google and Azure, or else from the environment.
"""

import os
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bkspark.errors import InvalidRequestError
from bkspark.protocol.bookies import require_store_name

VARIABLE = "BKSPARK_STORES"

_STYLES = ("auto", "path", "virtual")
_SECRET = re.compile("secret|password|passwd|token|key|credential", re.IGNORECASE)
_TEXT_LENGTH_MAX = 1000
_AWS = re.compile(r"(?:.*\.)?amazonaws\.com(\.cn)?")
_USUAL_PORTS = (None, 80, 443)


@dataclass(frozen=True, slots=True)
class Store:
    """What the name of a store means; an empty text leaves the default.

    Attributes:
        endpoint_url: of its server; AWS by default, whatever ``AWS_ENDPOINT_URL`` is.
        addressing_style: where a request names the bucket: ``path``, ``virtual`` or ``auto``.
        ca_file: certificates of the authorities that the server's certificate is checked against; a
            relative path begins at the folder of the file of stores.
        profile: name of the AWS profile with the credentials.
        account: of Azure.
        identity_file: has the credentials of ``gs://`` (a file of Google, in JSON) or of Azure (a
            connection string, a key of the account, or a shared access signature, in one line); a
            relative path begins at the folder of the file of stores.
    """

    endpoint_url: str = ""
    region: str = ""
    addressing_style: str = ""
    ca_file: str = ""
    profile: str = ""
    account: str = ""
    identity_file: str = ""


_SETTINGS = tuple(one.name for one in fields(Store))


def find(name: str) -> Store:
    """Return what ``name`` means on this machine.

    Raises:
        InvalidRequestError: there is no such store here, or the file cannot be used.
    """
    path = os.environ.get(VARIABLE, "")
    if not path:
        raise InvalidRequestError(
            f"store {name} is not known on this machine: {VARIABLE} is not set",
            hint=f"set {VARIABLE} to a TOML file with a table [{name}], here and on every worker",
        )
    found = read(path)
    if name not in found:
        raise InvalidRequestError(
            f"store {name} is not known on this machine: {path} has no table [{name}]",
            hint=f"add the table, here and on every worker; {_known(found)}",
        )
    return found[name]


def read(path: str) -> dict[str, Store]:
    """Return all stores of the file at ``path``, by name.

    Raises:
        InvalidRequestError: the file cannot be read, or has a mistake.
    """
    import tomllib  # most processes read no such file

    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidRequestError(
            f"the file of stores {path} cannot be read: {error.strerror or type(error).__name__}",
            hint=f"let {VARIABLE} name a file that this user can read",
        ) from error
    except ValueError as error:  # also bytes that are not UTF-8
        reason = " ".join(str(error).split())[:200]
        raise InvalidRequestError(
            f"the file of stores {path} is not TOML: {reason}",
            hint='write a table [name] for each store, and settings as name = "text"',
        ) from None
    return {name: _store(path, name, table) for name, table in tables.items()}


def place_of(endpoint_url: str) -> str:
    """Return host and port of an endpoint, in one spelling; "" for AWS.

    The names of buckets are unique in AWS, whatever the region and its endpoint.
    """
    parts = urlsplit(endpoint_url)
    host = (parts.hostname or "").rstrip(".")
    aws = _AWS.fullmatch(host)
    if aws:
        return "amazonaws.com.cn" if aws[1] else ""
    shown = f"[{host}]" if ":" in host else host
    return shown if parts.port in _USUAL_PORTS else f"{shown}:{parts.port}"


def _store(path: str, name: str, table: object) -> Store:
    try:
        require_store_name(name)
    except ValueError as error:
        raise InvalidRequestError(
            f"the file of stores {path}: {error}",
            hint="a name has small letters, digits, '_' and '-', and begins with a letter",
        ) from None
    if not isinstance(table, dict):
        raise InvalidRequestError(
            f"the file of stores {path}: {name} is not a table",
            hint=f"write [{name}] in a line of its own, and the settings of the store below",
        )
    for setting in table:
        _require_setting(path, name, setting)
    texts = {setting: _text(path, name, setting, value) for setting, value in table.items()}
    found = Store(**texts)
    _require_endpoint(path, name, found.endpoint_url)
    if found.addressing_style not in ("", *_STYLES):
        raise _mistake(path, name, "addressing_style", f"is not one of {', '.join(_STYLES)}")
    files = {
        setting: _readable(path, name, setting, texts[setting])
        for setting in ("ca_file", "identity_file")
        if setting in texts
    }
    return Store(**texts | files)


def _require_setting(path: str, name: str, setting: str) -> None:
    if setting in _SETTINGS:
        return
    if _SECRET.search(setting):
        raise InvalidRequestError(
            f"the file of stores {path}: store {name} has the secret {setting:.60}",
            hint='remove it; give the name of an AWS profile, profile = "NAME", or of a file with '
            'the credentials of Google or Azure, identity_file = "FILE"',
        )
    raise InvalidRequestError(
        f"the file of stores {path}: store {name} has the unknown setting {setting!r:.60}",
        hint=f"use {', '.join(_SETTINGS)}",
    )


def _text(path: str, name: str, setting: str, value: Any) -> str:
    is_text = isinstance(value, str) and 0 < len(value) <= _TEXT_LENGTH_MAX
    if not is_text or not value.isprintable():
        raise _mistake(path, name, setting, "is not a text in one line")
    return str(value)


def _require_endpoint(path: str, name: str, url: str) -> None:
    if not url:
        return
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise _mistake(path, name, "endpoint_url", "is not http://HOST:PORT or https://HOST:PORT")
    if "@" in url or parts.query or parts.fragment:
        raise _mistake(path, name, "endpoint_url", "has a secret in it, or a query")


def _readable(path: str, name: str, setting: str, given: str) -> str:
    file = Path(path).absolute().parent / given
    try:
        file.open("rb").close()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise _mistake(path, name, setting, f"cannot be read: {reason}") from error
    return str(file)


def _mistake(path: str, name: str, setting: str, problem: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the file of stores {path}: {setting} of store {name} {problem}",
        hint="correct it there; the page Storage of the documentation says what each setting takes",
    )


def _known(found: dict[str, Store]) -> str:
    return f"it has {', '.join(sorted(found))}" if found else "it has no store"
