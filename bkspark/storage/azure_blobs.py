"""Azure Blob Storage, ``abfss://``: ``bkspark.storage.contract`` by Microsoft's client.

An account with a hierarchical namespace (Data Lake Storage) is used by way of its blobs, too.

* A put has the condition ``If-None-Match: *``, or ``If-Match`` with an ETag.
* A large object is a list of blocks. They stay invisible until the list is put, on the condition
  that there is no such blob; the list has the token. Azure removes blocks without a list after a
  week, and knows no request for that.
* A listing cannot begin at a name: names up to it are left out here.

The client sends a request once, with two exceptions that change nothing at the store: an answer to
a read that was cut short is read anew, twice at most, and a request with a token that was refused
is sent again with a new token.

Credentials of the environment are ``AZURE_STORAGE_CONNECTION_STRING``; or the account of the
address, or ``AZURE_STORAGE_ACCOUNT``, with ``AZURE_STORAGE_KEY`` or ``AZURE_STORAGE_SAS_TOKEN``;
or else what ``azure-identity`` finds (a managed identity, a service principal, ``az login``). Those
of a named store are in its ``identity_file``, or else of ``azure-identity``.
"""

import base64
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from bkspark import progress
from bkspark.errors import InvalidRequestError
from bkspark.storage import stores
from bkspark.storage.address import BucketPlace
from bkspark.storage.clients import Clients
from bkspark.storage.connection import (
    NoSuchObject,
    ObjectTaken,
    RangeBehindEnd,
    StoreDoubt,
    in_turn,
    no_answer,
    shown_endpoint,
    size_behind,
    slow_down,
    watch,
)
from bkspark.storage.contract import TOKEN, ListingPage, StoredBytes, body

T = TypeVar("T")

_TOKEN = TOKEN.replace("-", "_")  # a name here is one of C#
_SECONDS = {"connection_timeout": 10, "read_timeout": 60}
_CONNECTIONS_MAX = 32
_IN_ONE_REQUEST = 2**40
_PART_UNIT = 2**18
_CREDENTIALS = (
    "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_KEY, or run `az login`, or give the "
    "store an identity_file"
)
_TAKEN = ("BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet")
_NOT_ACCEPTED = ("AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation")


@dataclass(frozen=True, slots=True)
class AzureClient:
    """The client of an account, and the account's address without what is secret."""

    endpoint: str
    service: Any = field(repr=False)


class AzureObjects:
    """The ``ObjectStore`` of a container of an account. Holds no open resources."""

    def __init__(self, place: BucketPlace) -> None:
        self._store = place.store
        self._host = place.host
        self._container = place.bucket

    def put(self, key: str, data: bytes, *, token: str = "", replaced: str = "") -> str:
        from azure.core import MatchConditions

        condition = (
            {"etag": f'"{replaced}"', "match_condition": MatchConditions.IfNotModified}
            if replaced
            else {}
        )
        answer = self.ask(
            lambda container: container.get_blob_client(key).upload_blob(
                data, overwrite=bool(replaced), metadata=marked(token), **condition
            )
        )
        return _plain(answer["etag"])

    def get(self, key: str, begin: int = 0, end: int | None = None) -> StoredBytes:
        is_whole = begin == 0 and end is None
        length = None if end is None else end - begin
        wanted = {} if is_whole else {"offset": begin, "length": length}

        def read(container: Any) -> tuple[Any, bytes]:
            found = container.get_blob_client(key).download_blob(**wanted)
            return found.properties, found.readall()

        described, data = self.ask(read)
        size = size_behind(str(described.content_range or ""))
        expected = size if is_whole else min(size if end is None else end, size) - begin
        if len(data) != expected:
            raise StoreDoubt("the answer was cut short", is_passing=True)
        token = str((described.metadata or {}).get(_TOKEN, ""))
        return StoredBytes(data, size, token, _plain(described.etag))

    def list_page(self, prefix: str, after: str = "", page: str = "") -> ListingPage:
        def ask(container: Any) -> tuple[list[Any], str]:
            listed = container.walk_blobs(name_starts_with=prefix, delimiter="/")
            pages = listed.by_page(page or None)
            return list(next(pages, ())), str(pages.continuation_token or "")

        found, following = self.ask(ask)
        objects: dict[str, tuple[str, int]] = {}
        folders = []
        for entry in found:
            if entry.name.endswith("/") and not hasattr(entry, "etag"):
                folders.append(str(entry.name))
            elif entry.name > after:
                objects[str(entry.name)] = (_plain(entry.etag), int(entry.size))
        return ListingPage(objects, tuple(folders), following)

    def delete(self, key: str) -> None:
        self.ask(lambda container: container.get_blob_client(key).delete_blob())

    def server(self) -> str:
        try:
            endpoint = _clients.of(self._store, self._host).endpoint
        except StoreDoubt as doubt:
            raise InvalidRequestError(
                f"Azure cannot be used here: {doubt.strerror}", hint=doubt.hint
            ) from None
        return stores.place_of(endpoint) + urlsplit(endpoint).path.rstrip("/")

    def begin(self, key: str, token: str) -> "AzureParts":
        return AzureParts(self, key, token)

    def ask(self, request: Callable[[Any], T]) -> T:
        """Make a request of the container, once."""
        client = _clients.of(self._store, self._host)
        return in_turn(
            *(self._container, f"abfss:{self._store}:{self._host}"),
            lambda: request(client.service.get_container_client(self._container)),
            lambda error: _meaning(error, client),
        )


