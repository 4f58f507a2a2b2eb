"""Deleted rows stay deleted: each kind of vector is read, and a damaged one is refused."""

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from bkspark.errors import (
    CorruptDataError,
    TableChangedError,
    TableUnavailableError,
    UnsupportedTableError,
)
from bkspark.table.deletion_vectors import DeletionVector, inline_rows
from bkspark.table.table import open_table
from tests.kit.delta import HandTable, base85, bitmap, inline_vector

from .conftest import COLUMNS, expected, read, rows_of

EVERY_SECOND = list(range(0, 10_000, 2))
RANGE = list(range(100, 5_000))


@pytest.fixture
def table(tmp_path: Path) -> HandTable:
    table = HandTable(tmp_path / "table")
    table.create(COLUMNS, features=["deletionVectors"])
    return table


def gaps(offsets: Iterable[int]) -> list[tuple[int, int]]:
    return [(offset, offset + 1) for offset in offsets]


@pytest.mark.parametrize("is_inline", [True, False])
@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("array", [0]),
        ("array", [3, 17, 9_999]),
        ("bitmap", EVERY_SECOND),
        ("runs", [*range(10), *RANGE, 9_999]),
    ],
)
def test_deleted_rows_are_not_read(
    table: HandTable, kind: str, rows: list[int], is_inline: bool
) -> None:
    name = table.append(rows_of(*range(10_000)), row_group_size=3_000)
    data = bitmap((0, kind, rows))
    make = inline_vector if is_inline else table.vector_file
    table.delete_rows(name, make(data, len(rows)))
    with pytest.raises(TableChangedError) as error:
        read(table.path, 0, 10_000)
    assert [n for begin, end in error.value.missing for n in range(begin, end)] == rows
    left = sorted(set(range(10_000)) - set(rows))
    assert read(table.path, 0, 10_000, missing=gaps(rows)) == expected(*left)
    [file] = open_table(str(table.path)).snapshot().files
    assert file.row_count == len(left)


def test_a_later_vector_takes_the_place_of_the_one_before(table: HandTable) -> None:
    name = table.append(rows_of(0, 1, 2, 3))
    table.delete_rows(name, inline_vector(bitmap((0, "array", [1])), 1))
    table.delete_rows(name, table.vector_file(bitmap((0, "array", [1, 2])), 2, folder="ab"))
    assert read(table.path, 0, 4, missing=[(1, 3)]) == expected(0, 3)


def test_a_commit_may_say_in_any_order_what_it_does(table: HandTable) -> None:
    name = table.append(rows_of(0, 1, 2, 3))
    add = {**table.live[name], "deletionVector": inline_vector(bitmap((0, "array", [1])), 1)}
    removed = table.remove(name)
    table.commit({"add": add}, removed, operation="DELETE")
    assert read(table.path, 0, 4, missing=[(1, 2)]) == expected(0, 2, 3)


def test_an_absolute_vector_of_the_table_is_read(table: HandTable) -> None:
    name = table.append(rows_of(0, 1, 2, 3))
    vector = table.vector_file(bitmap((0, "array", [1])), 1)
    [file] = table.path.glob("deletion_vector_*.bin")
    table.delete_rows(name, {**vector, "storageType": "p", "pathOrInlineDv": f"file:{file}"})
    assert read(table.path, 0, 4, missing=[(1, 2)]) == expected(0, 2, 3)


def test_an_absolute_vector_of_another_table_is_refused(table: HandTable) -> None:
    name = table.append(rows_of(0, 1))
    vector = table.vector_file(bitmap((0, "array", [1])), 1)
    table.delete_rows(name, {**vector, "storageType": "p", "pathOrInlineDv": "file:///other.bin"})
    with pytest.raises(UnsupportedTableError, match="outside of its folder"):
        read(table.path, 0, 2)


def test_an_unknown_kind_of_vector_is_refused(table: HandTable) -> None:
    name = table.append(rows_of(0, 1))
    vector = inline_vector(bitmap((0, "array", [1])), 1)
    table.delete_rows(name, {**vector, "storageType": "z"})
    with pytest.raises(UnsupportedTableError, match="a deletion vector of kind 'z'"):
        read(table.path, 0, 2)


def test_a_vector_file_that_is_gone_is_looked_for_in_the_newest_version(table: HandTable) -> None:
    name = table.append(rows_of(0, 1, 2, 3))
    table.delete_rows(name, table.vector_file(bitmap((0, "array", [1])), 1))
    before = open_table(str(table.path)).snapshot()
    table.rewrite(rows_of(0, 2, 3), [name])
    for file in table.path.glob("*.bin"):
        file.unlink()
    assert read(table.path, 0, 4, missing=[(1, 2)], snapshot=before) == expected(0, 2, 3)


# --- the format ----------------------------------------------------------------------------------


def decoded(data: bytes, cardinality: int) -> list[int]:
    given = inline_vector(data, cardinality)
    vector = DeletionVector("i", given["pathOrInlineDv"], 0, len(data), cardinality)
    return inline_rows(vector).tolist()


