"""A range of offsets is read from a table: each offset once, or an error that names offsets."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bkspark.errors import CorruptDataError, TableChangedError
from bkspark.table import reading
from bkspark.table.data_files import RowGroup
from bkspark.table.reading import read_range
from bkspark.table.table import open_table
from tests.kit.delta import HandTable

from .conftest import SCHEMA, expected, read, rows_of


def begun(table: HandTable, begin: int, end: int) -> Iterator[pa.RecordBatch]:
    """A read of which nothing has been asked yet."""
    opened = open_table(str(table.path))
    snapshot = opened.snapshot()
    return read_range(opened, snapshot, begin, end, SCHEMA, snapshot.columns)


def test_a_range_is_read_across_files(two_files: HandTable) -> None:
    assert read(two_files.path, 0, 4) == expected(0, 1, 2, 3)
    assert read(two_files.path, 1, 3) == expected(1, 2)
    assert read(two_files.path, 2, 2) == []


def test_the_offsets_come_first_and_then_the_columns_as_wanted(two_files: HandTable) -> None:
    schema = pa.schema([("v", pa.large_string()), ("k", pa.int64())])
    opened = open_table(str(two_files.path))
    snapshot = opened.snapshot()
    batches = list(read_range(opened, snapshot, 0, 4, schema, snapshot.columns))
    assert {batch.schema for batch in batches} == {pa.schema([("_offset", pa.int64()), *schema])}
    assert read(two_files.path, 3, 4, pa.schema([])) == [{"_offset": 3}]


def test_a_part_of_a_version_goes_to_another_process(two_files: HandTable) -> None:
    snapshot = open_table(str(two_files.path)).snapshot()
    part = pickle.loads(pickle.dumps(snapshot.within(2, 4)))
    assert [file.first_offset for file in part.files] == [2]
    assert read(two_files.path, 2, 4, snapshot=part) == expected(2, 3)


def test_files_and_row_groups_without_wanted_offsets_are_not_read(
    table: HandTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows_of(*range(10)), row_group_size=2)
    table.append(rows_of(*range(10, 20)))
    seen = []
    batches = reading.DataFile.batches

    def noted(data: reading.DataFile, group: RowGroup, names: list[str]) -> Any:
        seen.append((data.path, group.number))
        return batches(data, group, names)

    monkeypatch.setattr(reading.DataFile, "batches", noted)
    assert read(table.path, 3, 5) == expected(3, 4)
    name = next(iter(table.live))
    assert seen == [(name, 1), (name, 2)]


def test_rows_of_others_are_not_the_logs(two_files: HandTable) -> None:
    two_files.append(pa.table({"_offset": pa.array([None, 2**40], pa.int64())}))
    two_files.append(pa.table({"k": pa.array([1], pa.int32())}))
    assert read(two_files.path, 0, 4) == expected(0, 1, 2, 3)


def test_missing_offsets_are_named(two_files: HandTable) -> None:
    two_files.append(rows_of(5, 8, 9))
    with pytest.raises(TableChangedError, match=r"^4 offsets are not in .*: 4, 6 to 7, 10;") as one:
        read(two_files.path, 0, 11)
    assert one.value.missing == ((4, 5), (6, 8), (10, 11))
    assert pickle.loads(pickle.dumps(one.value)).missing == one.value.missing
    assert str(pickle.loads(pickle.dumps(one.value))) == str(one.value)


def test_many_missing_ranges_are_cut_short(table: HandTable) -> None:
    table.append(rows_of(*range(1, 40, 2)))
    with pytest.raises(TableChangedError, match=r"^20 offsets .*: 0, 2, 4, 6, 8 and more;"):
        read(table.path, 0, 40)


def test_accepted_gaps_may_be_missing_and_are_not_given(two_files: HandTable) -> None:
    two_files.append(rows_of(6, 7))
    assert read(two_files.path, 0, 8, missing=[(4, 6)]) == expected(0, 1, 2, 3, 6, 7)
    assert read(two_files.path, 0, 8, missing=[(3, 6)]) == expected(0, 1, 2, 6, 7)
    assert read(two_files.path, 2, 5, missing=[(0, 1), (4, 9), (20, 30)]) == expected(2, 3)
    with pytest.raises(TableChangedError, match=r"^1 offsets are not in .*: 4;"):
        read(two_files.path, 0, 8, missing=[(5, 6)])


@pytest.mark.parametrize(
    "doubled", [rows_of(1), rows_of(1, 5), rows_of(4, 1), rows_of(-3, 1)], ids=str
)
def test_an_offset_that_is_there_twice_is_named(two_files: HandTable, doubled: pa.Table) -> None:
    two_files.append(doubled)
    with pytest.raises(TableChangedError, match=r"^offset 1 is there twice in .*version 3") as one:
        read(two_files.path, 0, 4)
    assert one.value.doubled == (1,)


def test_an_offset_that_is_twice_in_one_batch_is_named(table: HandTable) -> None:
    table.append(rows_of(0, 1, 2, 1))
    with pytest.raises(TableChangedError, match=r"^offset 1 is there twice"):
        read(table.path, 0, 3)


def test_doubled_offsets_outside_of_the_range_do_not_matter(two_files: HandTable) -> None:
    two_files.append(rows_of(0, 9))
    assert read(two_files.path, 1, 4) == expected(1, 2, 3)


# --- files that vanish ---------------------------------------------------------------------------


def test_a_read_goes_on_if_its_files_are_rewritten_and_vacuumed(table: HandTable) -> None:
    """Behind the plan, before each of three files."""
    for vanished in range(4):
        first = table.version
        names = [table.append(rows_of(*range(n, n + 3))) for n in (0, 3, 6)]
        batches = begun(table, 0, 9)
        found = [next(batches).to_pylist() for _ in range(vanished)]
        rows = rows_of(*(8, 3, 6, 5, 0, 1, 2, 7, 4))
        rewritten = table.rewrite(rows, names, row_group_size=4)
        table.vacuum()
        found += [batch.to_pylist() for batch in batches]
        flat = [row for rows in found for row in rows]
        assert sorted(flat, key=lambda row: int(row["_offset"])) == expected(*range(9))
        table.commit(table.remove(rewritten))
        assert table.version == first + 5


def test_what_was_given_before_is_not_read_again(
    table: HandTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [table.append(rows_of(0, 1)), table.append(rows_of(2, 3))]
    batches = begun(table, 0, 4)
    assert next(batches).to_pylist() == expected(0, 1)
    asked = []
    taken = reading.DataFile.batches

    def noted(data: reading.DataFile, group: RowGroup, columns: list[str]) -> Any:
        asked.append((group.number, columns))
        return taken(data, group, columns)

    monkeypatch.setattr(reading.DataFile, "batches", noted)
    table.rewrite(rows_of(0, 1, 2, 3), names, row_group_size=2)
    table.vacuum()
    assert [row for batch in batches for row in batch.to_pylist()] == expected(2, 3)
    assert asked == [(0, ["_offset"]), (1, ["_offset", "k", "v"])]


def test_an_offset_that_is_twice_in_the_newer_version_is_named(table: HandTable) -> None:
    """The doubled row is among rows that were given before the files vanished."""
    names = [table.append(rows_of(0, 1)), table.append(rows_of(2, 3))]
    batches = begun(table, 0, 4)
    next(batches)
    table.rewrite(rows_of(0, 1, 2, 3), names)
    table.append(rows_of(1))
    table.vacuum()
    with pytest.raises(TableChangedError, match="offset 1 is there twice"):
        list(batches)


def test_a_row_that_was_deleted_meanwhile_is_missing(table: HandTable) -> None:
    names = [table.append(rows_of(0, 1)), table.append(rows_of(2, 3))]
    batches = begun(table, 0, 4)
    next(batches)
    table.rewrite(rows_of(0, 1, 2), names)
    table.vacuum()
    with pytest.raises(TableChangedError, match=r"1 offsets are not in the table .*: 3;"):
        list(batches)


def test_a_file_that_the_newest_version_needs_must_be_there(two_files: HandTable) -> None:
    name = next(iter(two_files.live))
    (two_files.path / name).unlink()
    with pytest.raises(TableChangedError, match=f"version 2 needs it: {name}"):
        read(two_files.path, 0, 4)
    assert read(two_files.path, 2, 4) == expected(2, 3)


def test_another_table_at_the_place_is_not_read(two_files: HandTable) -> None:
    batches = begun(two_files, 0, 4)
    two_files.table_id = "another"
    two_files.commit(two_files.metadata({"_offset": "long"}))
    two_files.rewrite(rows_of(0, 1, 2, 3), list(two_files.live))
    two_files.vacuum()
    with pytest.raises(TableChangedError, match=r"another table is at .*its id is another"):
        list(batches)


def test_a_read_gives_up_after_many_versions(
    two_files: HandTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = reading.opened

    def vanishing(folder: Any, file: Any) -> Any:
        with suppress(FileNotFoundError):
            (two_files.path / file.path).unlink()
        two_files.rewrite(rows_of(0, 1, 2, 3), list(two_files.live))
        return opened(folder, file)

    monkeypatch.setattr(reading, "opened", vanishing)
    with pytest.raises(reading.TableUnavailableError, match="vanished 20 times during a read"):
        read(two_files.path, 0, 4)


# --- damage --------------------------------------------------------------------------------------


def _cut(data: bytes) -> bytes:
    return data[:-100]


def _flip_footer(data: bytes) -> bytes:
    return data[:-60] + bytes(40) + data[-20:]


def _flip_value(data: bytes) -> bytes:
    return data.replace(b"v1", b"w1", 1)


@pytest.mark.parametrize("damage", [_cut, _flip_footer, _flip_value, lambda _: b""])
def test_a_damaged_data_file_is_named(table: HandTable, damage: Callable[[bytes], bytes]) -> None:
    name = table.append(rows_of(0, 1), write_page_checksum=True, compression="none")
    file = table.path / name
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CorruptDataError, match=f"is damaged: {name}: "):
        read(table.path, 0, 2)


@pytest.mark.parametrize(
    "offsets", [pa.array(["x"]), pa.array([{"x": 1}]), pa.array([[1]]), pa.array([0.5])]
)
def test_offsets_that_are_no_numbers_are_damage(table: HandTable, offsets: pa.Array) -> None:
    name = table.append(pa.table({"_offset": offsets, "k": pa.array([1], pa.int32())}))
    with pytest.raises(CorruptDataError, match=f"is damaged: {name}: "):
        read(table.path, 0, 2)


def test_a_folder_is_no_file(two_files: HandTable) -> None:
    name = next(iter(two_files.live))
    (two_files.path / name).unlink()
    (two_files.path / name).mkdir()
    with pytest.raises(reading.TableUnavailableError, match="is not a file"):
        read(two_files.path, 0, 4)


def test_a_place_without_rights_proves_nothing(
    two_files: HandTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(reading.TableUnavailableError, match=r"cannot be read: .*Permission denied"):
        read(two_files.path, 0, 4)


def test_a_table_is_found_by_each_spelling_of_its_place(
    two_files: HandTable, tmp_path: Path
) -> None:
    (tmp_path / "a b%").symlink_to(two_files.path)
    for place in (
        two_files.path,
        f"file:{two_files.path}",
        f"file://{two_files.path}/",
        tmp_path / "a b%",
    ):
        assert read(place, 0, 4) == expected(0, 1, 2, 3)
