"""Statistics alone show that offsets are missing or there twice, or they show nothing."""

from pathlib import Path

import pyarrow as pa
import pytest

from bkspark.table.density import RowBounds, row_bounds
from bkspark.table.table import open_table
from tests.kit.delta import HandTable, bitmap, inline_vector

from .conftest import COLUMNS, rows_of

RANGES = [(0, 10), (10, 20)]


@pytest.fixture
def table(tmp_path: Path) -> HandTable:
    table = HandTable(tmp_path / "table")
    table.create(COLUMNS, features=["deletionVectors"])
    return table


def bounds(table: HandTable) -> list[RowBounds]:
    return row_bounds(open_table(str(table.path)).snapshot().files, RANGES)


def test_each_file_counts_in_its_range(table: HandTable) -> None:
    table.append(rows_of(*range(10)))
    table.append(rows_of(*range(10, 20)))
    table.append(rows_of(*range(20, 30)))
    assert bounds(table) == [RowBounds(10, 10), RowBounds(10, 10)]


def test_offsets_that_are_not_there_lower_the_upper_bound(table: HandTable) -> None:
    table.append(rows_of(*range(9)))
    assert bounds(table) == [RowBounds(9, 9), RowBounds(0, 0)]


def test_rows_that_are_there_twice_raise_the_lower_bound(table: HandTable) -> None:
    for _ in range(2):
        table.append(rows_of(*range(10)))
    [first, _] = bounds(table)
    assert first == RowBounds(20, 20)


def test_a_file_over_a_border_may_have_its_rows_on_either_side(table: HandTable) -> None:
    table.append(rows_of(*range(4, 16)))
    assert bounds(table) == [RowBounds(0, 6), RowBounds(0, 6)]


def test_deleted_rows_do_not_count(table: HandTable) -> None:
    name = table.append(rows_of(*range(10)))
    table.delete_rows(name, inline_vector(bitmap((0, "array", [1, 2])), 2))
    assert bounds(table)[0] == RowBounds(8, 8)


def test_rows_without_an_offset_do_not_count(table: HandTable) -> None:
    rows = pa.table({"_offset": pa.array([*range(10), None, None], pa.int64())})
    table.append(rows)
    assert bounds(table)[0] == RowBounds(10, 10)


def test_it_is_unknown_whether_deleted_rows_had_an_offset(table: HandTable) -> None:
    name = table.append(pa.table({"_offset": pa.array([*range(10), None, None], pa.int64())}))
    table.delete_rows(name, inline_vector(bitmap((0, "array", [10, 11])), 2))
    assert bounds(table)[0] == RowBounds(0, None)


def test_a_file_without_statistics_may_have_anything(table: HandTable) -> None:
    table.append(rows_of(*range(9)), statistics=False)
    assert bounds(table) == [RowBounds(0, None)] * 2
