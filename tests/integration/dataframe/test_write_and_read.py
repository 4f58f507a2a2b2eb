"""What is written is what is read, in partition order, on every kind of ensemble."""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError, NotEnoughBookiesError, UnauthorizedError
from bkspark.format import arrow_message
from bkspark.ledger.entry_log_reader import EntryLogFile
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.reading.slice_reader import SliceReader
from tests.integration.rig import LOG, SCHEMA, Rig, compressed, flat, partitions_of, rows_from
from tests.thorough import always

QUORUMS = [
    (1, 1, 1),
    (3, 3, 2),
    (3, 2, 2),
    (4, 3, 2),
    (5, 3, 2),
    (5, 3, 3),
    (6, 6, 4),
]

SHAPES = {
    "nothing": (),
    "one empty partition": (0,),
    "one row": (1,),
    "fewer rows than stripes": (2,),
    "empty partitions between": (0, 3, 0, 0, 11, 0),
    "many": (30, 1, 17, 2, 40),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "quorum",
    always([(1, 1, 1), (5, 3, 2)], QUORUMS),
    ids=lambda sizes: "/".join(map(str, sizes)),
)
def test_rows_come_back_in_partition_order(
    make_rig: Callable[..., Rig], quorum: tuple[int, int, int], shape: str
) -> None:
    rig = make_rig(bookie_count=6)
    partitions = partitions_of(*SHAPES[shape])
    result = rig.write(partitions, quorum)
    assert result.row_count == sum(SHAPES[shape])
    assert result.failures == {}
    assert rig.rows() == flat(partitions)
    if result.row_count:  # nobody needs a ledger without entries
        copies = rig.good_copies(result.ledger_id)
        assert all(len(holders) == quorum[1] for holders in copies.values())
    more = partitions_of(3, 0, 4, first=1000)
    rig.write(more)
    assert rig.rows() == flat(partitions) + flat(more)


@pytest.mark.parametrize("quorum", QUORUMS, ids=lambda sizes: "/".join(map(str, sizes)))
def test_real_files_give_the_same_rows(
    make_rig: Callable[..., Rig], quorum: tuple[int, int, int]
) -> None:
    rig = make_rig(kind="file", bookie_count=6)
    partitions = partitions_of(9, 0, 2)
    rig.write(partitions, quorum)
    assert rig.rows() == flat(partitions)


@pytest.mark.parametrize("quorum", QUORUMS, ids=lambda sizes: "/".join(map(str, sizes)))
def test_any_qa_less_one_bookies_may_be_lost(
    make_rig: Callable[..., Rig], quorum: tuple[int, int, int]
) -> None:
    rig = make_rig(bookie_count=6)
    partitions = partitions_of(13, 5)
    rig.write(partitions, quorum)
    ways = rig.assert_survives_losses(flat(partitions), quorum[2] - 1, set(rig.urls))
    assert ways >= 1


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("digest_type", ["CRC32C", "MAC"])
def test_compression_and_digests(
    make_rig: Callable[..., Rig], compression: str, digest_type: str
) -> None:
    rig = make_rig()
    rig.blocks = compressed(rig.blocks, compression)
    secret = Password(literal="correct horse" if digest_type == "MAC" else "")
    partitions = partitions_of(20, 7)
    rig.write(partitions, (4, 3, 2), digest_type=digest_type, password=secret)
    assert rig.rows(password=secret) == flat(partitions)


def test_a_wrong_password_is_unauthorized_and_never_corrupt(rig: Rig) -> None:
    secret, wrong = Password(literal="correct horse"), Password(literal="battery staple")
    partitions = partitions_of(8)
    rig.write(partitions, digest_type="MAC", password=secret)
    for password in (wrong, Password()):
        with pytest.raises(UnauthorizedError):
            rig.rows(password=password)
        with pytest.raises(UnauthorizedError):
            rig.target(password=password)
    reader = SliceReader(SCHEMA, wrong)
    with pytest.raises(UnauthorizedError):
        list(rig.batches(replace(reader, password=wrong), 0, 8))
    assert rig.rows(password=secret) == flat(partitions)


