"""What a reader holds and reads does not grow with the ledger."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from bkspark.bookie.memory import MemoryRoot
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.password import Password
from bkspark.ledger.handles.settings import ReaderSettings, WriterSettings
from bkspark.ledger.journals import journal_pages, journal_reader
from bkspark.log.reading.read_slices import plan_ledger
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import InlineSlice, OffsetRange, ReadTask
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies

MEGABYTE = 2**20
SILENT = WriterSettings(explicit_lac_ms=0)
"""The records alone tell what is confirmed, however long a machine pauses between two of them."""
GROWTH_MAX = 48 * MEGABYTE
"""What a handle may keep, a page on its way, and allocator slack."""

READER = """
import resource, sys
import bkspark

with bkspark.BookKeeper(sys.argv[1]) as keeper:
    reader = keeper.open_ledger(int(sys.argv[2]))
    assert sum(len(entry.value) for entry in reader.read()) == int(sys.argv[3])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


class Amounts:
    """Bytes read of journals on memory bookies, by range."""

    def __init__(self) -> None:
        self.total = 0
        self.begins: list[int] = []


@pytest.fixture
def amounts(monkeypatch: pytest.MonkeyPatch) -> Amounts:
    real, amounts = MemoryRoot.read, Amounts()

    def counted(
        root: MemoryRoot, name: str, begin: int = 0, length: int | None = None
    ) -> bytes | None:
        data = real(root, name, begin, length)
        amounts.total += len(data or b"")
        amounts.begins.append(begin)
        return data

    monkeypatch.setattr(MemoryRoot, "read", counted)
    return amounts


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def test_a_ledger_of_200_megabytes_needs_no_more_memory_than_one_of_10(tmp_path: Path) -> None:
    uri = (tmp_path / "meta").as_uri()
    init_cluster(uri, [(tmp_path / "disk").as_uri()])
    peaks = []
    with BookKeeper(uri) as keeper:
        for megabytes in (10, 200):
            with keeper.create_ledger(
                ensemble_size=1, write_quorum_size=1, ack_quorum_size=1
            ) as handle:
                for _ in range(megabytes):
                    handle.append_many([bytes(2**12)] * 256)
            size = megabytes * MEGABYTE
            command = [sys.executable, "-P", "-c", READER, uri, str(handle.ledger_id), str(size)]
            told = subprocess.run(command, check=True, capture_output=True, text=True)
            peaks.append(int(told.stdout))
    assert peaks[1] - peaks[0] < GROWTH_MAX, peaks


@pytest.mark.parametrize("sizes", [(3, 3, 2), (5, 3, 2)])
def test_polling_and_following_reads_what_was_appended_and_no_more(
    sizes: tuple[int, int, int], keeper: BookKeeper, amounts: Amounts
) -> None:
    e, qw, qa = sizes
    polled, opened = [], []
    for length in (20, 600):
        with keeper.create_ledger(
            ensemble_size=e, write_quorum_size=qw, ack_quorum_size=qa, settings=SILENT
        ) as handle:
            for _ in range(length):
                handle.append_many([bytes(500)] * 10)
            wait_for_all_copies(handle)
            amounts.total = 0
            reader = keeper.open_ledger(handle.ledger_id, recovery=False)
            opened.append(amounts.total)
            last = reader.last_add_confirmed
            assert last >= 10 * (length - 1) - 1
            assert len(list(reader.read(last, last))) == 1
            amounts.total = 0
            for _ in range(5):
                handle.append_many([bytes(500)] * 10)
                wait_for_all_copies(handle)  # what it confirms is told by who has it
                assert reader.read_last_add_confirmed() > last
                following = list(reader.read(last + 1))
                last = following[-1].entry_id
            polled.append(amounts.total)
    assert opened[1] < 500_000
    assert polled[1] < 1.5 * polled[0] < 600_000


