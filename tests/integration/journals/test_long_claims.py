"""Journals that claim more than can be believed: what is read and held of them is bounded."""

import pytest

from bkspark.bookie.contract import BookieRoot
from bkspark.bookie.memory import MemoryRoot
from bkspark.errors import CorruptDataError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.ledger.journals import journal_reader
from bkspark.ledger.journals.journal_pages import JournalPages
from bkspark.ledger.journals.journal_reader import JournalReader
from bkspark.ledger.recovery import journal_tail
from bkspark.ledger.recovery.journal_tail import JournalTail, read_tail
from bkspark.protocol.ledger.metadata import DigestSpec
from tests.integration.hand_writer import HandWriter
from tests.integration.rig import Rig

DIGESTER = Digester(DigestSpec(), None)
MIB = 2**20


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much is read at once."""
    found: list[int] = []
    read = MemoryRoot.read

    def counting(
        self: MemoryRoot, name: str, begin: int = 0, length: int | None = None
    ) -> bytes | None:
        data = read(self, name, begin, length)
        found.append(len(data or b""))
        return data

    monkeypatch.setattr(MemoryRoot, "read", counting)
    return found


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
    return read_tail(root, journal_of(writer), DIGESTER, ledger_id=writer.ledger_id, after=-1)


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
    found = journal_tail._without_old_rows(reader.forwards(reader.stored), -1)
    assert [bool(stored.messages) for stored in found] == [False] * (1 + 9) + [True] * 3


def test_more_unconfirmed_rows_than_any_writer_has_are_doubted(
    writer: HandWriter, root: BookieRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = sum(stored.byte_count for stored in tail_of(root, writer).records)
    monkeypatch.setattr(journal_tail, "IN_FLIGHT_BYTES_MAX", size)
    assert len(tail_of(root, writer).records) == 3
    monkeypatch.setattr(journal_tail, "IN_FLIGHT_BYTES_MAX", size - 1)
    with pytest.raises(CorruptDataError, match="bytes of rows are unconfirmed"):
        tail_of(root, writer)


@pytest.mark.parametrize(
    ("passed_max", "problem"),
    [(2 * MIB, "ends in bytes that are wrong"), (64 * MIB, "is damaged at byte")],
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
