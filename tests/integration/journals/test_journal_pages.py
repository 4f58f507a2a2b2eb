"""Journals read by pages: what is found does not depend on page sizes, what is read does."""

import random
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from bkspark.bookie import memory
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.memory import MemoryFile, MemoryRoot
from bkspark.cluster.cluster import Cluster
from bkspark.format import journal
from bkspark.format.digest import Digester
from bkspark.ledger.handles.entries import VALUE_SCHEMA, encode_parts
from bkspark.ledger.journals import journal_pages, journal_reader
from bkspark.ledger.journals.journal_pages import JournalPages
from bkspark.ledger.journals.journal_reader import JournalReader
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, confirmation
from tests.integration.rig import Rig

NAME = "ledgers/x/journal/j"
DIGESTER = Digester(DigestSpec(), None)
QUORUM = Quorum(1, 1, 1)


class Kept:
    """A journal on a memory bookie, and how much of it is read."""

    def __init__(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        with Cluster(rig.uri) as cluster:
            self.address: BookieAddress = next(iter(cluster.addresses().values()))
        disk = memory.find_disk(self.address.url)
        assert disk is not None
        self.file = disk.files[NAME] = MemoryFile()
        self.next = 0
        self.frames: list[int] = []
        self.bytes_read = 0
        self.read_from: list[int] = []
        self.sizes: list[int] = []
        real = MemoryRoot.read

        def counted(
            root: MemoryRoot, name: str, begin: int = 0, length: int | None = None
        ) -> bytes | None:
            data = real(root, name, begin, length)
            self.bytes_read += len(data or b"")
            self.read_from.append(begin)
            self.sizes.append(len(data or b""))
            return data

        monkeypatch.setattr(MemoryRoot, "read", counted)

    def append(self, count: int, size: int = 10) -> None:
        """A group of ``count`` entries of ``size`` bytes each."""
        rows = pa.record_batch([[b"%d" % n + bytes(size) for n in range(count)]], VALUE_SCHEMA)
        place = {"ledger_id": 7, "first_entry_id": self.next}
        parts, messages = encode_parts(rows, DIGESTER, quorum=QUORUM, **place)
        last = self.next + count - 1
        record = AddRecord(
            *(7, 1, "a" * 32, self.next, last, self.next - 1, last * size, QUORUM),
            (-1,) * QUORUM.ensemble_size,
            rows=parts,
        )
        self._write(journal.encode(record, DIGESTER, messages))
        self.next = last + 1

    def confirm(self) -> None:
        said = confirmation(
            ledger_id=7,
            term=1,
            token="a" * 32,
            last_add_confirmed=self.next - 1,
            length_bytes=0,
            quorum=QUORUM,
        )
        self._write(journal.encode(said, DIGESTER))

    def _write(self, encoded: journal.EncodedRecord) -> None:
        self.frames.append(len(self.file.data))
        self.file.data += b"".join(bytes(x) for x in encoded.frame(0, len(self.file.data)))

    def flip(self, at: int) -> None:
        self.file.data[at] ^= 1

    def root(self) -> MemoryRoot:
        return MemoryRoot(self.address)


@pytest.fixture
def kept(memory_rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Kept:
    return Kept(memory_rig, monkeypatch)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_pages, "PAGE_BYTES", 4000)
    monkeypatch.setattr(journal_reader, "CHUNK_BYTES", 1500)
    monkeypatch.setattr(journal_reader, "CHUNK_BYTES_MAX", 4000)


def filled(kept: Kept, seed: int) -> Kept:
    """Groups of all sizes, some longer than a page, with confirmations between them."""
    source = random.Random(seed)
    for _ in range(60):
        kept.append(source.choice((1, 1, 1, 2, 7)), source.choice((0, 10, 100, 900, 6000)))
        if source.random() < 0.2:
            kept.confirm()
    return kept


def pages() -> JournalPages:
    return JournalPages(NAME, DIGESTER, ledger_id=7)


def is_found(kept: Kept, found: JournalPages, entry_id: int) -> bool:
    page = found.page_of(kept.root(), entry_id)
    group = page.record_of(entry_id) if page else None
    return group is not None and len(group.messages) == 1


def orders(count: int) -> Iterator[Sequence[int]]:
    yield range(count)
    yield range(count - 1, -1, -1)
    for seed in range(3):
        yield random.Random(seed).sample(range(count), count)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("small_pages")
def test_every_entry_is_found_in_any_order(seed: int, kept: Kept) -> None:
    filled(kept, seed)
    for order in orders(kept.next):
        found = pages()
        assert all(is_found(kept, found, entry_id) for entry_id in order)
        assert not is_found(kept, found, kept.next)


@pytest.mark.usefixtures("small_pages")
def test_in_order_every_byte_is_read_about_once(kept: Kept) -> None:
    for _ in range(300):
        kept.append(1, 200)
    found, page = pages(), None
    for entry_id in range(kept.next):
        if page is None or page.record_of(entry_id) is None:
            page = found.page_of(kept.root(), entry_id)
    assert kept.bytes_read < 1.5 * len(kept.file.data)


@pytest.mark.usefixtures("small_pages")
def test_who_reads_on_is_given_more_at_once_and_no_more_than_so_much(kept: Kept) -> None:
    for _ in range(300):
        kept.append(1, 200)
    for way in (JournalReader.frames, JournalReader.frames_back):
        kept.sizes.clear()
        found = list(way(JournalReader(kept.root(), NAME, DIGESTER, ledger_id=7)))
        assert sorted(begin for begin, _ in found) == kept.frames
        assert kept.sizes[:2] == [1500, 3000]
        assert max(kept.sizes) == 4000
        assert sum(kept.sizes) < 1.2 * len(kept.file.data)


@pytest.mark.usefixtures("small_pages")
def test_only_what_was_appended_is_read_of_a_journal_that_grows(kept: Kept) -> None:
    found = pages()
    for entry_id in range(300):
        kept.append(1, 200)
        kept.bytes_read = 0
        assert is_found(kept, found, entry_id)
        assert kept.bytes_read < 1.2 * (len(kept.file.data) - kept.frames[-1])


@pytest.mark.usefixtures("small_pages")
def test_large_records_are_passed_without_being_read(kept: Kept) -> None:
    for _ in range(100):
        kept.append(1, 30_000)
    for _ in range(70):
        kept.append(1, 300)
    found = pages()
    assert is_found(kept, found, 0)
    kept.bytes_read = 0
    assert is_found(kept, found, 99)
    assert kept.bytes_read < 0.25 * len(kept.file.data)


@pytest.mark.usefixtures("small_pages")
def test_an_entry_near_the_end_of_a_long_journal_is_found_from_its_end(kept: Kept) -> None:
    for _ in range(3000):
        kept.append(1, 100)
    kept.append(1, 9000)
    kept.append(1)
    for entry_id in (kept.next - 1, kept.next - 2, kept.next - 20):
        kept.bytes_read = 0
        found = pages()
        assert is_found(kept, found, entry_id)
        assert kept.bytes_read < 0.05 * len(kept.file.data)
    assert all(is_found(kept, found, entry_id) for entry_id in (0, 1500, kept.next - 1))


@pytest.mark.usefixtures("small_pages")
def test_damage_in_a_record_spares_its_neighbours(kept: Kept) -> None:
    filled(kept, 1)
    number = next(n for n in range(20, 60) if kept.frames[n + 1] - kept.frames[n] > 600)
    kept.flip(kept.frames[number] + 500)
    found = pages()
    lost = [entry_id for entry_id in range(kept.next) if not is_found(kept, found, entry_id)]
    assert lost
    assert lost == list(range(lost[0], lost[-1] + 1))
    page = found.page_of(kept.root(), lost[0])
    assert page is not None
    assert page.problem == f"is damaged at byte {kept.frames[number]}"
    assert not page.is_cut
    assert found.first_after(kept.root(), lost[0]) == lost[-1] + 1


@pytest.mark.usefixtures("small_pages")
def test_a_gap_ends_at_the_next_good_record_however_far(kept: Kept) -> None:
    kept.append(1)
    kept.append(20, 500)
    for _ in range(3):
        kept.append(1, 3000)
    for number in (1, 2):
        kept.flip(kept.frames[number] + 1000)
    found = pages()
    assert [n for n in range(kept.next) if is_found(kept, found, n)] == [0, 22, 23]
    for entry_id in range(1, 22):
        assert pages().first_after(kept.root(), entry_id) == 22
    assert pages().first_after(kept.root(), 22) == 23
    assert pages().first_after(kept.root(), 23) is None


@pytest.mark.usefixtures("small_pages")
def test_behind_a_damaged_prefix_nothing_is_believed(kept: Kept) -> None:
    for _ in range(40):
        kept.append(1, 100)
    kept.flip(kept.frames[10] + 9)
    kept.flip(len(kept.file.data) - 1)
    found = pages()
    assert [n for n in range(40) if is_found(kept, found, n)] == list(range(10))
    page = found.page_of(kept.root(), 30)
    assert page is not None
    assert "wrong bytes, and data follows" in page.problem
    kept.bytes_read = 0
    assert not is_found(kept, found, 31)
    assert kept.bytes_read == 0


@pytest.mark.parametrize("cut", [1, 12, 200])
def test_a_record_that_is_being_appended_is_found_when_it_is_whole(cut: int, kept: Kept) -> None:
    for _ in range(3):
        kept.append(1, 300)
    whole = bytes(kept.file.data)
    del kept.file.data[-cut:]
    found = pages()
    page = found.page_of(kept.root(), 2)
    assert page is not None
    assert page.is_cut
    assert page.record_of(2) is None
    kept.file.data[:] = whole
    assert is_found(kept, found, 2)


@pytest.mark.usefixtures("small_pages")
def test_a_walk_finds_marks_from_which_a_part_can_be_read(kept: Kept) -> None:
    filled(kept, 2)
    walked = pages()
    walked.walk(kept.root(), kept.next)
    assert len(walked.index) > 5
    for mark in walked.index:
        assert mark.position in kept.frames
        found = JournalPages(NAME, DIGESTER, ledger_id=7, start=mark)
        kept.read_from.clear()
        assert is_found(kept, found, max(mark.first_entry_id, 0))
        assert min(kept.read_from) >= mark.position
        assert is_found(kept, found, 0)
