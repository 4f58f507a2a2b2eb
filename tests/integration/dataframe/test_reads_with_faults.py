"""Reading steps over what is bad: the next replica serves, and the fault is reported."""

import logging
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from bkspark.errors import CorruptDataError, NoSuchEntryError
from bkspark.format import journal, layout
from bkspark.log.batch.commit import commit
from bkspark.log.reading.slice_reader import SliceReader
from tests.integration.rig import SCHEMA, Rig, compressed, flat, partitions_of, rows_from
from tests.kit.faulty import Fault, Operation
from tests.thorough import always

Rigs = Callable[..., Rig]
WITH_OFFSET = pa.schema([("_offset", pa.int64()), *SCHEMA])
PARTITIONS = partitions_of(30, 11)
ROWS = flat(PARTITIONS)


def files_of(rig: Rig, bookie_id: str) -> list[str]:
    return [name for name in rig.names(bookie_id) if name.endswith(".arrow")]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "cut": lambda data: data[:-1],
    "cut in half": lambda data: data[: len(data) // 2],
    "a flip in its head": lambda data: flipped(data, 20),
    "a flip in its first block": lambda data: flipped(data, 400),
    "a flip in its tail": lambda data: flipped(data, len(data) - 9),
    "a page of zeros": lambda data: data[:512] + bytes(64) + data[576:],
}