@pytest.mark.parametrize(
    ("containers", "rows"),
    [
        ([], []),
        ([(0, "array", [1, 2]), (1, "array", [0, 65_535])], [1, 2, 65_536, 131_071]),
        ([(n, "array", [n]) for n in range(5)], [n * 65_536 + n for n in range(5)]),
        (
            [(n, "runs", [n, n + 1]) for n in range(4)],
            [row for n in range(4) for row in (n * 65_536 + n, n * 65_536 + n + 1)],
        ),
        (
            [(0, "runs", [4, 5]), (2, "array", [7]), (9, "bitmap", EVERY_SECOND)],
            [4, 5, 131_079, *(9 * 65_536 + row for row in EVERY_SECOND)],
        ),
        ([(65_536, "array", [1]), (196_608, "array", [3])], [2**32 + 1, 3 * 2**32 + 3]),
        ([(0, "runs", list(range(65_536)))], list(range(65_536))),
    ],
)
def test_a_bitmap_names_its_rows(containers: Any, rows: list[int]) -> None:
    assert decoded(bitmap(*containers), len(rows)) == rows


GOOD = bitmap((0, "array", [1, 5, 9]))


@pytest.mark.parametrize(
    ("data", "cardinality", "reason"),
    [
        (b"\0" * 4 + GOOD[4:], 3, "unknown format"),
        (struct.pack("<i", 1681511376) + GOOD[4:], 3, "unknown format"),
        (GOOD[:4] + struct.pack("<q", 2**40) + GOOD[12:], 3, "too many bitmaps"),
        (GOOD[:4] + struct.pack("<q", -1) + GOOD[12:], 3, "too many bitmaps"),
        (GOOD[:12] + struct.pack("<I", 2**31) + GOOD[16:], 3, "too large"),
        (GOOD[:16] + struct.pack("<I", 5) + GOOD[20:], 3, "unknown cookie"),
        (GOOD[:20] + struct.pack("<I", 2**20) + GOOD[24:], 3, "too many containers"),
        (GOOD[:-2], 3, "malformed"),
        (GOOD[:9], 3, "malformed"),
        (GOOD, 2, "it has 3 rows, and 2 are named"),
        (bitmap((0, "array", [5, 1, 9])), 3, "it has 3 rows, and 3 are named"),
        (bitmap((0, "array", [1, 1, 9])), 3, "it has 3 rows"),
        (bitmap((0, "bitmap", EVERY_SECOND))[:-1] + b"\xff", 5_000, "another size"),
        (bitmap((0, "runs", [1, 2, 3]))[:-2] + b"\xff\xff", 3, "a run is too long|another size"),
    ],
)
def test_a_damaged_bitmap_is_refused(data: bytes, cardinality: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decoded(data, cardinality)


def _of(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda vector: {**vector, **changes}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_of(offset=2), "its file is cut short"),
        (_of(offset=0), "its length or its digest"),
        (_of(sizeInBytes=7), "its length or its digest"),
        (_of(sizeInBytes=700), "its file is cut short"),
        (_of(cardinality=2), "it has 1 rows, and 2 are named"),
        (_of(pathOrInlineDv="short"), "its name is malformed"),
        (_of(pathOrInlineDv="\u00fc" * 20), "it is not in Base85"),
        (_of(pathOrInlineDv="#" * 20), "it is not in Base85"),
        (_of(pathOrInlineDv="abc"), "it is not in Base85"),
        (_of(storageType="i"), "it is cut short|malformed"),
    ],
)
def test_a_damaged_vector_names_its_data_file(table: HandTable, change: Any, reason: str) -> None:
    name = table.append(rows_of(0, 1))
    table.delete_rows(name, change(table.vector_file(bitmap((0, "array", [1])), 1)))
    with pytest.raises(CorruptDataError, match=rf"the deletion vector of {name}: .*({reason})"):
        read(table.path, 0, 2)


def test_a_flipped_bit_of_a_vector_file_is_noticed(table: HandTable) -> None:
    name = table.append(rows_of(0, 1))
    table.delete_rows(name, table.vector_file(bitmap((0, "array", [1])), 1))
    [file] = table.path.glob("*.bin")
    data = bytearray(file.read_bytes())
    data[-6] ^= 1
    file.write_bytes(data)
    with pytest.raises(CorruptDataError, match="its length or its digest is wrong"):
        read(table.path, 0, 2)


def test_a_vector_that_cannot_be_reached_proves_nothing(
    table: HandTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = table.append(rows_of(0, 1))
    table.delete_rows(name, table.vector_file(bitmap((0, "array", [1])), 1))
    snapshot = open_table(str(table.path)).snapshot()

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.pread", refuse)
    with pytest.raises(TableUnavailableError, match="Input/output error"):
        read(table.path, 0, 2, snapshot=snapshot)


def test_base85_is_that_of_zeromq() -> None:
    assert base85(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
