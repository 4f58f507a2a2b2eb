"""A bookie in a bucket of an object store: ``s3://bucket/prefix``, ``gs://…`` or ``abfss://…``.

The rule: **every object is created if absent by one conditional request, and no look-up uses a
cache.** ``bkspark.storage`` keeps the rule and interprets the store's answers; this module makes a
bookie of it. An absence is reported only if the cookie is still there after the look-up: during a
wipe of the prefix every look-up answers "no such key".

An object cannot grow, so a journal is a row of objects (``object_journal``). Empty data, such as a
term's marker, is stored as a 16-byte sentinel (``bkspark.storage.objects``).

Requirements on the store: conditional creates, and look-ups that see every object whose creation
was answered (S3 does both; ``format`` tries). Credentials need GetObject, PutObject, DeleteObject,
AbortMultipartUpload and ListBucket. A bucket policy that requires ``s3:if-none-match`` on the
prefix also keeps other programs from overwriting objects.
"""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import accumulate

from bkspark import environment
from bkspark.bookie.checks import (
    GrowingJournal,
    UnavailableOnOSError,
    check_cookie,
    check_range,
    not_shown,
    split_name,
)
from bkspark.bookie.contract import BookieAddress, Buffer, Journal, Usage
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format.layout import COOKIE
from bkspark.storage.address import BucketPlace, parse, shown_url
from bkspark.storage.connection import StoreDoubt, require_known
from bkspark.storage.kinds import open_objects
from bkspark.storage.objects import (
    SENTINEL_BYTES,
    Created,
    Found,
    Objects,
    Upload,
    make_sentinel,
    require_conditional_creates,
)

# --- object journal ------------------------------------------------------------------------------
# A journal on a store whose objects cannot grow: every record is an object of its own.
#
# The rule: **record n exists if the objects 0 to n do.** A journal is an object under its own name
# with the content ``HEAD``, which marks the journal, and its records, numbered without a gap::
#
#     <folder>/<journal>              HEAD
#     <folder>/.<journal>/<number>    16 hex digits, dense from 0; one record as it was appended
#
# No name of the contract has a part that begins with a dot, so a record is never mistaken for a
# file. No key is a folder of other keys: servers that keep objects as files refuse such keys.
#
# A reader asks for one number after the other and stops at the first that is certainly absent. A
# listing is only a hint:
#
# * A listed record existed, with the listed length, and can be fetched in parallel.
# * An unlisted record is asked for.
# * A listed record after a missing record proves a loss: then no record of the journal is trusted.
#
# The writer makes a record only after the previous record certainly exists, and makes none after
# any doubt.


HEAD = make_sentinel("journal")
"""The content of the object under a journal's own name."""

_RECORD = re.compile(r"[0-9a-f]{16}")
_RECORDS_FOLDER = re.compile(r"\.(.+)/")
_READERS = 8
_SERVER_DIGITS = 8
_LENGTHS_MAX = 4096


class ObjectJournal(GrowingJournal):
    """The objects that one writer puts one by one.

    Args:
        head: the object under the journal's own name, just made.
    """

    def __init__(self, bookie_name: str, objects: Objects, name: str, head: Created) -> None:
        super().__init__(bookie_name, name)
        self._objects = objects
        self._head = head
        self._records: list[Created] = []

    def _store(self, parts: Sequence[Buffer]) -> int:
        record, number = b"".join(parts), len(self._records)
        with UnavailableOnOSError(self._bookie_name, "append to", self._name):
            # The first record shows that the journal was begun: no delayed request may recreate it
            # (R19).
            name, is_first = _record_name(self._name, number), number == 0
            created = self._objects.create(name, record, once=is_first)
        if created is None:
            raise BookieUnavailableError(
                f"{self._bookie_name}: another writer wrote to journal {self._name}",
                hint="each journal has one writer; begin a new journal",
            )
        self._records.append(created)
        return len(record)

    def is_headed_by(self, found: Found) -> bool:
        """Whether ``found`` is the object that this journal made under its own name."""
        return found.is_by(self._head)

    def shows_last_record(self, objects: Objects) -> bool:
        """Whether the last appended record is at the place of ``objects``, unchanged.

        The records before it were there when it was made. No client removes one of them before it
        (``delete``), and none makes one again.
        """
        if not self._records:
            return True
        found = objects.look(_record_name(self._name, len(self._records) - 1))
        return found is not None and found.is_by(self._records[-1])

    def shows_all_records(self, objects: Objects) -> bool:
        """Whether every appended record is at the place of ``objects``, unchanged.

        Checks the last record by its token, and the earlier records in one listing by their ETags:
        a listing that shows all expected records is proof.
        """
        if not self.shows_last_record(objects):
            return False
        earlier = self._records[:-1]
        listed = objects.entries(records_folder(self._name)) if earlier else {}
        return all(
            listed.get(_record(number)) == record.etag for number, record in enumerate(earlier)
        )


