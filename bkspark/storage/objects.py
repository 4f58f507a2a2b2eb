"""Write-once objects under a place of an object store, also large ones sent in parts."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from bkspark import environment
from bkspark.errors import InvalidRequestError
from bkspark.storage.address import BucketPlace
from bkspark.storage.connection import (
    NoSuchObject,
    ObjectTaken,
    RangeBehindEnd,
    StoreDoubt,
    repeated,
)
from bkspark.storage.contract import ObjectStore, Parts
from bkspark.storage.kinds import open_objects

# --- objects -------------------------------------------------------------------------------------
# Write-once objects under a place of an object store.
#
# The rule: **an object is created if absent, by one request, and is recognised by its token.**
# Every create stores 128 random bits in the object's user metadata. A create answered "taken", or
# not answered, reads the present object. With its own token the object is its own, whatever
# happened to the answers. With another token the create has lost, and no request still under way
# can change that. Bytes would not tell: two clients may well write the same.
#
# Every object holds at least one byte, because tools take empty objects for folders, and s3fs
# overwrites instead of creating when given no data. Empty contents are stored as the *sentinel*
# ``EMPTY``, and come back empty. A sentinel is 16 bytes with a beginning that no other content of
# bkspark has, and stands for a state that bytes do not express; contents that look like a sentinel
# are refused. All other contents are stored unchanged, so any Arrow tool opens an entry log in a
# bucket.
#
# Names that begin with a dot belong to this layer and its users: no contract allows them.


SENTINEL_BYTES = 16
_SIGN_BEGIN = b"\0bkspark "


def make_sentinel(word: str) -> bytes:
    """The sentinel for ``word``, of up to seven letters."""
    return _SIGN_BEGIN + word.encode().ljust(SENTINEL_BYTES - len(_SIGN_BEGIN))


EMPTY = make_sentinel("empty")


@dataclass(frozen=True, slots=True)
class Created:
    """The identity of an object just created."""

    token: str
    etag: str


@dataclass(frozen=True, slots=True)
class Found:
    """An object, or a range of its contents.

    Attributes:
        size: of the whole contents.
        token: of the object's creator; "" if bkspark did not make the object.
        sentinel: the stored bytes of a sentinel; "" for any other object.
    """

    data: bytes
    size: int
    token: str
    etag: str
    sentinel: bytes = b""

    def is_by(self, created: Created | None) -> bool:
        """Whether this is the very object that ``created`` describes."""
        return created is not None and (self.token, self.etag) == (created.token, created.etag)


class Objects:
    """The objects under ``place``. Holds no open resources; any number may exist."""

    def __init__(self, place: BucketPlace) -> None:
        self.place = place
        self.store: ObjectStore = open_objects(place)

    def create(self, name: str, data: bytes, *, once: bool = False) -> Created | None:
        """Make an object if there is none of that name, durable on return.

        Args:
            once: send exactly one request (R19). If the request failed and no object is there, the
                outcome is in doubt: the request may still be on its way.

        Returns:
            None if another creator's object is there.

        Raises:
            StoreDoubt: the object may be there now, or later.
        """
        return self._create(name, _plain(data) if data else EMPTY, once=once)

    def create_sentinel(self, name: str, sentinel: bytes, *, once: bool = False) -> Created | None:
        """Make a sentinel; otherwise like ``create``."""
        return self._create(name, sentinel, once=once)

    def put_if(self, name: str, data: bytes, etag: str) -> str | None:
        """Put an object in place of the one with ``etag``, or if ``etag`` is empty of none.

        ``data`` must never have been stored under the name before, so an ETag never comes back.

        Returns:
            The ETag of the new object. None if the condition certainly did not hold, and ``data``
            was not stored.

        Raises:
            StoreDoubt: the object may be there now, or later.
        """
        sent = 0

        def put() -> str:
            nonlocal sent
            sent += 1
            return self.store.put(self.place.key(name), data, replaced=etag)

        try:
            return repeated(put)
        except ObjectTaken as taken:
            if sent > 1:  # the condition may have been ended by an earlier request of this call
                raise StoreDoubt("the object was put after a request without an answer") from taken
            return None

    def own(self, name: str, token: str, doubt: StoreDoubt | None = None) -> Created | None:
        """The object ``name`` if created with ``token``; None for any other token.

        Raises:
            StoreDoubt: the object is absent, or the store does not tell; ``doubt`` if given.
        """
        try:
            found = self.look(name)
        except StoreDoubt as second:
            raise doubt or second from None
        if found is None:
            raise doubt or StoreDoubt("the name was taken, and is free again")
        return Created(token, found.etag) if found.token == token else None

    def look(self, name: str) -> Found | None:
        """The object's size and first byte; None if there is none.

        A GET, since the answer to a HEAD does not tell a missing object from a missing bucket.
        """
        return self.read(name, 0, 1)

    def read(self, name: str, begin: int = 0, length: int | None = None) -> Found | None:
        """``length`` bytes from ``begin`` on, fewer at the end; None if certainly absent."""
        if begin == 0 and length is None:
            return self._read_whole(name)
        # A range cannot be empty, and one from the start has room for a sentinel; extra bytes are
        # cut off again.
        least = 1 if begin else SENTINEL_BYTES
        end = None if length is None else begin + max(length, least)
        try:
            found = self._get(name, begin, end)
        except RangeBehindEnd:
            if begin == 0:
                # An object without a single byte was not made by bkspark.
                return Found(b"", 0, "", "")
            found = self.look(name)
            return found and replace(found, data=b"")
        if found is not None and found.size == SENTINEL_BYTES:
            # Only the complete bytes tell whether this is a sentinel.
            found = self._read_whole(name) if begin else _understood(found)
            return found and replace(found, data=found.data[begin:][:length])
        return found and replace(found, data=found.data[:length])

    def entries(self, folder: str) -> dict[str, str]:
        """Names right under ``folder`` with their ETags; folders end in "/". "" is the place."""
        return {name: etag for name, (etag, _) in self.listed(folder).items()}

    def stored_sizes(self, folder: str, after: str = "") -> dict[str, int]:
        """Objects right under ``folder`` with their stored sizes; 16 bytes may be a sentinel.

        Args:
            after: names up to this one are left out.
        """
        listed = self.listed(folder, after)
        return {name: size for name, (_, size) in listed.items() if name[-1] != "/"}

    def listed(self, folder: str, after: str = "") -> dict[str, tuple[str, int]]:
        """The names of ``entries`` with ETags and stored sizes."""
        prefix = self.place.key(f"{folder}/" if folder else "")
        first = prefix + after if after else ""
        found: dict[str, tuple[str, int]] = {}
        after_page = ""
        while True:
            page = repeated(partial(self.store.list_page, prefix, first, after_page))
            found |= {key.removeprefix(prefix): seen for key, seen in page.objects.items()}
            found |= {folder.removeprefix(prefix): ("", 0) for folder in page.folders}
            after_page = page.next
            if not after_page:
                # Some consoles make an object for the folder itself.
                found.pop("", None)
                return found

    def delete(self, name: str) -> None:
        """Remove an object, which may be gone already: not every store reports a missing object."""
        with suppress(NoSuchObject):
            repeated(lambda: self.store.delete(self.place.key(name)))

    def _create(self, name: str, body: bytes, *, once: bool) -> Created | None:
        token = environment.token()

        def put() -> Created:
            return Created(token, self.store.put(self.place.key(name), body, token=token))

        try:
            # The same bytes and token each time, so a repeated create cannot succeed twice while
            # the object is there.
            return put() if once else repeated(put)
        except ObjectTaken:
            return self.own(name, token)
        except StoreDoubt as doubt:
            return self.own(name, token, doubt)

    def _read_whole(self, name: str) -> Found | None:
        found = self._get(name)
        return found and _understood(found)

    def _get(self, name: str, begin: int = 0, end: int | None = None) -> Found | None:
        try:
            found = repeated(lambda: self.store.get(self.place.key(name), begin, end))
        except NoSuchObject:
            return None
        return Found(found.data, found.size, found.token, found.etag)


def _understood(found: Found) -> Found:
    """Return an object that was read as a whole, as what its bytes stand for."""
    if not _is_sign(found.data):
        return found
    is_empty = found.data == EMPTY
    return replace(
        found,
        data=b"" if is_empty else found.data,
        size=0 if is_empty else found.size,
        sentinel=found.data,
    )


def _is_sign(data: bytes) -> bool:
    return len(data) == SENTINEL_BYTES and data.startswith(_SIGN_BEGIN)


def _plain(data: bytes) -> bytes:
    if _is_sign(data):
        raise InvalidRequestError(f"{data!r} is a reserved value and cannot be stored")
    return data


# --- upload --------------------------------------------------------------------------------------
# A large object uploaded in parts: invisible until complete, and then created if absent.
#
# The rule: **an object appears by one conditional request**: the put of the object, or the
# completion of its parts. Until then its name stays free for other clients. Parts are sent side by
# side where the store can take them so, and that many parts are held in memory. Parts grow, because
# an object has at most 10,000: the limit is half a terabyte.
#
# A killed upload leaves its parts behind, unseen and paid for: give the bucket a lifecycle rule
# that aborts incomplete uploads after some days.


PART_BYTES = 8 * 2**20
PARTS_AT_ONCE = 3
"""Parts that are sent side by side, or fewer longer ones: 24 MiB of memory, or one part."""
# After so many parts the next ones are twice as long.
_PARTS_PER_LENGTH = 1000
_PART_BYTES_MAX = 8 * PART_BYTES


class Upload:
    """The object ``name``, piece by piece. After an error only ``discard`` may be called."""

    def __init__(self, objects: Objects, name: str) -> None:
        self._objects = objects
        self._name = name
        self._token = environment.token()
        self._rest = bytearray()
        self._parts: Parts | None = None
        self._sent = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._rest += memoryview(data).cast("B")
        length, count = self._part_bytes(), self._at_once()
        while len(self._rest) > length * count:
            self._send_first(length * count, length)
            length, count = self._part_bytes(), self._at_once()

    def send(self, *parts: bytes) -> None:
        """Send ``parts`` now, side by side; only the last one may be shorter than 5 MiB."""
        begun = self._begun()

        def send(numbered: tuple[int, bytes]) -> None:
            repeated(lambda: begun.send(*numbered))

        numbered = enumerate(parts, self._sent)
        environment.for_each(send, numbered, at_once=self._at_once(), name="upload")
        self._sent += len(parts)

    def finish(self) -> Created | None:
        """Make the object visible; None if another creator's object is there.

        Raises:
            StoreDoubt: the object may be there now, or later.
        """
        length = self._part_bytes()
        if self._parts is None and len(self._rest) <= length:
            return self._objects.create(self._name, bytes(self._rest))
        self._send_first(len(self._rest), length)
        created = self._complete(self._begun())
        if created is not None:
            self._parts = None
        return created

    def discard(self) -> None:
        """Remove all parts, as far as the store allows; harmless at any time."""
        self._rest.clear()
        if self._parts is not None:
            with suppress(StoreDoubt):
                self._parts.abandon()
            self._parts = None

    def _begun(self) -> Parts:
        if self._parts is None:
            store, key = self._objects.store, self._objects.place.key(self._name)
            # Not repeated in doubt: a second upload would stay behind for good.
            self._parts = repeated(lambda: store.begin(key, self._token), only_if_refused=True)
        return self._parts

    def _at_once(self) -> int:
        if self._parts is not None and self._parts.in_turn:
            return 1
        return max(1, PARTS_AT_ONCE * PART_BYTES // self._part_bytes())

    def _send_first(self, byte_count: int, length: int) -> None:
        """Send that many bytes in parts of ``length``; they are in memory once while they go."""
        begins = range(0, byte_count, length)
        parts = [bytes(self._rest[begin : min(begin + length, byte_count)]) for begin in begins]
        del self._rest[:byte_count]
        self.send(*parts)

    def _complete(self, parts: Parts) -> Created | None:
        try:
            # The same parts under the same number each time, so the completion cannot happen twice.
            etag = repeated(parts.finish)
        except ObjectTaken:
            return self._objects.own(self._name, self._token)
        except StoreDoubt as doubt:
            return self._objects.own(self._name, self._token, doubt)
        return Created(self._token, etag)

    def _part_bytes(self) -> int:
        return min(PART_BYTES << (self._sent // _PARTS_PER_LENGTH), _PART_BYTES_MAX)


# --- probe ---------------------------------------------------------------------------------------
# Tries a store before the first use.
#
# The rule: **a store that ignores a condition is refused.** Some stores with S3's protocol accept
# ``If-None-Match: *`` and overwrite all the same; two writers would then both believe to have won.


def require_conditional_replaces(objects: Objects) -> None:
    """Replace an object with the right ETag and with an old one, and remove the object.

    Raises:
        InvalidRequestError: the store ignores the condition, or refuses one that holds.
        StoreDoubt: the store gives no certain answer, or does not know the condition.
    """
    name = f".probe-{environment.token()}"
    try:
        is_made = objects.put_if(name, b"first", "") is not None
        first = objects.read(name)
        etag = first.etag if first is not None else ""
        is_replaced = objects.put_if(name, b"second", etag) is not None
        is_overwritten = objects.put_if(name, b"third", etag) is not None
        found = objects.read(name)
    finally:
        objects.delete(name)
    is_kept = found is not None and found.data == b"second" and found.etag != etag
    if not is_made or not is_replaced or is_overwritten or not is_kept:
        raise InvalidRequestError(
            f"the store at {objects.place.url} does not replace objects only if they are unchanged",
            hint="a metadata store needs If-Match on PutObject; keep the metadata elsewhere",
        )


def require_conditional_creates(objects: Objects) -> None:
    """Create an object twice, by both kinds of request, and remove the object.

    Raises:
        InvalidRequestError: a second create was not refused, or the first was not visible at once.
        StoreDoubt: the store gives no certain answer, or does not know the condition.
    """
    # Seldom left behind, and then hidden: names that begin with a dot belong to this layer.
    name = f".probe-{environment.token()}"
    is_absent = objects.read(name) is None
    try:
        # Begun while the name is free, so that only its end can find the name taken.
        upload = Upload(objects, name)
        upload.send(b"third")
        first = objects.create(name, b"first")
        second = objects.create(name, b"second")
        third = upload.finish()
        upload.discard()
        found = objects.read(name)
    finally:
        objects.delete(name)
    is_kept = found is not None and found.data == b"first" and found.is_by(first)
    if not is_absent or first is None or second is not None or third is not None or not is_kept:
        raise InvalidRequestError(
            f"the store at {objects.place.url} overwrites objects, and must create them only once",
            hint="the store must support If-None-Match on PutObject and on CompleteMultipartUpload",
        )