def test_looking_for_news_where_there_are_none_reads_nothing(
    keeper: BookKeeper, amounts: Amounts
) -> None:
    with keeper.create_ledger() as handle:
        handle.append(b"a")
        reader = keeper.open_ledger(handle.ledger_id, recovery=False)
        assert reader.wait_for(0, timeout=20)
        wait_for_all_copies(handle)  # of the confirmation too
        reader.read_last_add_confirmed()
        amounts.total = 0
        assert reader.read_last_add_confirmed() == 0
        assert amounts.total == 0


def pieces_of(tasks: list[ReadTask]) -> list[InlineSlice]:
    items = [item for task in tasks for item in task.slices]
    return [item for item in items if isinstance(item, InlineSlice)]


@pytest.mark.parametrize("sizes", [(3, 3, 2), (5, 3, 2)])
def test_tasks_that_share_a_ledger_read_each_its_part(
    sizes: tuple[int, int, int],
    keeper: BookKeeper,
    memory_rig: Rig,
    amounts: Amounts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_pages, "PAGE_BYTES", 20_000)
    monkeypatch.setattr(journal_reader, "CHUNK_BYTES", 5_000)
    monkeypatch.setattr(journal_reader, "CHUNK_BYTES_MAX", 20_000)
    e, qw, qa = sizes
    with keeper.create_ledger(ensemble_size=e, write_quorum_size=qw, ack_quorum_size=qa) as handle:
        for group in range(400):
            handle.append_many([b"%d" % n + bytes(200) for n in range(5 * group, 5 * group + 5)])
    with Cluster(memory_rig.uri) as cluster:
        ledger = cluster.ledger(handle.ledger_id).value
        assert ledger.length_bytes is not None
        share = -(-ledger.length_bytes // 8)
        tasks = plan_ledger(cluster, ledger, OffsetRange(0, 2000), Password(), share)
        amounts.total = 0
        whole = plan_ledger(cluster, ledger, OffsetRange(0, 2000), Password(), 2**40)
        assert amounts.total < 200_000
    assert len(whole) == 1
    pieces = pieces_of(tasks)
    assert len(pieces) == 8
    wanted = pa.schema([("value", pa.binary()), ("_entry_id", pa.int64())])
    read, rows = [], []
    for task in tasks:
        amounts.total = 0
        for batch in SliceReader(wanted).read(task):
            rows += [(row["_entry_id"], row["value"]) for row in batch.to_pylist()]
        read.append(amounts.total)
    assert rows == [(n, b"%d" % n + bytes(200)) for n in range(2000)]
    copies = 1 if e == qw else qw
    assert max(read) < 2.5 * copies * ledger.length_bytes / 8


def test_where_parts_begin_is_not_looked_up_for_a_ledger_that_is_not_shared(
    keeper: BookKeeper, memory_rig: Rig
) -> None:
    with keeper.create_ledger() as handle:
        handle.append_many([b"a"] * 10)
    with Cluster(memory_rig.uri) as cluster:
        ledger = cluster.ledger(handle.ledger_id).value
        [task] = plan_ledger(cluster, ledger, OffsetRange(0, 10), Password(), None)
    [piece] = pieces_of([task])
    assert piece.index == ()


def test_a_slow_bookie_and_a_hedge_keep_memory_bounded_too(keeper: BookKeeper) -> None:
    """Answers that come too late are dropped, not kept."""
    with keeper.create_ledger() as handle:
        for _ in range(50):
            handle.append_many([bytes(10_000)] * 10)
    settings = ReaderSettings(speculative_read_ms=0.001)
    reader = keeper.open_ledger(handle.ledger_id, settings=settings)
    assert sum(len(entry.value) for entry in reader.read()) == 5_000_000
    kept = [page for _, page in reader._entry_reader._pages]
    assert len(kept) <= 64
    assert sum(page.byte_count for page in kept) <= 2 * 16 * MEGABYTE