def records_folder(name: str) -> str:
    """The folder of the records of journal ``name``."""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}.{last}"


def journal_of(listed: str) -> str | None:
    """The journal whose records are in the listed folder ``listed``; None for any other name."""
    found = _RECORDS_FOLDER.fullmatch(listed)
    return found[1] if found else None


def read(objects: Objects, name: str) -> bytes:
    """The records of journal ``name``, concatenated."""
    return b"".join(found.data for found in _records(objects, name, objects.read))


def read_range(
    objects: Objects, name: str, begin: int, length: int, listed: Mapping[str, int]
) -> bytes:
    """``length`` bytes of the concatenated records, from ``begin`` on, fewer at their end.

    The listing gives the records' lengths, so earlier records are not fetched. The listing is only
    a hint here too: if a record does not match, the whole journal is read.

    Args:
        listed: stored sizes of the records, listed at any time.
    """
    records = sorted(found for found in listed if _RECORD.fullmatch(found))
    is_dense = records == [_record(number) for number in range(len(records))]
    sizes = [listed[found] for found in records]
    ends = list(accumulate(sizes))
    first = bisect_right(ends, begin)
    last = min(len(sizes), bisect_left(ends, begin + length) + 1)
    names = [_record_name(name, number) for number in range(first, last)]
    seen = environment.for_each(objects.read, names, at_once=_READERS, name="read-records")
    data = b"".join(found.data for found in seen if found is not None)
    fits = [len(found.data) for found in seen if found is not None] == sizes[first:last]
    start = ends[first - 1] if first else 0
    if not (is_dense and fits) or start + len(data) < begin + length:
        return read(objects, name)[begin : begin + length]
    return data[begin - start :][:length]


def size(objects: Objects, name: str, listed: Mapping[str, int]) -> tuple[int, int]:
    """Total length of the records of journal ``name``, and their number.

    A listed record existed at the time of the listing, and a record is never replaced. So the store
    is asked only for records of a sentinel's length and for records after the listed ones.

    Args:
        listed: stored sizes of the records, listed just now.
    """
    records = sorted(found for found in listed if _RECORD.fullmatch(found))
    if records != [_record(number) for number in range(len(records))]:
        raise StoreDoubt("a record is missing, and there are records after it")
    unsure = [number for number, found in enumerate(records) if listed[found] == SENTINEL_BYTES]
    looked = [objects.look(_record_name(name, number)) for number in unsure]
    found = [*filter(None, looked), *_behind(objects.look, name, len(records))]
    sure = sum(listed[record] for record in records) - len(unsure) * SENTINEL_BYTES
    behind = len(found) - len(unsure)
    return sure + sum(record.size for record in found), len(records) + behind