class AzureParts:
    """``Parts`` as blocks of a blob.

    All blocks of a name have ids of one length; the token keeps those of two clients apart.
    """

    in_turn = False

    def __init__(self, objects: AzureObjects, key: str, token: str) -> None:
        self._objects = objects
        self._key = key
        self._token = token
        self._blocks: dict[int, str] = {}
        self._last: tuple[int, bytes] | None = None

    def send(self, number: int, part: bytes, /) -> None:
        if len(part) % _PART_UNIT:
            # Sent with the end: some servers take a name with a block as taken.
            self._last = (number, part)
            return
        self._blocks[number] = self._stage(number, part)

    def finish(self) -> str:
        from azure.core import MatchConditions

        blocks = [self._blocks[number] for number in sorted(self._blocks)]
        if self._last:
            blocks.append(self._stage(*self._last))
        answer = self._objects.ask(
            lambda container: container.get_blob_client(self._key).commit_block_list(
                blocks, match_condition=MatchConditions.IfMissing, metadata=marked(self._token)
            )
        )
        return _plain(answer["etag"])

    def abandon(self) -> None:
        """Do nothing: the store removes the blocks after a week."""

    def _stage(self, number: int, part: bytes) -> str:
        name = f"{self._token}-{number:08}"
        block = base64.b64encode(name.encode()).decode()
        self._objects.ask(
            lambda container: container.get_blob_client(self._key).stage_block(block, part)
        )
        return block


def marked(token: str) -> dict[str, str] | None:
    """User metadata of an object whose creator is ``token``."""
    return {_TOKEN: token} if token else None


def _plain(etag: object) -> str:
    return str(etag).strip('"')


def _meaning(error: Exception, client: AzureClient) -> StoreDoubt:
    """Translate an exception of Microsoft's client."""
    if isinstance(error, StoreDoubt):
        return error
    status = getattr(error, "status_code", None)
    if not status:
        return _no_answer(error, client)
    given = getattr(error, "error_code", "") or ""
    code = str(getattr(given, "value", given))[:60]
    match status, code:
        case 404, "BlobNotFound":
            return NoSuchObject("the object does not exist")
        case 409 | 412, _ if code in _TAKEN:
            return ObjectTaken("the object exists")
        case 416, _:
            return RangeBehindEnd("the object is shorter than the requested range")
        case 404, _:
            return StoreDoubt(
                f"the container does not exist ({code})",
                hint="make the container first, or check its name and the account",
            )
        case ((401 | 403), _) if code in _NOT_ACCEPTED:
            return StoreDoubt(
                f"the store does not accept the credentials ({code})", hint=_CREDENTIALS
            )
        case ((401 | 403), _):
            return StoreDoubt(
                f"access was refused ({code})",
                hint="give the identity the role Storage Blob Data Contributor",
            )
    asks_for_less = status in (429, 503)
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    after = str(headers.get("Retry-After", ""))
    return StoreDoubt(
        f"the store answered {status} {code}".rstrip(),
        is_passing=status >= 500 or status in (408, 409) or asks_for_less,
        asks_for_less=asks_for_less,
        retry_after=float(after) if after.isdecimal() else 0.0,
        hint=slow_down() if asks_for_less else "",
    )


def _no_answer(error: Exception, client: AzureClient) -> StoreDoubt:
    kind = type(error).__name__
    if kind in ("ClientAuthenticationError", "CredentialUnavailableError"):
        return StoreDoubt(f"there are no valid credentials ({kind})", hint=_CREDENTIALS)
    inner = getattr(error, "inner_exception", None)
    told = inner if isinstance(inner, Exception) else error
    hint = "check that the store runs, and the account or the endpoint_url of the store"
    doubt = no_answer(told, shown_endpoint(client.endpoint), hint)
    # All that the client raises without an answer of the store is of the connection.
    doubt.is_passing = doubt.is_passing or type(error).__module__.startswith("azure.core")
    return doubt


