"""What it costs to look at an open tail, and records that are put together from journals."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from bkspark.bookie import memory
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import make_digester
from bkspark.errors import (
    CorruptDataError,
)
from bkspark.format import journal, layout
from bkspark.ledger.journals.journal_pages import JournalEnds, JournalName
from bkspark.ledger.journals.journal_reader import CHUNK_BYTES
from bkspark.ledger.recovery.recover import recover
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.log.reading import ledger_files
from bkspark.log.reading.ledger_files import OpenBookies, find_records
from bkspark.log.reading.log_view import LogWatch
from bkspark.protocol.ledger.record import AddRecord
from tests.integration.open_tails import (
    NO_PASSWORD,
    create_log,
    look,
    numbers,
    opened,
    table,
)
from tests.integration.rig import LOG, SCHEMA, Rig, partitions_of
from tests.integration.waiting import wait_for_all_copies


@pytest.fixture
def cluster(memory_rig: Rig) -> Iterator[Cluster]:
    with Cluster(memory_rig.uri) as found:
        yield found


# --- cost ----------------------------------------------------------------------------------------


def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What is read of journals from now on, in bytes."""
    sizes: list[int] = []
    read = memory.MemoryRoot.read

    def counting(self: Any, name: str, begin: int = 0, length: int | None = None) -> bytes | None:
        data = read(self, name, begin, length)
        if "/journal/" in name:
            sizes.append(len(data or b""))
        return data

    monkeypatch.setattr(memory.MemoryRoot, "read", counting)
    return sizes