class Lengths:
    """How many records journals had, by their lengths, when this process last looked."""

    def __init__(self) -> None:
        self._known: dict[tuple[BucketPlace, str], tuple[int, int]] = {}

    def note(self, place: BucketPlace, name: str, length: int, count: int) -> None:
        """Note the length of a journal and the number of its records."""
        self._known.pop((place, name), None)
        self._known[place, name] = (length, count)
        if len(self._known) > _LENGTHS_MAX:
            self._known.pop(next(iter(self._known)), None)

    def count(self, place: BucketPlace, name: str, length: int) -> int | None:
        """Return the number of records of a journal of ``length``; None if it is not known."""
        known = self._known.get((place, name))
        return known[1] if known is not None and known[0] == length else None


def delete(objects: Objects, name: str) -> None:
    """Remove journal ``name``: from the last record to the first, so that no gap appears, then its
    head.

    A killed removal leaves the head, by which the next attempt finds the rest.
    """
    for number in sorted(_listed(objects, name), reverse=True):
        objects.delete(_record_name(name, number))
    objects.delete(name)


def _records(objects: Objects, name: str, look: Callable[[str], Found | None]) -> list[Found]:
    listed = max(_listed(objects, name), default=-1) + 1
    names = [_record_name(name, number) for number in range(listed)]
    seen = environment.for_each(look, names, at_once=_READERS, name="look-at-records")
    found = [record for record in seen if record is not None]
    if len(found) != listed:
        raise StoreDoubt("a record is missing, and there are records after it")
    return [*found, *_behind(look, name, listed)]


def _behind(look: Callable[[str], Found | None], name: str, number: int) -> Iterator[Found]:
    """Record ``number`` of journal ``name`` and all later records, up to the first absence."""
    while (record := look(_record_name(name, number))) is not None:
        yield record
        number += 1


def _listed(objects: Objects, name: str) -> list[int]:
    listed = objects.entries(records_folder(name))
    return [int(entry, 16) for entry in listed if _RECORD.fullmatch(entry)]


def _record_name(name: str, number: int) -> str:
    return f"{records_folder(name)}/{_record(number)}"


def _record(number: int) -> str:
    return f"{number:016x}"


# --- object store --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BucketBookie:
    """The address of a bookie in a bucket, ``s3://bucket/prefix``."""

    address: BookieAddress

    def open_root(self) -> AbstractContextManager["BucketBookieRoot"]:
        return _opened_root(self.address)

    def found_root(self) -> AbstractContextManager["BucketBookieRoot"]:
        """As of ``StaysFound``."""
        return _opened_root(self.address, is_found=True)

    def post_check(self, journal: Journal, *, fence: str, permission: str) -> bool:
        """Ask for four objects by their names: none of the answers rests on a listing.

        The cookie comes last, since an absence counts only where the cookie is there afterwards.
        The head of the journal is not asked for. No client removes it before the records, and it is
        younger than the permission: what takes the oldest objects first takes the permission first.
        """
        split_name(fence)
        split_name(permission)
        own, objects = _own(journal), Objects(parse(self.address.place))
        with UnavailableOnOSError(f"bookie {self.address.bookie_id}", "look up", own.name):
            is_shown = own.shows_last_record(objects)
            is_fenced = objects.look(fence) is not None
            is_permitted = objects.look(permission) is not None
            cookie = _read_cookie(objects)
        check_cookie(self.address, cookie)
        if not is_shown:
            raise not_shown(self.address)
        return is_permitted and not is_fenced

    def may_have_grown(self, name: str, end: int) -> bool:
        """Ask for the one record that comes next."""
        objects = Objects(parse(self.address.place))
        count = environment.the_one(Lengths).count(objects.place, name, end)
        if count is None:
            return True
        with UnavailableOnOSError(f"bookie {self.address.bookie_id}", "look up", name):
            return objects.look(_record_name(name, count)) is not None


@contextmanager
def _opened_root(address: BookieAddress, *, is_found: bool = False) -> Iterator["BucketBookieRoot"]:
    yield BucketBookieRoot(address, is_found=is_found)


