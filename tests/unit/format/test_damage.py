"""Damage is always noticed: every bit of every kind of file, every length, zeroed pages.

What is asserted for each damaged copy: it is refused, or what is read is what was written. The
latter happens only where bytes behind a file's known length are not looked at.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pytest

from bkspark.errors import CorruptDataError
from bkspark.format.digest import CRC32C, MAC
from bkspark.format.journal import JournalContent, Tail, decode_journal, last_frame_length
from bkspark.protocol.ledger.record import AddRecord

from ...thorough import always  # noqa: TID252
from .material import (
    LEDGER,
    SCHEMA,
    SMALL_RECORDS,
    add_record,
    cuts,
    digester,
    entry_log,
    flips,
    frame,
    inline_record,
    read_entry_log,
    zeroed,
)


@dataclass
class Tally:
    """What became of the damaged copies of one file."""

    tried: int = 0
    refused: int = 0
    unharmed: int = 0
    wrong: int = 0

    def __str__(self) -> str:
        return (
            f"{self.tried} damaged copies: {self.refused} refused, {self.unharmed} read as they "
            f"were written, {self.wrong} read as something else"
        )


def tally(copies: Iterable[bytes], read: Callable[[bytes], object], right: object) -> Tally:
    found = Tally()
    for data in copies:
        found.tried += 1
        try:
            if read(data) == right:
                found.unharmed += 1
            else:
                found.wrong += 1
        except CorruptDataError:
            found.refused += 1
    return found


def all_damage(data: bytes) -> Iterator[bytes]:
    yield from flips(data)
    yield from cuts(data)
    yield from zeroed(data)


@pytest.mark.parametrize("kind", SMALL_RECORDS)
def test_every_damage_to_a_small_record_is_found(kind: str) -> None:
    data, read = SMALL_RECORDS[kind]
    found = tally(all_damage(data), read, read(data))
    print(f"{kind}: {found}")
    assert found.refused == found.tried >= 8 * len(data), f"{kind}: {found}"


@pytest.mark.parametrize("digest_type", always([MAC], [CRC32C, MAC]))
@pytest.mark.parametrize("compression", always(["none"], ["none", "lz4", "zstd"]))
def test_every_damage_to_an_entry_log_is_found(compression: str, digest_type: str) -> None:
    stored = entry_log(compression=compression, digest_type=digest_type)
    right = read_entry_log(stored)
    found = tally(all_damage(stored.data), lambda data: read_entry_log(stored, data), right)
    print(f"entry log, {compression}, {digest_type}: {found}")
    # Two copies have something behind the file's known length, which is not read.
    assert (found.wrong, found.unharmed) == (0, 2), str(found)
    assert found.refused == found.tried - 2 >= 8 * len(stored.data), str(found)


@dataclass(frozen=True)
class TwoRecords:
    """A journal with a record that names entry logs, then one with its rows inside."""

    digest_type: str

    @property
    def frames(self) -> tuple[bytes, bytes]:
        first = frame(add_record((3, 1)), self.digest_type)
        record, parts = inline_record(first=4, digest_type=self.digest_type)
        second = frame(record, self.digest_type, position=len(first), parts=parts)
        return first, second

    @property
    def records(self) -> tuple[AddRecord, AddRecord]:
        return add_record((3, 1)), inline_record(first=4, digest_type=self.digest_type)[0]

    def decode(self, data: bytes) -> JournalContent:
        return decode_journal(data, digester(self.digest_type), ledger_id=LEDGER)

    def read(self, data: bytes) -> tuple[tuple[AddRecord, ...], list[bytes]]:
        """As a reader of a closed ledger takes it: all records and rows, or it is no good."""
        content = self.decode(data)
        if content.tail is not Tail.CLEAN:
            raise CorruptDataError(content.tail.value)
        places = [place for found in content.frames for place in found.parts.values()]
        return content.records, [data[begin : begin + size] for begin, size in places]


@pytest.fixture(params=always([CRC32C], [CRC32C, MAC]))
def journal(request: pytest.FixtureRequest) -> TwoRecords:
    return TwoRecords(request.param)


def test_every_damage_to_a_journal_is_found(journal: TwoRecords) -> None:
    first, second = journal.frames
    data = first + second
    right = journal.read(data)
    assert (right[0], len(right[1])) == (journal.records, 2)
    found = tally(all_damage(data), journal.read, right)
    print(f"journal, {journal.digest_type}: {found}")
    # Two are whole records, though too few: the ledger's last entry tells.
    assert (found.wrong, found.unharmed) == (2, 0), str(found)
    assert journal.decode(b"").records == ()
    assert journal.decode(first).records == journal.records[:1]
    assert found.refused == found.tried - 2 >= 8 * len(data), str(found)


@pytest.mark.parametrize("step", always([7], [7, 1]))
def test_damage_to_a_journal_never_changes_the_records_before_it(
    journal: TwoRecords, step: int
) -> None:
    """Every ``step``-th damage, which is in each byte."""
    first, second = journal.frames
    for damaged in islice(all_damage(second), None, None, step):
        records = journal.decode(first + damaged).records
        assert records in (journal.records[:1], journal.records)


def test_a_cut_last_record_is_incomplete(journal: TwoRecords) -> None:
    first, second = journal.frames
    for length in range(1, len(second)):
        content = journal.decode(first + second[:length])
        assert (len(content.records), content.tail) == (1, Tail.INCOMPLETE)
        # Blocks that were allocated and never written.
        content = journal.decode(first + bytes(length))
        assert (len(content.records), content.tail) == (1, Tail.INCOMPLETE)


def test_a_torn_last_record_is_incomplete(journal: TwoRecords) -> None:
    """Wherever it is torn but in its prefix, which is a record only if its checksum says so."""
    first, second = journal.frames
    for position in range(24, len(second)):
        torn = second[:position] + bytes([second[position] ^ 1]) + second[position + 1 :]
        assert journal.decode(first + torn).tail is Tail.INCOMPLETE, position


def test_a_damaged_record_with_something_behind_it_is_corrupt(journal: TwoRecords) -> None:
    data = b"".join(journal.frames)
    for position in range(len(journal.frames[0])):
        damaged = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        content = journal.decode(damaged)
        assert (content.records, content.tail) == ((), Tail.CORRUPT), position


def test_records_in_another_order_or_place_are_found(journal: TwoRecords) -> None:
    first, second = journal.frames
    for data, good in (
        (second + first, 0),
        (second, 0),
        (first + first, 1),
        (first + second + second, 2),
        (first + second + first, 2),
    ):
        content = journal.decode(data)
        assert content.records == journal.records[:good]
        assert content.tail is Tail.CORRUPT


def test_parts_in_another_order_or_place_are_found(journal: TwoRecords) -> None:
    rows = pa.record_batch([pa.array([1, 2, 3], pa.int32()), pa.array(["a", "b", "c"])], SCHEMA)
    record, parts = inline_record((rows,), digest_type=journal.digest_type)
    assert len(set(map(len, parts.values()))) == 1
    assert len(record.parts_of(0)) == 2
    good = frame(record, journal.digest_type, parts=parts)
    assert journal.decode(good).records == (record,)
    one, two = (parts[part.stripe] for part in record.parts_of(0))
    swapped = good.replace(one + two, two + one)
    assert swapped != good
    assert journal.decode(swapped).tail is Tail.INCOMPLETE


def test_every_damage_to_a_trailer_is_found(journal: TwoRecords) -> None:
    data = b"".join(journal.frames)
    assert last_frame_length(data, len(data)) == len(journal.frames[1])
    assert last_frame_length(data[-12:], len(data)) == len(journal.frames[1])
    for damaged in flips(data[-12:]):
        assert last_frame_length(damaged, len(data)) is None
    for length in range(12):
        assert last_frame_length(data[len(data) - length :], len(data)) is None
    assert last_frame_length(data, len(data) + 1) is None
