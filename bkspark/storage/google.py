"""Google Cloud Storage, ``gs://``: ``bkspark.storage.contract`` by requests of its own API.

An ETag here is the *generation* of an object: the store gives each state of an object another
number, and compares it itself (``ifGenerationMatch``). Generation 0 means that there is no object.

* A look is a request of the XML API. Its answer has the contents, the token and the generation, and
  a missing object and a missing bucket have different codes. A server that gives no code is asked
  with a listing, which shows the object, or its absence, or the absence of the bucket.
* A put is an upload of the JSON API in one request, with a checksum that the store compares.
* A large object is a resumable upload. The store compares the generation at the end, which makes
  the object. Its address has a secret in it.

Credentials are those of the environment, as Google's own tools find them (application default
credentials), or those of the file that a named store gives. ``STORAGE_EMULATOR_HOST`` names another
server, which is asked without credentials.
"""

import base64
import json
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import fastcrc

from bkspark import environment, progress
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
    without_details,
)
from bkspark.storage.contract import TOKEN, ListingPage, StoredBytes, body

ENDPOINT = "https://storage.googleapis.com"
EMULATOR = "STORAGE_EMULATOR_HOST"
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_SECONDS = (10, 60)
"""For a connection, and for an answer or the next piece of it."""
_CONNECTIONS_MAX = 32
_READ_BYTES = 2**20
_PART_UNIT = 2**18
_CREDENTIALS = (
    "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to the "
    "file of a service account"
)
_CODE = re.compile(rb"<Code>(\w{1,60})</Code>")


@dataclass(frozen=True, slots=True)
class GoogleClient:
    """A session with its credentials, and the address of the server."""

    endpoint: str
    session: Any = field(repr=False)
    ca_file: str = ""


@dataclass(frozen=True, slots=True)
class GoogleAnswer:
    """An answer of the server, read to its end."""

    status: int
    headers: Mapping[str, str]
    data: bytes = field(repr=False)

    def json(self) -> dict[str, Any]:
        try:
            found = json.loads(self.data)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise StoreDoubt("the store gave an answer that is not understood")
        return found

    @property
    def code(self) -> str:
        """The store's word for the error; "" if it has none."""
        found = _CODE.search(self.data)
        if found:
            return found[1].decode()
        try:
            return str(json.loads(self.data)["error"]["errors"][0]["reason"])[:60]
        except (ValueError, LookupError, TypeError):
            return ""