class BucketBookieRoot:
    """An opened prefix with the expected cookie.

    Args:
        is_found: whether the caller has just seen the cookie.
    """

    bytes_per_request = 2 * 2**20
    """A request takes some 20 ms, at 100 MB/s."""

    def __init__(self, address: BookieAddress, *, is_found: bool = False) -> None:
        self._address = address
        self._bookie_name = f"bookie {address.bookie_id}"
        self._objects = Objects(parse(address.place))
        self._listings: dict[str, Mapping[str, int]] = {}
        self._heads = set[str]()
        self._confirms_at_end = False
        self._cookie: bytes | None = None
        if not is_found:
            with UnavailableOnOSError(self._bookie_name, "read", COOKIE):
                self._cookie = _read_cookie(self._objects)
            check_cookie(address, self._cookie)

    def put_new(self, name: str, data: Buffer, *, once: bool = False) -> bool:
        split_name(name)
        with UnavailableOnOSError(self._bookie_name, "create", name):
            return self._objects.create(name, bytes(data), once=once) is not None

    def create(self, name: str) -> "ObjectEntryFile":
        split_name(name)
        return ObjectEntryFile(self._bookie_name, name, Upload(self._objects, name))

    def open_journal(self, name: str, first: Sequence[Buffer] = ()) -> ObjectJournal:
        split_name(name)
        with UnavailableOnOSError(self._bookie_name, "create journal", name):
            head = self._objects.create_sentinel(name, HEAD, once=True)
        if head is None:
            raise BookieUnavailableError(
                f"{self._bookie_name}: cannot create journal {name}: it exists",
                hint="each name is written once: take a new id",
            )
        journal = ObjectJournal(self._bookie_name, self._objects, name, head)
        if first:
            journal.append(first)
        return journal

    def has_journal(self, journal: Journal) -> bool:
        own = _own(journal)
        with UnavailableOnOSError(self._bookie_name, "look up", own.name):
            found = self._look(own.name)
            is_headed = found is not None and own.is_headed_by(found)
            return is_headed and own.shows_all_records(self._objects)

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        split_name(name)
        check_range(begin, length)
        with UnavailableOnOSError(self._bookie_name, "read", name):
            listed = self._listings.pop(name, None)
            if listed is not None and length is not None:
                records = read_range(self._objects, name, begin, length, listed)
                if len(records) == length:
                    self._listings[name] = listed
                    return records
            return self._read_anew(name, begin, length)

    def _read_anew(self, name: str, begin: int, length: int | None) -> bytes | None:
        found = self._objects.read(name, begin, length)
        if found is None:
            self._confirm_cookie()
            return None
        if found.sentinel != HEAD:
            return found.data
        if length is None:
            records = read(self._objects, name)[begin:]
        else:
            records = read_range(self._objects, name, begin, length, self._list_anew(name))
        if length is None or len(records) < length:
            # The journal ended at an absence, which is as certain as any other.
            self._confirm_cookie()
        return records

    def _list_anew(self, name: str) -> Mapping[str, int]:
        """Stored sizes of the records of journal ``name``; reads of it use them from now on."""
        found = self._listings[name] = self._objects.stored_sizes(records_folder(name))
        return found

    def pieces_begin(self, name: str, end: int, count: int) -> int:
        """As of ``KeepsPieces``; the pieces are the records, as listed for ``size``."""
        listed = self._listings.get(name, {})
        records = sorted(found for found in listed if _RECORD.fullmatch(found))
        begins = [0, *accumulate(listed[found] for found in records)]
        before = begins[: bisect_left(begins, end)]
        return before[-count] if len(before) >= count else 0

    @contextmanager
    def confirmed_at_end(self) -> Iterator[None]:
        """As of ``ConfirmsTogether``."""
        self._confirms_at_end = True
        try:
            yield
        finally:
            self._confirms_at_end = False
        with UnavailableOnOSError(self._bookie_name, "read", COOKIE):
            self._confirm_cookie()

    def size(self, name: str) -> int | None:
        split_name(name)
        with UnavailableOnOSError(self._bookie_name, "look up", name):
            if name in self._heads and (length := self._journal_size(name)):
                return length  # its records show that the journal is there
            found = self._look(name)
            if found is None:
                return None
            return self._journal_size(name) if found.sentinel == HEAD else found.size

    def _journal_size(self, name: str) -> int:
        length, count = size(self._objects, name, self._list_anew(name))
        self._confirm_cookie()
        environment.the_one(Lengths).note(self._objects.place, name, length, count)
        return length

    def list(self, folder: str) -> list[str]:
        split_name(folder)
        with UnavailableOnOSError(self._bookie_name, "list", folder):
            found = self._objects.entries(folder)
            names = {self._shown(folder, name, found) for name in found}
            self._confirm_cookie()
        return sorted(names)

    def sync(self, name: str) -> bool:
        """Only look the object up: a visible object is durable."""
        split_name(name)
        with UnavailableOnOSError(self._bookie_name, "look up", name):
            return self._look(name) is not None

    def delete(self, name: str) -> bool:
        split_name(name)
        with UnavailableOnOSError(self._bookie_name, "delete", name):
            found = self._look(name)
            if found is None:
                return False
            if found.sentinel == HEAD:
                delete(self._objects, name)
            else:
                self._objects.delete(name)
        return True

    def forget_journal(self, name: str) -> bool:
        """Return False: a late record would lie after a gap."""
        split_name(name)
        return False

    def sweep(self, folder: str) -> int:
        """Return 0: parts of an unfinished upload are no objects.

        A bucket has a rule of its own for such parts, ``AbortIncompleteMultipartUpload``.
        """
        self.list(folder)
        return 0

    def unfinished(self, folder: str) -> Usage:
        """Return no usage, as for ``sweep``, without a request."""
        split_name(folder)
        return Usage()

    def usage(self, folder: str) -> Usage:
        """Counts a journal's head and each of the records as a file."""
        split_name(folder)
        with UnavailableOnOSError(self._bookie_name, "list", folder):
            listed = self._objects.entries(folder)
            journals = [name[:-1] for name in listed if journal_of(name)]
            places = [folder, *(f"{folder}/{records}" for records in journals)]
            sizes = [size for p in places for size in self._objects.stored_sizes(p).values()]
            self._confirm_cookie()
        return Usage(len(sizes), sum(sizes))

    def remove_folder(self, folder: str) -> Usage:
        removed = self.usage(folder)
        with UnavailableOnOSError(self._bookie_name, "remove", folder):
            listed = self._objects.entries(folder)
            for name in sorted({journal_of(name) or name for name in listed}):
                if name[-1] != "/":
                    # Only a journal has records.
                    delete(self._objects, f"{folder}/{name}")
        return removed

    def free_bytes(self) -> int:
        """Unknown: a bucket has no size limit."""
        return 0

    def total_bytes(self) -> int:
        """Unknown too, so the bookie is never full."""
        return 0

    def write_problem(self) -> str:
        """Return no problem: missing rights show only at a write."""
        return ""

    def close(self) -> None:
        """Has no effect: the connection belongs to the process."""

    def _shown(self, folder: str, name: str, listed: Collection[str]) -> str:
        """The contract's name for the listed ``name``: a journal's head stands for its records.

        A records folder without a head is the rest of a journal, or made by another program. A
        journal may be made during the listing, so the head is looked up once more.
        """
        head = journal_of(name)
        if head is None:
            return name
        if head in listed:
            self._heads.add(f"{folder}/{head}")
            return head
        return head if self._objects.look(f"{folder}/{head}") is not None else f"{head}/"

    def _look(self, name: str) -> Found | None:
        found = self._objects.look(name)
        if found is None:
            self._confirm_cookie()
        return found

    def _confirm_cookie(self) -> None:
        if self._confirms_at_end:
            return
        cookie = _read_cookie(self._objects)
        if self._cookie is None:
            check_cookie(self._address, cookie)
        elif cookie != self._cookie:
            raise BookieUnavailableError(
                f"{self._bookie_name}: its place lost its cookie while it was in use",
                hint="check whether it was wiped; if its data is lost, replace the bookie",
            )