def _connect(store: str, host: str) -> AzureClient:
    try:
        import requests
        from azure.core.pipeline.transport import RequestsTransport
        from azure.storage.blob import BlobServiceClient
    except ImportError as error:
        raise InvalidRequestError(
            "abfss:// needs the package azure-storage-blob, which is not installed here",
            hint="pip install 'bkspark[azure]', on the driver and on every worker",
        ) from error
    watch()
    endpoint, credential, ca_file = _account_of(store, host)
    session = requests.Session()
    adapter = requests.adapters.HTTPAdapter(pool_maxsize=_CONNECTIONS_MAX, max_retries=0)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    session.auth = _with_reports  # without one a file .netrc would replace the credentials
    session.hooks["response"].append(_reported)
    service = BlobServiceClient(
        endpoint,
        credential=credential,
        transport=RequestsTransport(session=session, session_owner=False, **_SECONDS),
        retry_total=0,
        permit_redirects=False,
        max_single_put_size=_IN_ONE_REQUEST,
        max_single_get_size=_IN_ONE_REQUEST,
        **({"connection_verify": ca_file} if ca_file else {}),
    )
    watch()
    return AzureClient(endpoint, service)


def _account_of(store: str, host: str) -> tuple[str, Any, str]:
    """Endpoint, credential and file of certificates for a store or a host."""
    if store:
        try:
            found = stores.find(store)
        except InvalidRequestError as error:
            raise StoreDoubt(str(error.args[0]), hint=error.hint) from error
        secret = Path(found.identity_file).read_text("utf-8") if found.identity_file else ""
        given = _parsed(secret.strip())
        named, endpoint, ca_file = found.account, found.endpoint_url, found.ca_file
    else:
        given = _parsed(os.environ.get("AZURE_STORAGE_CONNECTION_STRING", ""))
        given = given or {
            "AccountKey": os.environ.get("AZURE_STORAGE_KEY", ""),
            "SharedAccessSignature": os.environ.get("AZURE_STORAGE_SAS_TOKEN", ""),
        }
        named, endpoint, ca_file = os.environ.get("AZURE_STORAGE_ACCOUNT", ""), "", ""
    account = host.partition(".")[0] or given.get("AccountName", "") or named
    if given.get("AccountName", account) != account:
        given = {}  # of another account
    endpoint = endpoint or given.get("BlobEndpoint", "")
    if not endpoint and not account:
        raise StoreDoubt(
            "the account is not known", hint=f"name it in the address, or {_CREDENTIALS}"
        )
    suffix = host.partition(".dfs.")[2] or given.get("EndpointSuffix", "") or "core.windows.net"
    endpoint = (endpoint or f"https://{account}.blob.{suffix}").rstrip("/")
    return endpoint, _credential(account, given), ca_file


def _parsed(text: str) -> dict[str, str]:
    """The parts of a connection string, of a shared access signature, or of a key alone."""
    if not text:
        return {}
    if "sig=" in text and ";" not in text:
        return {"SharedAccessSignature": text.removeprefix("?")}
    if ";" not in text:
        return {"AccountKey": text}
    return dict(part.split("=", 1) for part in text.split(";") if "=" in part)


def _credential(account: str, given: dict[str, str]) -> Any:
    from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

    if given.get("AccountKey"):
        return AzureNamedKeyCredential(account, given["AccountKey"])
    if given.get("SharedAccessSignature"):
        return AzureSasCredential(given["SharedAccessSignature"].removeprefix("?"))
    try:
        from azure.identity import DefaultAzureCredential
    except ImportError as error:
        raise InvalidRequestError(
            "abfss:// without a key needs the package azure-identity, which is not installed here",
            hint="pip install 'bkspark[azure]', on the driver and on every worker",
        ) from error
    return DefaultAzureCredential()


def _with_reports(request: Any) -> Any:
    """Let the sending of a large body report progress."""
    if isinstance(request.body, bytes):
        request.body = body(request.body)
    return request


def _reported(response: Any, **_: Any) -> None:
    """Let the reading of a body report progress."""
    stream = response.raw.stream

    def reported(*given: Any, **options: Any) -> Iterator[bytes]:
        for piece in stream(*given, **options):
            progress.made()
            yield piece

    response.raw.stream = reported


_clients = Clients(_connect)
