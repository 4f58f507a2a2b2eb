"""What one bookie says of how far an open ledger may be read, and when that is all it had."""

from collections.abc import Iterator

import pytest

from bkspark import environment
from bkspark.bookie.contract import BookieRoot
from bkspark.bookie.memory import MemoryRoot
from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import BookieUnavailableError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.ledger.journals import journal_reader
from bkspark.ledger.journals.journal_pages import JournalEnds
from bkspark.ledger.journals.journal_reader import JournalReader
from bkspark.ledger.journals.member_journals import MemberEnd, member_end
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.record import confirmation
from tests.integration.hand_writer import HandWriter
from tests.integration.rig import Rig

DIGESTER = Digester(DigestSpec(), None)


@pytest.fixture
def writer(memory_rig: Rig) -> HandWriter:
    """A header and six entries on all three bookies; the last says that entry 4 is confirmed."""
    writer = HandWriter(memory_rig)
    for _ in range(6):
        writer.add(0, 1, 2, acknowledges=True)
    return writer


@pytest.fixture
def root(writer: HandWriter) -> Iterator[BookieRoot]:
    with open_bookie(writer._address(0)).open_root() as root:
        yield root


def journal_of(writer: HandWriter) -> str:
    return layout.journal(writer.ledger_id, 1, writer.metadata.token)


def end_of(writer: HandWriter, root: BookieRoot, known: JournalEnds | None = None) -> MemberEnd:
    ledger = writer.metadata
    member = ledger.last_fragment.ensemble[0]
    return member_end(root, member, ledger, DIGESTER, known or JournalEnds())


def cut(rig: Rig, writer: HandWriter, length: int) -> bytes:
    """Leave the first bookie so many bytes of its journal; returns all of them."""
    name, whole = writer.names[0], rig.file_bytes(writer.names[0], journal_of(writer))
    rig.replace_file(name, journal_of(writer), whole[:length])
    return whole


def ends_of_frames(data: bytes, ledger_id: int) -> list[int]:
    ends, at = [], 0
    while at < len(data):
        at += journal.frame_length(data, at, position=at) or len(data)
        ends.append(at)
    return ends


@pytest.mark.parametrize("chunk_bytes", [100, 64 * 1024])
def test_a_journal_that_ends_in_a_record_is_sure_and_any_other_is_not(
    chunk_bytes: int,
    writer: HandWriter,
    root: BookieRoot,
    memory_rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_reader, "CHUNK_BYTES", chunk_bytes)
    assert (end_of(writer, root).last_add_confirmed, end_of(writer, root).is_sure(None)) == (
        4,
        True,
    )
    whole = cut(memory_rig, writer, 0)
    ends = [0, *ends_of_frames(whole, writer.ledger_id)]
    wholes = {whole[:end] for end in ends[1:]}  # what holds nothing has lost its header
    for length in (*range(0, len(whole) + 1, 7), *ends):
        for data in (whole[:length], whole[:length] + b"?" * 30, whole[:length] + bytes(300)):
            memory_rig.replace_file(writer.names[0], journal_of(writer), data)
            found, records = end_of(writer, root), sum(end <= length for end in ends) - 2
            assert max(-1, records - 2) <= found.last_add_confirmed <= max(-1, records - 1)
            assert found.is_sure(None) <= (len(data) in ends)
            assert found.is_sure(None) >= (data in wholes)


def test_a_record_that_is_being_appended_leaves_no_doubt_once_it_is_there(
    writer: HandWriter, root: BookieRoot, memory_rig: Rig
) -> None:
    ends = ends_of_frames(memory_rig.file_bytes(writer.names[0], journal_of(writer)), 0)
    known = JournalEnds()
    whole = cut(memory_rig, writer, ends[4] + 20)
    before = end_of(writer, root, known)
    assert (before.last_add_confirmed, before.is_sure(None)) == (2, False)
    assert not end_of(writer, root, known).is_sure(before)  # nothing came since
    memory_rig.replace_file(writer.names[0], journal_of(writer), whole[: ends[5] + 20])
    after = end_of(writer, root, known)
    assert after.last_add_confirmed == 3
    assert after.is_sure(before)
    assert not after.is_sure(None)