class ObjectEntryFile:
    """An object, visible when complete: after a single put, or after the completion of parts."""

    def __init__(self, bookie_name: str, name: str, upload: Upload) -> None:
        self._bookie_name = bookie_name
        self._name = name
        self._upload: Upload | None = upload

    def write(self, data: Buffer) -> None:
        upload = self._require()
        with UnavailableOnOSError(self._bookie_name, "write", self._name):
            try:
                upload.write(data)
            except BaseException:
                self.discard()
                raise

    def finish(self) -> None:
        upload = self._require()
        with UnavailableOnOSError(self._bookie_name, "finish", self._name):
            try:
                created = upload.finish()
            finally:
                # A finished upload leaves no parts to discard.
                self.discard()
        if created is None:
            raise BookieUnavailableError(
                f"{self._bookie_name}: cannot finish {self._name}: it exists",
                hint="each name is written once: take a new id",
            )

    def discard(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.discard()

    def _require(self) -> Upload:
        if self._upload is None:
            raise BookieUnavailableError(
                f"{self._bookie_name}: {self._name} was finished, discarded or failed before",
                hint="start a new file under a new name",
            )
        return self._upload


@dataclass(frozen=True, slots=True)
class BucketStorage:
    """The present or future bookie at ``s3://bucket/prefix``, which may name a store.

    Raises:
        InvalidRequestError: in every call, this machine does not know the store.
    """

    url: str

    def read_cookie(self) -> bytes | None:
        objects = self._objects()
        with self._unavailable_on_error("read the cookie in"):
            return _read_cookie(objects)

    def require_suitable(
        self,
        cookie: bytes | None = None,
        group: int | None = None,  # noqa: ARG002 - only files have groups
    ) -> None:
        objects = self._objects()
        with self._unavailable_on_error("look at"):
            names = [name for name in objects.entries("") if name[0] != "."]
            if COOKIE in names:
                if _read_cookie(objects) != cookie:
                    raise _already_a_bookie(objects)
                names.remove(COOKIE)
            if names:
                raise InvalidRequestError(
                    f"{objects.place.url} is not empty: it holds {sorted(names)[0][:80]!r}",
                    hint="give another prefix, or remove the objects",
                )
            require_conditional_creates(objects)

    def format(self, cookie: bytes) -> None:
        self.require_suitable(cookie)
        objects = self._objects()
        with self._unavailable_on_error("initialise"):
            if objects.create(COOKIE, cookie) is None and _read_cookie(objects) != cookie:
                raise _already_a_bookie(objects)

    def failure_domain(self) -> str:
        """The bucket, with a digest of its server unless AWS: two names of one server are one
        domain.

        No record has the address of a server.
        """
        place = parse(self.url)
        server = open_objects(place).server().encode()
        name = hashlib.sha256(server).hexdigest()[:_SERVER_DIGITS]
        return f"bucket-{place.bucket}" + (f"@{name}" if server else "")

    def _objects(self) -> Objects:
        place = parse(self.url)
        require_known(place.store)
        return Objects(place)

    def _unavailable_on_error(self, operation: str) -> UnavailableOnOSError:
        return UnavailableOnOSError("the object store", operation, shown_url(self.url))


def _already_a_bookie(objects: Objects) -> InvalidRequestError:
    return InvalidRequestError(
        f"{objects.place.url} is a bookie already",
        hint="give another prefix; the data was not touched",
    )


def _own(journal: Journal) -> ObjectJournal:
    """``journal``, which must be one of a bookie in a bucket."""
    if not isinstance(journal, ObjectJournal):
        raise InvalidRequestError(f"journal {journal.name} is not one of a bookie in a bucket")
    return journal


def _read_cookie(objects: Objects) -> bytes | None:
    found = objects.read(COOKIE)
    return None if found is None else found.data
