"""How a reader of some columns of an entry log asks its bookie; what it gives if not all comes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event

import pyarrow as pa
import pytest

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.memory import MemoryRoot
from bkspark.bookie.posix import PosixRoot
from bkspark.cluster import bookie_client
from bkspark.cluster.bookie_client import BookieClient, NoAnswerError, TimedRoot
from bkspark.errors import BookieUnavailableError, CorruptDataError
from bkspark.format.arrow_message import BatchHeader, BatchLayout, decode_columns
from bkspark.ledger import entry_log_reader
from bkspark.ledger.entry_log_reader import EntryLogFile
from tests.unit.format.forging import message
from tests.unit.format.material import LEDGER, StoredLog, digester, entry_log

ROWS = [
    pa.record_batch({"a": [n] * 300, "b": ["x" * n] * 300, "c": [n * 10] * 300}) for n in range(8)
]


@dataclass
class OneFile:
    """A root with one entry log, which answers each read alone.

    Attributes:
        silent_from: pieces from this position of the file on have no answer.
        cut_at: what follows is cut off.
        asked: the ranges of each question.
    """

    data: bytes
    silent_from: int = 2**62
    cut_at: int = 2**62
    asked: list[list[tuple[int, int]]] = field(default_factory=list)
    bytes_per_request: int = 0

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        del name
        self.asked.append([(begin, length or 0)])
        return self._piece(begin, length or 0)

    def _piece(self, begin: int, length: int) -> bytes:
        if begin >= self.silent_from:
            raise BookieUnavailableError("no answer")
        return self.data[begin : min(begin + length, self.cut_at)]

    def size(self, name: str) -> int | None:
        del name
        return len(self.data)

    def list(self, folder: str) -> list[str]:
        del folder
        return []


class Together(OneFile):
    """Answers several reads in one question."""

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes | None]:
        del name
        self.asked.append([*ranges])
        found: list[bytes | None] = []
        for begin, length in ranges:
            try:
                found.append(self._piece(begin, length))
            except BookieUnavailableError:
                if not found:
                    raise
                break
        return found


@pytest.fixture
def stored() -> StoredLog:
    return entry_log(*ROWS)


def opened(root: OneFile, stored: StoredLog) -> EntryLogFile:
    file = EntryLogFile(root, stored.log, digester(), ledger_id=LEDGER)
    root.asked.clear()
    return file


def rows(file: EntryLogFile, stored: StoredLog, columns: Sequence[int]) -> Iterator[pa.RecordBatch]:
    return file.rows_of(file.blocks, BatchLayout(stored.schema), columns)


def test_small_pieces_of_many_blocks_are_one_question(stored: StoredLog) -> None:
    root = Together(stored.data)
    file = opened(root, stored)
    assert [*rows(file, stored, [2])] == [batch.select([2]) for batch in ROWS]
    [question] = root.asked
    sections = [block.sections([2]) for block in file.blocks]
    assert question == [
        (block.offset + one.begin, one.length)
        for block, found in zip(file.blocks, sections, strict=True)
        for one in found
    ]


def test_a_question_has_a_bounded_size(stored: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Together(stored.data)
    file = opened(root, stored)
    two = sum(one.length for block in file.blocks[:2] for one in block.sections([0]))
    monkeypatch.setattr(entry_log_reader, "READ_TOGETHER_BYTES", two)
    assert [*rows(file, stored, [0])] == [batch.select([0]) for batch in ROWS]
    assert len(root.asked) == len(ROWS) / 2
    assert all(sum(length for _, length in question) <= two for question in root.asked)


def test_a_large_block_is_read_alone_and_whole(
    stored: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_log_reader, "READ_TOGETHER_BYTES", 1)
    root = Together(stored.data)
    file = opened(root, stored)
    assert [*file.rows_of(file.blocks, BatchLayout(stored.schema))] == ROWS
    assert root.asked == [[(block.offset, block.length)] for block in file.blocks]


@pytest.mark.parametrize("kind", [OneFile, Together])
def test_blocks_before_a_piece_without_an_answer_are_given(
    stored: StoredLog, kind: Callable[..., OneFile]
) -> None:
    root = kind(stored.data)
    file = opened(root, stored)
    root.silent_from = file.blocks[5].offset
    found = rows(file, stored, [1])
    assert [next(found) for _ in range(5)] == [batch.select([1]) for batch in ROWS[:5]]
    with pytest.raises(BookieUnavailableError):
        next(found)


@pytest.mark.parametrize("kind", [OneFile, Together])
def test_blocks_before_a_cut_are_given(stored: StoredLog, kind: Callable[..., OneFile]) -> None:
    root = kind(stored.data)
    file = opened(root, stored)
    root.cut_at = file.blocks[5].offset + 8
    found = rows(file, stored, [1])
    assert [next(found) for _ in range(5)] == [batch.select([1]) for batch in ROWS[:5]]
    with pytest.raises(CorruptDataError, match="is cut"):
        next(found)


class TwoAnswers:
    """A root whose third read has no answer."""

    def __init__(self, answers: int) -> None:
        self.left = answers

    def read(self, name: str, begin: int, length: int) -> bytes | None:
        self.left -= 1
        if self.left < 0:
            raise BookieUnavailableError("no answer")
        return None if name == "gone" else bytes(range(begin, begin + length))


def asking(monkeypatch: pytest.MonkeyPatch, answers: int) -> TimedRoot:
    client = BookieClient(BookieAddress("b", "i", "c", "memory://b"))
    root = TwoAnswers(answers)
    monkeypatch.setattr(bookie_client.BookieClient, "root", lambda _client: root)
    return client.storage()


def test_a_client_reads_ranges_up_to_the_first_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranges = [(0, 2), (4, 1), (8, 3)]
    assert asking(monkeypatch, 3).read_ranges("x", ranges) == [b"\0\1", b"\4", b"\x08\x09\x0a"]
    assert asking(monkeypatch, 2).read_ranges("x", ranges) == [b"\0\1", b"\4"]
    assert asking(monkeypatch, 2).read_ranges("gone", ranges) == [None, None]
    with pytest.raises(BookieUnavailableError):
        asking(monkeypatch, 0).read_ranges("x", ranges)


def test_a_client_has_what_was_read_before_a_bookie_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, goes_on = Event(), Event()

    def read(_name: str, begin: int, length: int) -> bytes:
        if begin:
            hangs.set()
            goes_on.wait()
        return bytes(length)

    def ask(client: BookieClient, question: Callable[[], object], _seconds: float) -> None:
        asked.append(environment.start(question, "asked"))
        hangs.wait()
        raise NoAnswerError(f"bookie {client.address.bookie_id} gave no answer")

    asked: list[environment.Task] = []
    root = asking(monkeypatch, 0)
    monkeypatch.setattr(TwoAnswers, "read", lambda _root, *what: read(*what))
    monkeypatch.setattr(BookieClient, "ask", ask)
    found = root.read_ranges("x", [(0, 2), (4, 1)])
    goes_on.set()
    asked[0].join(60)
    assert found == [b"\0\0"]


def test_a_near_column_costs_less_than_a_request() -> None:
    """A local file gives a range in the time of some 30 KiB, which are paid for twice."""
    assert PosixRoot.bytes_per_request == 32 * 2**10
    assert MemoryRoot.bytes_per_request < PosixRoot.bytes_per_request


# --- decoding ------------------------------------------------------------------------------------


def column(data: bytes, layout: BatchLayout, number: int) -> pa.RecordBatch:
    header = BatchHeader(data)
    return decode_columns(
        data, layout, [number], header, row_count=header.row_count, unpacked_bytes_max=0
    )


def test_one_stream_decodes_the_blocks_of_a_file() -> None:
    layout = BatchLayout(ROWS[0].schema)
    assert [column(message(one), layout, 1) for one in ROWS] == [one.select([1]) for one in ROWS]
    stream = layout.stream_of([1])
    assert layout.stream_of([1]) is stream
    assert column(message(ROWS[3]), layout, 2) == ROWS[3].select([2])
    assert layout.stream_of([2]) is not stream


def test_a_malformed_block_does_not_matter_to_the_next() -> None:
    layout = BatchLayout(ROWS[0].schema)
    good = message(ROWS[2])
    assert column(good, layout, 1) == ROWS[2].select([1])
    for bad in (good[:-8], good + bytes(8), good + good):
        with pytest.raises((ValueError, OSError)):
            column(bad, layout, 1)
        assert column(good, layout, 1) == ROWS[2].select([1])


def test_only_a_record_batch_has_a_header() -> None:
    with pytest.raises(ValueError, match="no message of a record batch"):
        BatchHeader(ROWS[0].schema.serialize().to_pybytes())