def test_a_journal_that_has_become_shorter_leaves_a_doubt(
    writer: HandWriter, root: BookieRoot, memory_rig: Rig
) -> None:
    known = JournalEnds()
    assert end_of(writer, root, known).is_sure(None)
    ends = ends_of_frames(memory_rig.file_bytes(writer.names[0], journal_of(writer)), 0)
    cut(memory_rig, writer, ends[2])
    after = end_of(writer, root, known)
    assert after.last_add_confirmed == 4
    assert not after.is_sure(None)


def test_a_bookie_that_lost_the_ledgers_folder_is_not_empty(
    writer: HandWriter, root: BookieRoot, memory_rig: Rig
) -> None:
    memory_rig.replace_file(writer.names[0], journal_of(writer), None)
    for name in memory_rig.names(writer.names[0]):
        if "/terms/" in name:
            memory_rig.replace_file(writer.names[0], name, None)
    found = end_of(writer, root)
    assert not found.is_sure(None)
    assert found.problem == (
        f"bookie {writer.names[0]} has lost data of ledger 0: it lacks the marker that it stored "
        "before it became a member"
    )


def test_rows_that_look_like_a_record_are_none(
    writer: HandWriter, root: BookieRoot, memory_rig: Rig
) -> None:
    """An application has stored what a crash left at the journal's end."""
    whole = memory_rig.file_bytes(writer.names[0], journal_of(writer))
    forged = confirmation(
        ledger_id=writer.ledger_id,
        term=1,
        token="f" * 32,
        last_add_confirmed=99,
        length_bytes=1,
        quorum=writer.metadata.quorum,
    )
    position = len(whole) + 40
    frame = b"".join(bytes(piece) for piece in journal.encode(forged, DIGESTER).frame(0, position))
    memory_rig.replace_file(writer.names[0], journal_of(writer), whole + bytes(40) + frame)
    found = end_of(writer, root)
    assert found.last_add_confirmed == 4
    assert not found.is_sure(None)


def test_bookies_that_differ_are_asked_again_until_they_agree(
    writer: HandWriter, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was being appended to one of two that answer has arrived by the next look."""
    ends = ends_of_frames(memory_rig.file_bytes(writer.names[0], journal_of(writer)), 0)
    whole = cut(memory_rig, writer, ends[4])
    memory_rig.lose(writer.names[2])
    pauses = []

    def arrives(seconds: float) -> None:
        pauses.append(seconds)
        memory_rig.replace_file(writer.names[0], journal_of(writer), whole)

    monkeypatch.setattr(environment, "sleep", arrives)
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(writer.ledger_id, recovery=False)
        assert reader.last_add_confirmed == 4
        assert len(pauses) == 1
        memory_rig.lose(writer.names[1])
        with pytest.raises(BookieUnavailableError, match="is not known"):
            reader.read_last_add_confirmed()
        assert len(pauses) == 1  # asking again brings nobody back
        with pytest.raises(BookieUnavailableError, match="is not known"):
            reader.wait_for(5, timeout=0.1)
        assert [entry.entry_id for entry in reader.read()] == [0, 1, 2, 3, 4]


def test_a_long_journal_is_not_read_to_find_its_end(
    writer: HandWriter, root: BookieRoot, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is one that claims to be: what is read of bytes that are no records is bounded."""
    monkeypatch.setattr(journal_reader, "SEARCH_BYTES", 4 * 2**20)
    whole = memory_rig.file_bytes(writer.names[0], journal_of(writer))
    data = whole + b"\xff" * (64 * 2**20)
    memory_rig.replace_file(writer.names[0], journal_of(writer), data)
    sizes: list[int] = []
    read = MemoryRoot.read

    def counting(
        self: MemoryRoot, name: str, begin: int = 0, length: int | None = None
    ) -> bytes | None:
        found = read(self, name, begin, length)
        sizes.append(len(found or b""))
        return found

    monkeypatch.setattr(MemoryRoot, "read", counting)
    name, ledger_id = journal_of(writer), writer.ledger_id
    assert (
        JournalReader(root, name, DIGESTER, ledger_id=ledger_id).last_in_front_of_damage() is None
    )
    found = end_of(writer, root)
    assert (found.last_add_confirmed, found.is_sure(None)) == (4, False)
    assert max(sizes) <= journal_reader.CHUNK_BYTES_MAX + 100
    assert sum(sizes) < 16 * 2**20
