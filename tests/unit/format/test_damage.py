"""Damage is always noticed: every bit of every kind of file, every length, zeroed pages.

What is asserted for each damaged copy: it is refused, or what is read is what was written. The
latter happens only where bytes behind a file's known length are not looked at.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pytest

from bkspark.errors import CorruptDataError
from bkspark.format.digest import CRC32C, MAC
from bkspark.format.journal import Tail, decode_journal

from .material import (
    LEDGER,
    SMALL_RECORDS,
    add_record,
    cuts,
    digester,
    entry_log,
    flips,
    frame,
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


@pytest.mark.parametrize("digest_type", [CRC32C, MAC])
@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_every_damage_to_an_entry_log_is_found(compression: str, digest_type: str) -> None:
    stored = entry_log(compression=compression, digest_type=digest_type)
    right = read_entry_log(stored)
    found = tally(all_damage(stored.data), lambda data: read_entry_log(stored, data), right)
    print(f"entry log, {compression}, {digest_type}: {found}")
    # Two copies have something behind the file's known length, which is not read.
    assert (found.wrong, found.unharmed) == (0, 2), str(found)
    assert found.refused == found.tried - 2 >= 8 * len(stored.data), str(found)


def read_journal(data: bytes, digest_type: str) -> object:
    """As a reader of a closed ledger takes it: all of it, or it is no good."""
    content = decode_journal(data, digester(digest_type), ledger_id=LEDGER)
    if content.tail is not Tail.CLEAN:
        raise CorruptDataError(content.tail.value)
    return content.records


@pytest.mark.parametrize("digest_type", [CRC32C, MAC])
def test_every_damage_to_a_journal_is_found(digest_type: str) -> None:
    records = (add_record((3, 1)), add_record((2,), first=4))
    frames = [frame(records[0], digest_type)]
    frames.append(frame(records[1], digest_type, position=len(frames[0])))
    data = b"".join(frames)
    found = tally(all_damage(data), lambda x: read_journal(x, digest_type), records)
    print(f"journal, {digest_type}: {found}")
    # Two are whole records, though too few: the ledger's last entry tells. The same frames once
    # more behind themselves are none, because a frame is bound to its position.
    assert (found.wrong, found.unharmed) == (2, 0), str(found)
    for whole, expected in ((b"", ()), (frames[0], records[:1])):
        assert read_journal(whole, digest_type) == expected
    assert found.refused == found.tried - 2 >= 8 * len(data), str(found)


@pytest.mark.parametrize("digest_type", [CRC32C, MAC])
def test_damage_to_a_journal_never_changes_the_records_before_it(digest_type: str) -> None:
    first, second = add_record((3, 1)), add_record((2,), first=4)
    head = frame(first, digest_type)
    rest = frame(second, digest_type, position=len(head))
    for damaged in all_damage(rest):
        content = decode_journal(head + damaged, digester(digest_type), ledger_id=LEDGER)
        assert content.records[0] == first
        assert content.records[1:] in ((), (second,), (second, second))


@pytest.mark.parametrize("digest_type", [CRC32C, MAC])
def test_a_cut_last_record_is_incomplete_and_a_damaged_one_with_more_behind_is_corrupt(
    digest_type: str,
) -> None:
    key = digester(digest_type)
    one = frame(add_record(), digest_type)
    for length in range(1, len(one)):
        assert decode_journal(one[:length], key, ledger_id=LEDGER).tail is Tail.INCOMPLETE
        # Blocks that were allocated and never written.
        padded = decode_journal(one + bytes(length), key, ledger_id=LEDGER)
        assert (len(padded.records), padded.tail) == (1, Tail.INCOMPLETE)
    two = one + frame(add_record((2,), first=4), digest_type, position=len(one))
    for position in range(len(one)):
        damaged = bytearray(two)
        damaged[position] ^= 1
        content = decode_journal(bytes(damaged), key, ledger_id=LEDGER)
        assert (content.records, content.tail) == ((), Tail.CORRUPT), position
