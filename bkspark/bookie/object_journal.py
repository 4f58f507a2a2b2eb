"""A journal on a store whose objects cannot grow: every record is an object of its own.

The rule: **record n exists if the objects 0 to n do.** A journal is an object under its own name
with the content ``HEAD``, which marks the journal, and its records, numbered without a gap::

    <folder>/<journal>              HEAD
    <folder>/.<journal>/<number>    16 hex digits, dense from 0; one record as it was appended

No name of the contract has a part that begins with a dot, so a record is never mistaken for a file.
No key is a folder of other keys: servers that keep objects as files refuse such keys.

A reader asks for one number after the other and stops at the first that is certainly absent. A
listing is only a hint:

* A listed record existed, with the listed length, and can be fetched in parallel.
* An unlisted record is asked for.
* A listed record after a missing record proves a loss: then no record of the journal is trusted.

The writer makes a record only after the previous record certainly exists, and makes none after any
doubt.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from bkspark import environment
from bkspark.bookie.contract import Buffer
from bkspark.bookie.growing_journal import GrowingJournal
from bkspark.bookie.os_errors import UnavailableOnOSError
from bkspark.errors import BookieUnavailableError
from bkspark.storage.connection import S3Doubt
from bkspark.storage.objects import SENTINEL_BYTES, Created, Found, Objects, make_sentinel

HEAD = make_sentinel("journal")
"""The content of the object under a journal's own name."""

_RECORD = re.compile(r"[0-9a-f]{16}")
_RECORDS_FOLDER = re.compile(r"\.(.+)/")
_READERS = 8


class S3Journal(GrowingJournal):
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

    def has_all_records(self) -> bool:
        """Whether every appended record is there, unchanged.

        Checks the last record by its token, and the earlier records in one listing by their ETags:
        a listing that shows all expected records is proof.
        """
        if not self._records:
            return True
        last = len(self._records) - 1
        found = self._objects.look(_record_name(self._name, last))
        if found is None or not found.is_by(self._records[last]):
            return False
        if last == 0:
            return True
        listed = self._objects.entries(records_folder(self._name))
        return all(
            listed.get(_record(number)) == record.etag
            for number, record in enumerate(self._records)
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


def read_range(objects: Objects, name: str, begin: int, length: int) -> bytes:
    """``length`` bytes of the concatenated records, from ``begin`` on, fewer at their end.

    The listing gives the records' lengths, so earlier records are not fetched. The listing is only
    a hint here too: if a record does not match, the whole journal is read.
    """
    listed = objects.stored_sizes(records_folder(name))
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


def size(objects: Objects, name: str) -> int:
    """Total length of the records of journal ``name``.

    A listed record existed at the time of the listing, and a record is never replaced. So the store
    is asked only for records of a sentinel's length and for records after the listed ones.
    """
    listed = objects.stored_sizes(records_folder(name))
    records = sorted(found for found in listed if _RECORD.fullmatch(found))
    if records != [_record(number) for number in range(len(records))]:
        raise S3Doubt("a record is missing, and there are records after it")
    unsure = [number for number, found in enumerate(records) if listed[found] == SENTINEL_BYTES]
    looked = [objects.look(_record_name(name, number)) for number in unsure]
    found = [*filter(None, looked), *_behind(objects.look, name, len(records))]
    sure = sum(listed[record] for record in records) - len(unsure) * SENTINEL_BYTES
    return sure + sum(record.size for record in found)


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
        raise S3Doubt("a record is missing, and there are records after it")
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