def test_only_the_reported_attempt_of_a_partition_counts(rig: Rig) -> None:
    """Two attempts of partition 1 write other rows in another order (RB-34b)."""
    target = rig.target((4, 3, 2))
    first = AttemptWriter(target, 1).write([rows_from(500, 9)])
    second = AttemptWriter(target, 1).write([rows_from(100, 6)])
    zero = AttemptWriter(target, 0).write([rows_from(0, 2)])
    assert {log.entry_log.attempt_id for log in first.logs}.isdisjoint(
        log.entry_log.attempt_id for log in second.logs
    )
    batch_commit.commit(target, [zero, second])
    assert rig.rows() == flat([[rows_from(0, 2)], [rows_from(100, 6)]])


def test_reports_of_two_attempts_of_one_partition_are_refused(rig: Rig) -> None:
    target = rig.target()
    reports = [AttemptWriter(target, 1).write([rows_from(n, 3)]) for n in (0, 10)]
    with pytest.raises(InvalidRequestError):
        batch_commit.commit(target, reports)
    assert rig.log() is None


def test_a_missing_report_commits_nothing(rig: Rig) -> None:
    target = rig.target()
    report = AttemptWriter(target, 0).write([rows_from(0, 3)])
    with pytest.raises(InvalidRequestError):
        batch_commit.commit(target, [report, None])
    assert rig.log() is None


def test_too_few_bookies_are_refused_before_any_task(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(bookie_count=3)
    with pytest.raises(NotEnoughBookiesError):
        rig.target((4, 3, 2), is_strict=True)
    rig.lose("bookie-2")
    with pytest.raises(NotEnoughBookiesError):
        rig.target((3, 3, 2), is_strict=True)
    rig.lose("bookie-1")
    with pytest.raises(NotEnoughBookiesError):
        rig.target((3, 3, 2))  # fewer than must acknowledge
    assert rig.log() is None


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (pa.schema([]), "at least one column"),
        (pa.schema([("a", pa.int8()), ("a", pa.int8())]), "twice"),
        (pa.schema([("a", pa.dictionary(pa.int8(), pa.string()))]), "dictionaries"),
        (
            pa.schema([("a", pa.list_(pa.struct([("b", pa.dictionary(pa.int8(), pa.int64()))])))]),
            "dictionaries",
        ),
        (
            pa.schema([("a", pa.map_(pa.string(), pa.dictionary(pa.int8(), pa.int64())))]),
            "dictionaries",
        ),
    ],
    ids=[
        "none-missing",
        "doubled-twice",
        "plain-dictionaries",
        "list-dictionaries",
        "map-dictionaries",
    ],
)
def test_what_could_not_be_read_back_is_refused(
    make_rig: Callable[..., Rig], schema: pa.Schema, words: str
) -> None:
    rig = make_rig(bookie_count=3)
    with pytest.raises(InvalidRequestError, match=words):
        rig.target(schema=schema)


def test_a_range_touches_only_the_blocks_that_can_match(make_rig: Callable[..., Rig]) -> None:
    """5 stripes, 4 rows to a block: rows 40 to 59 are one block of each stripe."""
    rig = make_rig()
    rig.write([[rows_from(0, 200)]], (5, 3, 2))
    with rig.faults.installed():
        reader = SliceReader(pa.schema([("_offset", pa.int64()), *SCHEMA]))
        found = list(rig.batches(reader, 40, 60))
    assert sorted(n for batch in found for n in batch["_offset"].to_pylist()) == list(range(40, 60))
    reads = [op.name for op in rig.faults.trace if op.call == "read" and ".arrow" in op.name]
    files = set(reads)
    assert len(files) == 5
    # Of each file: index, head, one block.
    assert len(reads) == 3 * len(files)