def test_a_look_does_not_cost_more_in_a_long_ledger_and_costs_nothing_without_news(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_log(cluster)
    writer = opened(cluster)
    text = pa.array(["x" * 1000] * 50)
    for first in range(0, 2000, 50):
        rows = pa.table([pa.array(range(first, first + 50), pa.int64()), text], schema=SCHEMA)
        writer.append_many(rows)
    wait_for_all_copies(writer._segment.handle)  # a journal that grows is looked at again
    sizes = bytes_read(monkeypatch)
    watch = LogWatch(cluster, LOG, NO_PASSWORD)
    assert watch.look().end_offset == 1950
    assert 0 < sum(sizes) <= 3 * CHUNK_BYTES * 10
    sizes.clear()
    assert watch.look().end_offset == 1950
    assert sizes == []
    writer.append_many(table(2000, 1))
    wait_for_all_copies(writer._segment.handle)
    assert watch.look().end_offset == 2000
    assert 0 < sum(sizes) <= 3 * CHUNK_BYTES * 10
    writer.release()


def test_a_torn_end_is_read_from_where_the_last_look_ended(
    memory_rig: Rig, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_log(cluster)
    writer = opened(cluster)
    for n in range(30):
        writer.append_many(table(n, 1))
    writer.release()
    [ledger_id] = cluster.log(LOG).value.tail
    ledger = cluster.ledger(ledger_id).value
    watch = LogWatch(cluster, LOG, NO_PASSWORD)
    assert watch.look().end_offset == 29
    name = layout.journal(ledger_id, ledger.term, ledger.token)
    first = ledger.last_fragment.ensemble[0].bookie_id
    data = memory_rig.file_bytes(first, name)
    memory_rig.replace_file(first, name, data + data[:70])
    sizes = bytes_read(monkeypatch)
    assert watch.look().end_offset == 29
    whole = sum(sizes)
    assert LogWatch(cluster, LOG, NO_PASSWORD).look().end_offset == 29
    assert sum(sizes) - whole > whole
    with OpenBookies(cluster) as bookies:
        member = ledger.last_fragment.ensemble[0]
        digester = make_digester(ledger.settings.digest, NO_PASSWORD)
        source = JournalName(ledger_id, member, name, digester)
        end = JournalEnds().look(bookies.root(member), source)
        assert end.record is not None
        assert end.record.last_entry_id == 29


# --- a sink's tail: records that name entry logs -------------------------------------------------


def sink_tail(rig: Rig, cluster: Cluster, counts: list[int], failing: str = "") -> int:
    """An open tail with a record for each of ``counts``; the ensemble changes after the first."""
    create_log(cluster)
    target = rig.target()
    digester = make_digester(target.digest, NO_PASSWORD)
    first = 0
    with rig.faults.installed(), Cluster(rig.uri) as own:
        seen = own.ledger(target.ledger_id)
        writer = RecordWriter(
            own, seen, digester, target.ensemble, term=target.term, token=target.token
        )
        for number, count in enumerate(counts):
            if number == 1 and failing:
                rig.faults.down = {target.ensemble[1].bookie_id}
            reports = rig.tasks(target, partitions_of(count, first=first))
            writer.write(reports, spares=target.spares, transaction=None)
            first += count
        rig.faults.forget()
        writer.confirm()
        writer.close()
    ledger = cluster.ledger(target.ledger_id).value
    cluster.logs.update(LOG, lambda log: log.with_tail(ledger))  # type: ignore[union-attr]
    return target.ledger_id


@pytest.mark.parametrize("failing", ["", "one bookie"])
@pytest.mark.parametrize("is_recovered", [False, True])
def test_records_that_name_entry_logs_are_put_together(
    failing: str, is_recovered: bool, memory_rig: Rig, cluster: Cluster
) -> None:
    ledger_id = sink_tail(memory_rig, cluster, [5, 7, 1, 4], failing)
    if is_recovered:
        recover(cluster, ledger_id, NO_PASSWORD)
    assert len(cluster.ledger(ledger_id).value.fragments) == (2 if failing else 1)
    view = look(cluster)
    assert view.end_offset == 17
    for begin, end in ((0, 17), (5, 12), (4, 13), (11, 12), (16, 17)):
        assert numbers(cluster, view, begin, end) == list(range(begin, end))


def test_a_journal_that_lacks_records_is_not_all_there_is(
    memory_rig: Rig, cluster: Cluster
) -> None:
    ledger_id = sink_tail(memory_rig, cluster, [5, 7, 4])
    ledger = cluster.ledger(ledger_id).value
    name = layout.journal(ledger_id, ledger.term, ledger.token)
    member = ledger.last_fragment.ensemble[0]
    data = memory_rig.file_bytes(member.bookie_id, name)
    digester = make_digester(ledger.settings.digest, NO_PASSWORD)
    [first, *_] = journal.decode_journal(data, digester, ledger_id=ledger_id).frames
    length = next(
        size
        for size in range(1, len(data))
        if len(journal.decode_journal(data[:size], digester, ledger_id=ledger_id).frames) == 1
    )
    assert first.record.last_entry_id == 4
    memory_rig.replace_file(member.bookie_id, name, data[:length])
    assert numbers(cluster, look(cluster), 0, 16) == list(range(16))


def test_a_record_that_no_journal_has_is_no_end_and_no_gap(
    memory_rig: Rig, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_id = sink_tail(memory_rig, cluster, [5, 7, 4])
    ledger = cluster.ledger(ledger_id).value
    real = ledger_files.records_after

    def without_the_second(*arguments: Any) -> list[AddRecord]:
        return [record for record in real(*arguments) if record.first_entry_id != 5]

    monkeypatch.setattr(ledger_files, "records_after", without_the_second)
    with OpenBookies(cluster) as bookies:
        assert len(find_records(bookies, ledger, NO_PASSWORD, end=5)) == 1
        for begin, end in ((0, 16), (4, 13), (6, 11), (5, 16)):
            with pytest.raises(CorruptDataError, match="some are in no journal"):
                find_records(bookies, ledger, NO_PASSWORD, begin=begin, end=end)


def test_the_end_of_a_long_journal_is_planned_without_the_rest(
    memory_rig: Rig, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_tail(memory_rig, cluster, [1] * 450)
    view = look(cluster)
    sizes = bytes_read(monkeypatch)
    assert numbers(cluster, view, 0, 450) == list(range(450))
    whole = sum(sizes)
    sizes.clear()
    assert numbers(cluster, view, 445, 448) == [445, 446, 447]
    assert 0 < sum(sizes) <= CHUNK_BYTES < whole


def test_records_of_another_writer_of_the_same_term_are_left_out(
    memory_rig: Rig, cluster: Cluster
) -> None:
    ledger_id = sink_tail(memory_rig, cluster, [5])
    ledger = cluster.ledger(ledger_id).value
    with OpenBookies(cluster) as bookies:
        [record] = find_records(bookies, ledger, NO_PASSWORD, end=5)
        foreign = replace(ledger, token="f" * 32)
        with pytest.raises(CorruptDataError, match="no bookie gives the add records"):
            find_records(bookies, foreign, NO_PASSWORD, end=5)
        later = replace(ledger, token="f" * 32, term=ledger.term + 1)
        assert list(find_records(bookies, later, NO_PASSWORD, end=5)) == [record]