def read(rig: Rig, **options: object) -> tuple[list[tuple[object, ...]], SliceReader]:
    reader = SliceReader(WITH_OFFSET, **options)
    log = rig.log()
    assert log is not None
    found = rig.batches(reader, log.first_offset, log.end_offset)
    rows = sorted(tuple(row.values()) for batch in found for row in batch.to_pylist())
    return rows, reader


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("quorum", always([(4, 3, 2)], [(3, 3, 2), (4, 3, 2)]))
def test_the_next_replica_serves(
    rig: Rig, quorum: tuple[int, int, int], damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = rig.write(PARTITIONS, quorum)
    victim = rig.ledger(result.ledger_id).last_fragment.ensemble[0].bookie_id
    for name in files_of(rig, victim):
        rig.replace_file(victim, name, DAMAGE[damage](rig.file_bytes(victim, name)))
    with caplog.at_level(logging.WARNING):
        rows, reader = read(rig)
    assert [row[1:] for row in rows] == ROWS
    assert {fault.bookie_id for fault in reader.faults} == {victim}
    assert all(fault.reason for fault in reader.faults)
    assert "skipped a copy" in caplog.text


def test_one_bad_file_of_the_first_ledger_does_not_condemn_its_bookie(make_rig: Rigs) -> None:
    """Each of two files is bad on another bookie; together all rows are there."""
    rig = make_rig(bookie_count=2)
    result = rig.write(PARTITIONS, (2, 2, 1))
    assert result.ledger_id == 0
    one, two = (m.bookie_id for m in rig.ledger(0).last_fragment.ensemble)
    first, second = (f"{layout.entries_folder(0)}/{log}.arrow" for log in rig.good_copies(0))
    rig.replace_file(one, first, None)
    rig.replace_file(two, second, None)
    rows, _ = read(rig)
    assert [row[1:] for row in rows] == ROWS


def test_a_bookie_that_cannot_be_opened_is_tried_once(make_rig: Rigs) -> None:
    rig = make_rig(bookie_count=3)
    rig.write(partitions_of(5, 5, 5, 5))
    tasks_before = rig.log()
    assert tasks_before is not None
    reader = SliceReader(WITH_OFFSET)
    with rig.faults.installed():
        batches = rig.batches(reader, 0, 20)
        first = next(batches)
        rig.faults.trace.clear()
        rows = [row for batch in (first, *batches) for row in batch["n"].to_pylist()]
    assert rows == list(range(20))
    lost = next(iter(rig.urls))
    rig.lose(lost)
    rows_now, reader = read(rig)
    assert [row[1:] for row in rows_now] == flat(partitions_of(5, 5, 5, 5))
    assert len([fault for fault in reader.faults if fault.bookie_id == lost]) <= 1


@pytest.mark.parametrize("call", ["open_root", "read"])
def test_a_bookie_that_gives_no_answer_is_stepped_over(make_rig: Rigs, call: str) -> None:
    rig = make_rig(bookie_count=4)
    result = rig.write(PARTITIONS, (4, 3, 2))
    victim = rig.ledger(result.ledger_id).last_fragment.ensemble[1].bookie_id

    def decide(_number: int, operation: Operation) -> Fault | None:
        return Fault() if (operation.place, operation.call) == (victim, call) else None

    rig.faults.decide = decide
    with rig.faults.installed():
        rows, reader = read(rig)
    assert [row[1:] for row in rows] == ROWS
    assert {fault.bookie_id for fault in reader.faults} <= {victim}


def test_a_replica_that_turns_bad_in_the_middle_is_followed_by_another(make_rig: Rigs) -> None:
    """The rows it gave before are not given again."""
    rig = make_rig(bookie_count=3)
    result = rig.write([[rows_from(0, 40)]])
    for victim in [m.bookie_id for m in rig.ledger(result.ledger_id).last_fragment.ensemble][:2]:
        (name,) = files_of(rig, victim)
        data = rig.file_bytes(victim, name)
        rig.replace_file(victim, name, flipped(data, len(data) // 2))
    rows, reader = read(rig)
    assert [row[1:] for row in rows] == flat([[rows_from(0, 40)]])
    assert len(reader.faults) == 2


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_damaged_column_matters_to_its_readers(rig: Rig, compression: str) -> None:
    rig.blocks = compressed(rig.blocks, compression)
    result = rig.write([[rows_from(0, 4)]])
    ledger = rig.ledger(result.ledger_id)
    victim = ledger.last_fragment.ensemble[0].bookie_id
    (name,) = files_of(rig, victim)
    data = rig.file_bytes(victim, name)
    index_offset = data.index(b"\xff\xff\xff\xff\0\0\0\0BKINDEX1")
    rig.replace_file(victim, name, flipped(data, index_offset - 1))
    for column, reasons in (("n", []), ("s", ["digest mismatch in column 2 of block 0"])):
        reader = SliceReader(pa.schema([SCHEMA.field(column)]))
        (found,) = rig.batches(reader, 0, 4)
        assert found == rows_from(0, 4).select([column])
        assert [fault.reason.partition(": ")[2] for fault in reader.faults] == reasons


def test_without_a_good_replica_the_error_names_offset_and_reasons(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.write(partitions_of(3))
    result = rig.write([[rows_from(3, 20)]])
    members = [m.bookie_id for m in rig.ledger(result.ledger_id).last_fragment.ensemble]
    for victim, damage in zip(members, ("missing", "cut", "a flip in its head")):
        (name,) = [n for n in files_of(rig, victim) if f"{result.ledger_id:016x}" in n]
        rig.replace_file(victim, name, DAMAGE[damage](rig.file_bytes(victim, name)))
    with pytest.raises(CorruptDataError) as refusal:
        read(rig)
    message = str(refusal.value)
    for words in ("offset 3", f"ledger {result.ledger_id}", "is missing", "is cut", "digest"):
        assert words in message
    with caplog.at_level(logging.WARNING):
        rows, _ = read(rig, fails_on_loss=False)
    assert [row[1:] for row in rows] == flat(partitions_of(3))
    assert "left out 20 rows" in caplog.text
    assert "offset 3" in caplog.text


def test_only_the_lost_block_is_left_out(make_rig: Rigs) -> None:
    rig = make_rig(bookie_count=1)
    rig.write([[rows_from(0, 20)]], (1, 1, 1))
    (name,) = files_of(rig, "bookie-1")
    data = rig.file_bytes("bookie-1", name)
    # Arrow pads a block with what follows in memory, so the first such text may lie in another.
    rig.replace_file("bookie-1", name, flipped(data, data.rindex(b"row 12")))
    with pytest.raises(CorruptDataError, match="offset 12"):
        read(rig)
    rows, _ = read(rig, fails_on_loss=False)
    assert [row[0] for row in rows][:12] == list(range(12))


@pytest.mark.parametrize("damage", ["missing", "cut", "a flip in its head", "empty"])
def test_a_bad_journal_is_stepped_over(rig: Rig, damage: str) -> None:
    result = rig.write(PARTITIONS, (3, 3, 2))
    members = [m.bookie_id for m in rig.ledger(result.ledger_id).last_fragment.ensemble]
    for victim in members[:2]:
        (name,) = [name for name in rig.names(victim) if "/journal/" in name]
        rig.replace_file(victim, name, DAMAGE[damage](rig.file_bytes(victim, name)))
    assert rig.rows() == ROWS
    (name,) = [name for name in rig.names(members[2]) if "/journal/" in name]
    rig.replace_file(members[2], name, None)
    with pytest.raises(CorruptDataError, match="no bookie gives the add records"):
        rig.rows()


def test_journals_of_two_ledgers_swapped_are_not_believed(make_rig: Rigs) -> None:
    rig = make_rig(bookie_count=3)
    one = rig.write(partitions_of(5))
    two = rig.write(partitions_of(5, first=50))
    for bookie_id in rig.urls:
        names = [name for name in rig.names(bookie_id) if "/journal/" in name]
        data = [rig.file_bytes(bookie_id, name) for name in names]
        for name, other in zip(names, reversed(data)):
            rig.replace_file(bookie_id, name, other)
    assert one.ledger_id != two.ledger_id
    with pytest.raises(CorruptDataError):
        rig.rows()


def test_a_journal_of_another_writer_in_the_same_ledger_is_not_believed(make_rig: Rigs) -> None:
    """A zombie's record, right in every digest, under the name of the writer that won."""
    rig = make_rig(bookie_count=3)
    target = rig.target()
    reports = rig.tasks(target, partitions_of(5))
    result = commit(target, reports)

    (name,) = [name for name in rig.names("bookie-1") if "/journal/" in name]
    content = journal.decode_journal(
        rig.file_bytes("bookie-1", name), target.digester(), ledger_id=result.ledger_id
    )
    forged = replace(content.records[0], token="e" * 32)
    data = b"".join(bytes(x) for x in journal.encode(forged, target.digester()).frame(0, 0))
    for bookie_id in rig.urls:
        rig.replace_file(bookie_id, name, data)
    assert layout.token(forged.token) != target.token
    with pytest.raises(CorruptDataError):
        rig.rows()


def test_entry_logs_of_two_stripes_partitions_or_ledgers_swapped_are_found(make_rig: Rigs) -> None:
    rig = make_rig(bookie_count=3)
    rig.write(partitions_of(6, 6), (3, 2, 2))
    rig.write(partitions_of(6, 6, first=100))
    for bookie_id in rig.urls:
        names = files_of(rig, bookie_id)
        data = [rig.file_bytes(bookie_id, name) for name in names]
        for name, other in zip(names, [*data[1:], data[0]]):
            rig.replace_file(bookie_id, name, other)
    rows, _ = read(rig, fails_on_loss=False)
    assert rows == []


def test_ranges_outside_of_the_log_are_refused(rig: Rig) -> None:
    rig.write(partitions_of(5))
    for begin, end in ((0, 6), (5, 7)):
        with pytest.raises(NoSuchEntryError):
            list(rig.batches(SliceReader(SCHEMA), begin, end))
    assert list(rig.batches(SliceReader(SCHEMA), 5, 5)) == []