def test_a_range_of_one_row_reads_one_file(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    rig.write(partitions_of(50, 50), (5, 3, 2))
    with rig.faults.installed():
        (batch,) = rig.batches(SliceReader(SCHEMA), 73, 74)
    assert batch.to_pylist() == rows_from(73, 1).to_pylist()
    reads = [op.name for op in rig.faults.trace if op.call == "read" and ".arrow" in op.name]
    assert len(reads) == 3


@pytest.mark.parametrize("task_bytes", always([1000, 2**40], [1, 1000, 5000, 2**40]))
def test_every_range_gives_its_rows_however_tasks_are_cut(
    make_rig: Callable[..., Rig], task_bytes: int
) -> None:
    rig = make_rig()
    rig.write(partitions_of(23, 2), (4, 3, 2))
    rig.write(partitions_of(9, first=25))
    for begin in range(0, 35, 3):
        for end in range(begin, 35, 5):
            reader = SliceReader(pa.schema([("_offset", pa.int64()), ("n", pa.int64())]))
            found = rig.batches(reader, begin, end, task_bytes)
            rows = sorted(tuple(r.values()) for batch in found for r in batch.to_pylist())
            assert rows == [(n, n) for n in range(begin, end)]


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_a_projection_decodes_only_the_columns_it_names(
    make_rig: Callable[..., Rig], compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig()
    rig.blocks = compressed(rig.blocks, compression)
    partitions = partitions_of(10)
    rig.write(partitions)
    decoded: list[list[str]] = []
    decode = arrow_message.decode_columns

    def recorded(*args: object, **options: object) -> pa.RecordBatch:
        batch = decode(*args, **options)
        decoded.append(batch.schema.names)
        return batch

    monkeypatch.setattr(arrow_message, "decode_columns", recorded)
    rows = [
        row
        for batch in rig.batches(SliceReader(pa.schema([("s", pa.string())])), 0, 10)
        for row in batch.to_pylist()
    ]
    assert rows == [{"s": row[1]} for row in flat(partitions)]
    assert decoded
    assert all(names == ["s"] for names in decoded)
    decoded.clear()
    meta = pa.schema([("_entry_id", pa.int64()), ("_ledger_id", pa.int64())])
    found = [row for batch in rig.batches(SliceReader(meta), 0, 10) for row in batch.to_pylist()]
    assert found == [{"_entry_id": n, "_ledger_id": 0} for n in range(10)]
    assert decoded == []


@pytest.mark.parametrize(
    ("columns", "requests", "share"),
    [(["c0"], 1, 0.05), (["c20"], 2, 0.05), (["c39", "c20"], 3, 0.08), (["c21", "c20"], 2, 0.08)],
    ids=str,
)
def test_a_projection_reads_the_bytes_of_its_columns(
    rig: Rig,
    columns: list[str],
    requests: int,
    share: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of forty columns, whose file has one block of 2 MB."""
    count = 6_500
    numbers = [pa.array(range(n, n + count), pa.int64()) for n in range(40)]
    batch = pa.record_batch(numbers, names=[f"c{n}" for n in range(40)])
    rig.blocks = replace(rig.blocks, rows_per_block=count, target_bytes=2**22)
    rig.write([[batch]], (1, 1, 1), schema=batch.schema)
    whole, lengths = EntryLogFile._whole, []

    def recorded(file: EntryLogFile, data: bytes | None, length: int) -> bytes:
        lengths.append(length)
        return whole(file, data, length)

    monkeypatch.setattr(EntryLogFile, "_whole", recorded)
    wanted = pa.schema([(name, pa.int64()) for name in columns])
    (found,) = rig.batches(SliceReader(wanted), 0, count)
    assert found == batch.select(columns)
    assert len(lengths) == 2 + requests  # of the file: index and head
    assert sum(lengths) < share * batch.nbytes


def test_log_names_are_checked_before_anything_is_made(rig: Rig) -> None:
    for name in ("../x", "", "a/b", "x" * 200):
        with pytest.raises(InvalidRequestError):
            rig.target(log_name=name)
    assert rig.target(log_name=LOG).ledger_id == 0