class GoogleObjects:
    """The ``ObjectStore`` of a bucket of Google Cloud Storage. Holds no open resources."""

    def __init__(self, place: BucketPlace) -> None:
        self._store = place.store
        self._bucket = place.bucket

    def put(self, key: str, data: bytes, *, token: str = "", replaced: str = "") -> str:
        checksum = fastcrc.crc32.iscsi(data).to_bytes(4, "big")
        described = _described(key, token) | {"crc32c": base64.b64encode(checksum).decode()}
        mark = environment.token().encode()
        head = b"--%s\r\nContent-Type: application/json\r\n\r\n%s\r\n" % (
            mark,
            json.dumps(described).encode(),
        )
        begin = b"--%s\r\nContent-Type: application/octet-stream\r\n\r\n" % mark
        answer = self._send(
            "POST",
            self._uploads,
            {"uploadType": "multipart", "ifGenerationMatch": replaced or "0"},
            data=b"".join((head, begin, data, b"\r\n--%s--" % mark)),
            headers={"Content-Type": f"multipart/related; boundary={mark.decode()}"},
        )
        self._require(answer, 200)
        return _generation(answer.json())

    def get(self, key: str, begin: int = 0, end: int | None = None) -> StoredBytes:
        is_whole = begin == 0 and end is None
        header = {} if is_whole else {"Range": f"bytes={begin}-{'' if end is None else end - 1}"}
        answer = self._send("GET", self._object(key), headers=header)
        self._require_object(key, answer, 200, 206)
        token, generation = (
            answer.headers.get(name, "") for name in (f"x-goog-meta-{TOKEN}", "x-goog-generation")
        )
        if not generation.isdecimal():
            raise StoreDoubt("the store did not tell the generation of an object")
        size = len(answer.data)
        if not is_whole:
            size = size_behind(answer.headers.get("Content-Range", ""))
        return StoredBytes(answer.data, size, token, generation)

    def list_page(self, prefix: str, after: str = "", page: str = "") -> ListingPage:
        wanted = {
            "prefix": prefix,
            "delimiter": "/",
            "fields": "items(name,generation,size),prefixes,nextPageToken",
        }
        # An object of that very name comes first, and is left out below.
        wanted |= {"startOffset": after} if after else {}
        wanted |= {"pageToken": page} if page else {}
        answer = self._send("GET", f"/storage/v1/b/{self._bucket}/o", wanted)
        self._require(answer, 200)
        found = answer.json()
        objects = {
            str(entry["name"]): (_generation(entry), int(entry["size"]))
            for entry in found.get("items", ())
            if entry["name"] != after
        }
        return ListingPage(
            objects, tuple(found.get("prefixes", ())), found.get("nextPageToken", "")
        )

    def delete(self, key: str) -> None:
        self._require_object(key, self._send("DELETE", self._object(key)), 200, 204)

    def server(self) -> str:
        try:
            return stores.place_of(_clients.of(self._store).endpoint)
        except StoreDoubt as doubt:
            raise InvalidRequestError(
                f"Google Cloud Storage cannot be used here: {doubt.strerror}", hint=doubt.hint
            ) from None

    def begin(self, key: str, token: str) -> "GoogleParts":
        answer = self._send(
            "POST",
            self._uploads,
            {"uploadType": "resumable", "name": key, "ifGenerationMatch": "0"},
            data=json.dumps(_described(key, token)).encode(),
            headers={"Content-Type": "application/json"},
        )
        if answer.status == 412:  # known early, and said at the end, as by other stores
            return GoogleParts(self, "")
        self._require(answer, 200, 201)
        return GoogleParts(self, str(answer.headers.get("Location", "")))

    def send_part(self, address: str, data: bytes, content_range: str) -> GoogleAnswer:
        """Send a part to the address of a resumable upload."""
        return self._send("PUT", address, data=data, headers={"Content-Range": content_range})

    def abandon(self, address: str) -> None:
        # The store's address of an upload repeats the condition, which a removal does not know.
        self._send("DELETE", address.replace("&ifGenerationMatch=0", ""))

    @property
    def _uploads(self) -> str:
        return f"/upload/storage/v1/b/{self._bucket}/o"

    def _object(self, key: str) -> str:
        return f"/{self._bucket}/{quote(key)}"

    def _require_object(self, key: str, answer: GoogleAnswer, *expected: int) -> None:
        if answer.status == 404 and answer.code != "NoSuchBucket":
            if answer.code == "NoSuchKey" or self._is_unlisted(key):
                raise NoSuchObject("the object does not exist")
            raise StoreDoubt("the object came while it was looked for", is_passing=True)
        self._require(answer, *expected)

    def _is_unlisted(self, key: str) -> bool:
        """Whether a listing of the bucket, which sees each object at once, has no such key."""
        wanted = {"prefix": key, "maxResults": "1", "fields": "items(name)"}
        answer = self._send("GET", f"/storage/v1/b/{self._bucket}/o", wanted)
        self._require(answer, 200)
        # A key comes before all others that begin with it.
        return all(entry.get("name") != key for entry in answer.json().get("items", ()))

    def _require(self, answer: GoogleAnswer, *expected: int) -> None:
        if answer.status not in expected:
            raise _meaning(answer, self._store)

    def _send(
        self,
        method: str,
        address: str,
        wanted: Mapping[str, str] | None = None,
        *,
        data: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> GoogleAnswer:
        """Send a request once, and read the answer to its end."""
        client = _clients.of(self._store)

        def ask() -> GoogleAnswer:
            answer = _ask(client, method, address, wanted, data, headers or {})
            if _asks_for_less(answer):  # which no request expects
                raise _meaning(answer, self._store)
            return answer

        return in_turn(
            *(self._bucket, f"gs:{self._store}"), ask, lambda error: _no_answer(error, client)
        )


class GoogleParts:
    """``Parts`` of a resumable upload, which the store forgets after a week.

    Args:
        address: of the upload, a secret; "" if the name is taken.
    """

    in_turn = True

    def __init__(self, objects: GoogleObjects, address: str) -> None:
        self._objects = objects
        self._address = address
        self._sent = 0
        self._last = b""

    def send(self, _number: int, part: bytes, /) -> None:
        if self._last:
            raise InvalidRequestError("a part came after the last one")
        if not self._address:
            return
        if len(part) % _PART_UNIT:
            self._last = part  # goes with the end
            return
        end = self._sent + len(part)
        answer = self._objects.send_part(self._address, part, f"bytes {self._sent}-{end - 1}/*")
        # Sent again from its beginning, a part completes itself: what the store has it leaves out.
        if answer.status == 308 and answer.headers.get("Range") != f"bytes=0-{end - 1}":
            raise StoreDoubt("the store took only some bytes of a part", is_passing=True)
        self._objects._require(answer, 308)
        self._sent = end

    def finish(self) -> str:
        if not self._address:
            raise ObjectTaken("the object exists")
        size = self._sent + len(self._last)
        span = f"{self._sent}-{size - 1}" if self._last else "*"
        answer = self._objects.send_part(self._address, self._last, f"bytes {span}/{size}")
        self._objects._require(answer, 200, 201)
        made = answer.json()
        if str(made.get("size")) != str(size):
            raise StoreDoubt("the store made an object of another size")
        return _generation(made)

    def abandon(self) -> None:
        if self._address:
            self._objects.abandon(self._address)


def _ask(
    client: GoogleClient,
    method: str,
    address: str,
    wanted: Mapping[str, str] | None,
    data: bytes,
    headers: Mapping[str, str],
) -> GoogleAnswer:
    with client.session.request(
        method,
        address if address.startswith("http") else client.endpoint + address,
        params=wanted,
        data=body(data),
        headers={"Accept-Encoding": "identity", **headers},
        timeout=_SECONDS,
        verify=client.ca_file or None,
        allow_redirects=False,
        stream=True,
    ) as answer:
        pieces = []
        for piece in answer.raw.stream(_READ_BYTES, decode_content=False):
            progress.made()
            pieces.append(piece)
        found = b"".join(pieces)
        length = answer.headers.get("Content-Length")
        if length is not None and len(found) != int(length):
            raise StoreDoubt("the answer was cut short", is_passing=True)
        return GoogleAnswer(answer.status_code, answer.headers, found)


def _described(key: str, token: str) -> dict[str, Any]:
    return {"name": key, **({"metadata": {TOKEN: token}} if token else {})}


def _generation(described: Mapping[str, Any]) -> str:
    found = str(described.get("generation", ""))
    if not found.isdecimal():
        raise StoreDoubt("the store did not tell the generation of an object")
    return found


def _asks_for_less(answer: GoogleAnswer) -> bool:
    return answer.status in (429, 503)


def _meaning(answer: GoogleAnswer, store: str) -> StoreDoubt:
    """What an answer means that a request did not expect."""
    code = answer.code
    where = f"endpoint_url of store {store}" if store else EMULATOR
    identity = f"the identity_file of store {store}" if store else "the credentials"
    match answer.status:
        case 412:
            return ObjectTaken("the object exists")
        case 416:
            return RangeBehindEnd("the object is shorter than the requested range")
        case 401:
            return StoreDoubt(
                f"the store does not accept the credentials ({code})", hint=_CREDENTIALS
            )
        case 403:
            return StoreDoubt(
                f"access was refused ({code})",
                hint=f"give {identity} the role Storage Object User (roles/storage.objectUser)",
            )
        case 404:
            return StoreDoubt(
                f"the bucket does not exist, or an upload is gone (404 {code})".replace(" )", ")"),
                hint=f"make the bucket first, or check its name and {where}",
            )
    asks_for_less = _asks_for_less(answer)
    after = answer.headers.get("Retry-After", "")
    return StoreDoubt(
        f"the store answered {answer.status} {code}".rstrip(),
        is_passing=answer.status >= 500 or answer.status in (408, 409) or asks_for_less,
        asks_for_less=asks_for_less,
        retry_after=float(after) if after.isdecimal() else 0.0,
        hint=slow_down() if asks_for_less else "",
    )


def _no_answer(error: Exception, client: GoogleClient) -> StoreDoubt:
    if isinstance(error, StoreDoubt):
        return error
    if type(error).__module__.startswith("google.auth"):
        return StoreDoubt(
            f"there are no valid credentials ({type(error).__name__})",
            is_passing=bool(getattr(error, "retryable", False)),
            hint=_CREDENTIALS,
        )
    hint = f"check that the store runs, and {EMULATOR} or the endpoint_url of the store"
    return no_answer(error, shown_endpoint(client.endpoint), hint)


def _connect(store: str, _account: str) -> GoogleClient:
    found = _named(store)
    emulator = os.environ.get(EMULATOR, "")
    if emulator and "://" not in emulator:
        emulator = f"http://{emulator}"
    endpoint = found.endpoint_url or (emulator if not store else "") or ENDPOINT
    try:
        from google.auth.transport.requests import AuthorizedSession
        from requests.adapters import HTTPAdapter
    except ImportError as error:
        raise InvalidRequestError(
            "gs:// needs the packages google-auth and requests, which are not installed here",
            hint="pip install 'bkspark[gcs]', on the driver and on every worker",
        ) from error
    watch()
    # A refused request is not sent again with a new token: its caller repeats it, or does not.
    session = AuthorizedSession(_credentials(found, emulator), refresh_status_codes=())
    adapter = HTTPAdapter(pool_maxsize=_CONNECTIONS_MAX, max_retries=0)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    session.auth = _as_it_is  # else a file .netrc would replace the credentials
    watch()
    return GoogleClient(endpoint.rstrip("/"), session, found.ca_file)


def _named(store: str) -> stores.Store:
    if not store:
        return stores.Store()
    try:
        return stores.find(store)
    except InvalidRequestError as error:
        raise StoreDoubt(str(error.args[0]), hint=error.hint) from error


def _credentials(found: stores.Store, emulator: str) -> Any:
    import google.auth
    from google.auth.credentials import AnonymousCredentials

    try:
        with warnings.catch_warnings(), without_details():
            warnings.simplefilter("ignore")  # how a file is best read is the operator's choice
            if found.identity_file:
                return google.auth.load_credentials_from_file(found.identity_file, [_SCOPE])[0]
            if emulator:
                return AnonymousCredentials()
            return google.auth.default([_SCOPE])[0]
    except Exception as error:
        raise StoreDoubt(
            f"there are no credentials ({type(error).__name__})", hint=_CREDENTIALS
        ) from None


def _as_it_is(request: Any) -> Any:
    return request


_clients = Clients(_connect)
