"""Journals that claim more than can be believed: what is read and held of them is bounded."""

import os
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import pytest

from bkspark.bookie import posix_place
from bkspark.bookie.contract import BookieRoot
from bkspark.bookie.memory import MemoryRoot
from bkspark.bookie.posix import PosixRoot
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import CorruptDataError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.ledger.journals import journal_reader
from bkspark.ledger.journals.journal_pages import JournalPages
from bkspark.ledger.journals.journal_reader import JournalReader
from bkspark.ledger.recovery import fencing
from bkspark.ledger.recovery.fencing import JournalTail, Since, read_tail
from bkspark.protocol.ledger.metadata import DigestSpec
from tests.integration.hand_writer import HandWriter
from tests.integration.rig import Rig

DIGESTER = Digester(DigestSpec(), None)
MIB = 2**20


def counted(monkeypatch: pytest.MonkeyPatch, kind: type[Any], most: float = inf) -> list[int]:
    """How much is read at once of bookies of a kind; who is asked for more than ``most`` fails."""
    found: list[int] = []
    read = kind.read

    def counting(self: Any, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        data: bytes | None = read(self, name, begin, length)
        found.append(len(data or b""))
        assert sum(found) < most
        return data

    monkeypatch.setattr(kind, "read", counting)
    return found


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return counted(monkeypatch, MemoryRoot)


def journal_of(writer: HandWriter) -> str:
    return layout.journal(writer.ledger_id, 1, writer.metadata.token)


def claim(rig: Rig, writer: HandWriter, length: int) -> None:
    """Let the journal end in what begins as a record of so many bytes, and has them."""
    name, whole = writer.names[0], rig.file_bytes(writer.names[0], journal_of(writer))
    head = bytearray(whole[: journal.PREFIX_BYTES])
    head[12:20] = length.to_bytes(8, "little")
    head[-4:] = journal._checksum(bytes(head[:-4]), len(whole))
    rig.replace_file(name, journal_of(writer), whole + bytes(head) + bytes(length + MIB))


def tail_of(root: BookieRoot, writer: HandWriter) -> JournalTail:
    place = {"ledger_id": writer.ledger_id, "fragments": writer.metadata.fragments}
    return read_tail(root, journal_of(writer), DIGESTER, **place, since=Since(-1, -1))


def test_a_recovery_reads_no_record_that_only_claims_to_be_long(
    writer: HandWriter,
    root: BookieRoot,
    memory_rig: Rig,
    sizes: list[int],
) -> None:
    claim(memory_rig, writer, 8 * MIB)
    tail = tail_of(root, writer)
    assert [stored.record.first_entry_id for stored in tail.records] == [9, 10, 11]
    assert tail.tail is Tail.CORRUPT
    assert tail.hidden == ((12, None),)
    assert max(sizes) <= MIB
    assert sum(sizes) < 14 * MIB  # once, back from its end


def test_a_recovery_holds_no_rows_that_are_confirmed(writer: HandWriter, root: BookieRoot) -> None:
    reader = JournalReader(root, journal_of(writer), DIGESTER, ledger_id=0)
    found = fencing._without_old_rows(reader.forwards(reader.stored), Since(-1, -1))
    assert [bool(stored.messages) for stored in found] == [False] * (1 + 9) + [True] * 3


def test_more_unconfirmed_rows_than_any_writer_has_are_doubted(
    writer: HandWriter, root: BookieRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = sum(stored.byte_count for stored in tail_of(root, writer).records)
    monkeypatch.setattr(fencing, "IN_FLIGHT_BYTES_MAX", size)
    assert len(tail_of(root, writer).records) == 3
    monkeypatch.setattr(fencing, "IN_FLIGHT_BYTES_MAX", size - 1)
    with pytest.raises(CorruptDataError, match="bytes of rows are unconfirmed"):
        tail_of(root, writer)


@pytest.mark.parametrize(
    ("passed_max", "problem"),
    [(2 * MIB, "ends in wrong bytes"), (64 * MIB, "is damaged at byte")],
    ids=["not passed", "passed"],
)
def test_a_reader_reads_no_record_that_only_claims_to_be_long(
    passed_max: int,
    problem: str,
    writer: HandWriter,
    root: BookieRoot,
    memory_rig: Rig,
    sizes: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_reader, "CLAIMED_BYTES_MAX", passed_max)
    claim(memory_rig, writer, 8 * MIB)
    pages = JournalPages(journal_of(writer), DIGESTER, ledger_id=writer.ledger_id)
    found = [page for entry_id in (11, 12, 40) if (page := pages.page_of(root, entry_id))]
    assert any(page.record_of(11) for page in found)
    assert problem in found[-1].problem
    reader = JournalReader(root, journal_of(writer), DIGESTER, ledger_id=writer.ledger_id)
    assert sum(reader.stored(*span) is not None for span in reader.frames()) == 1 + 12
    assert max(sizes) <= MIB
    assert sum(sizes) < 4 * MIB


# --- files that were only made longer ------------------------------------------------------------


def lengthen(rig: Rig, writer: HandWriter, rest: bytes) -> int:
    """Let the journal go on with ``rest``; returns where it ended."""
    name = writer.names[0]
    whole = rig.file_bytes(name, journal_of(writer))
    rig.replace_file(name, journal_of(writer), whole + rest)
    return len(whole)


def test_a_recovery_passes_little_of_the_emptiness_that_a_journal_claims(
    writer: HandWriter,
    root: BookieRoot,
    memory_rig: Rig,
    sizes: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_reader, "SEARCH_BYTES", 2 * MIB)
    monkeypatch.setattr(journal_reader, "DAMAGE_BYTES_MAX", 8 * MIB)
    lengthen(memory_rig, writer, bytes(16 * MIB))
    tail = tail_of(root, writer)
    assert [stored.record.first_entry_id for stored in tail.records] == [9, 10, 11]
    assert (tail.tail, tail.hidden) == (Tail.CORRUPT, ((12, None),))
    assert tail.rest_bytes == 16 * MIB
    assert sum(sizes) < 6 * MIB


def test_a_recovery_looks_no_further_than_damage_can_reach(
    writer: HandWriter,
    root: BookieRoot,
    memory_rig: Rig,
    sizes: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_reader, "DAMAGE_BYTES_MAX", 4 * MIB)
    lengthen(memory_rig, writer, b"\xff" * (16 * MIB))
    tail = tail_of(root, writer)
    assert [stored.record.first_entry_id for stored in tail.records] == [9, 10, 11]
    assert (tail.tail, tail.hidden) == (Tail.CORRUPT, ((12, None),))
    assert sum(sizes) < 8 * MIB


@pytest.mark.parametrize("more", [0, 1])
def test_more_emptiness_than_any_writer_leaves_is_damage(
    more: int,
    writer: HandWriter,
    root: BookieRoot,
    memory_rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_reader, "DAMAGE_BYTES_MAX", 1000)
    lengthen(memory_rig, writer, bytes(1000 + more))
    assert tail_of(root, writer).tail is (Tail.CORRUPT if more else Tail.INCOMPLETE)


def test_a_long_record_that_is_torn_is_passed_on_the_way_back(
    writer: HandWriter,
    root: BookieRoot,
    memory_rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_reader, "SEARCH_BYTES", MIB)
    end = lengthen(memory_rig, writer, b"\xff" * (3 * MIB))
    reader = JournalReader(root, journal_of(writer), DIGESTER, ledger_id=writer.ledger_id)
    found = next(reader.backwards(reader.stored, past_damage=True))
    assert (found.end, found.record.first_entry_id) == (end, 11)


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of bookies on disks."""
    return counted(monkeypatch, PosixRoot, most=512 * MIB)


def make_terabytes_long(rig: Rig, bookie_id: str) -> None:
    folder = Path(posix_place.path_of(rig.urls[bookie_id]))
    [path] = (folder / name for name in rig.names(bookie_id) if "/journal/" in name)
    os.truncate(path, 2**42)


@pytest.mark.thorough
def test_a_journal_that_claims_terabytes_keeps_no_recovery_busy(
    make_rig: Callable[..., Rig], bytes_read: list[int]
) -> None:
    rig = make_rig(kind="file", bookie_count=3)
    writer = HandWriter(rig)
    for _ in range(3):
        writer.add(0, 1, 2, acknowledges=True)
    make_terabytes_long(rig, writer.names[0])
    told: list[str] = []
    with BookKeeper(rig.uri) as keeper:
        ledger = keeper.open_ledger(writer.ledger_id, recovery=False)
        assert ledger.last_add_confirmed == 1
        assert sum(bytes_read) < 200 * MIB
        bytes_read.clear()
        assert writer.recover(tell=told.append).last_entry_id == 2
        assert sum(bytes_read) < 200 * MIB
        [line] = [line for line in told if f"bookie {writer.names[0]} " in line]
        assert "and data follows them (4,398,0" in line
        found = [entry.value for entry in keeper.open_ledger(writer.ledger_id).read(0, 2)]
    assert found == list(writer.sent.values())


@pytest.mark.thorough
def test_a_log_whose_tail_claims_terabytes_is_opened_for_writing(
    make_rig: Callable[..., Rig], bytes_read: list[int]
) -> None:
    rig = make_rig(kind="file", bookie_count=3)
    with BookKeeper(rig.uri) as first, BookKeeper(rig.uri) as second:
        log = first.create_log("wal")
        displaced = log.writer()
        displaced.append(b"0")
        make_terabytes_long(rig, "bookie-1")
        with second.open_log("wal").writer() as writer:
            assert writer.append(b"1") == 1
        assert [entry.value for entry in log.read()] == [b"0", b"1"]
        displaced.release()
    assert sum(bytes_read) < 400 * MIB
