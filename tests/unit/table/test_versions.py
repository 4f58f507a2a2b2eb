"""A version of a table: what its log says, whatever files the log consists of."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bkspark.errors import (
    CorruptDataError,
    NoSuchTableError,
    TableUnavailableError,
    UnsupportedTableError,
)
from bkspark.table import replay
from bkspark.table.snapshot import Commit
from bkspark.table.table import DeltaTable, open_table
from tests.kit.delta import HandTable, write_actions

from .conftest import COLUMNS, expected, read, rows_of


def newest(table: HandTable) -> DeltaTable:
    return open_table(str(table.path))


def test_a_version_has_the_files_that_were_added_and_not_removed(two_files: HandTable) -> None:
    first, second = two_files.live
    two_files.commit(two_files.remove(first))
    table = newest(two_files)
    assert [file.path for file in table.snapshot().files] == [second]
    assert [file.path for file in table.snapshot(2).files] == [first, second]
    assert table.snapshot(0).files == ()


def test_a_version_says_what_the_table_is(table: HandTable) -> None:
    table.commit({"txn": {"appId": "a", "version": 3}}, {"txn": {"appId": "a", "version": 7}})
    properties = {"delta.appendOnly": "true"}
    table.commit(table.metadata(COLUMNS, partition=["v"], properties=properties))
    found = newest(table).snapshot()
    assert found.version == 2
    assert found.table_id == table.table_id
    assert found.properties == properties
    assert found.transactions == {"a": 7}
    assert found.partition_columns == ("v",)
    assert {name: column.type for name, column in found.columns.items()} == COLUMNS
    assert (found.reader_features, found.mapping) == (frozenset(), "none")


def test_a_file_says_its_rows_and_their_offsets(two_files: HandTable) -> None:
    two_files.append(rows_of(4, 6), statistics=False)
    found = newest(two_files).snapshot().files
    assert [(file.row_count, file.first_offset, file.last_offset) for file in found] == [
        (None, None, None),
        (2, 0, 1),
        (2, 2, 3),
    ]
    assert [file.may_have(1, 2) for file in found] == [True, True, False]


def test_files_without_offsets_are_known_to_have_none(table: HandTable) -> None:
    table.append(pa.table({"_offset": pa.array([None, None], pa.int64())}))
    [file] = newest(table).snapshot().files
    assert not file.may_have(0, 2**62)
    assert file.row_count == 2


@pytest.mark.parametrize("statistics", ["", "{", "[]", '{"minValues": 3}', "null"])
def test_statistics_that_cannot_be_read_are_unknown(table: HandTable, statistics: str) -> None:
    add = table.write(rows_of(0))
    add["add"]["stats"] = statistics
    table.commit(add)
    [file] = newest(table).snapshot().files
    assert (file.row_count, file.first_offset, file.last_offset) == (None, None, None)
    assert read(table.path, 0, 1) == expected(0)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_checkpoint_stands_for_the_commits_up_to_it(two_files: HandTable, parts: int) -> None:
    two_files.commit({"txn": {"appId": "a", "version": 7}})
    before = replace(newest(two_files).snapshot(), commit="")
    two_files.checkpoint(parts=parts)
    two_files.forget_commits(4)
    assert newest(two_files).snapshot() == before
    two_files.append(rows_of(4))
    assert len(newest(two_files).snapshot().files) == 3


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_a_checkpoint_may_name_its_files_in_sidecars(two_files: HandTable, kind: str) -> None:
    before = replace(newest(two_files).snapshot(), commit="")
    two_files.checkpoint_v2(kind=kind)
    two_files.forget_commits(3)
    assert newest(two_files).snapshot() == before


def test_statistics_may_be_columns_of_a_checkpoint(two_files: HandTable) -> None:
    before = replace(newest(two_files).snapshot(), commit="")
    [file] = two_files.checkpoint()
    offsets = pa.struct([("k", pa.int32()), ("_offset", pa.int64())])
    names = ("minValues", "maxValues", "nullCount")
    parsed = pa.struct([("numRecords", pa.int64()), *((name, offsets) for name in names)])
    write_actions(two_files.actions(), file, parsed)
    two_files.forget_commits(3)
    assert newest(two_files).snapshot() == before


def test_a_checkpoint_without_all_its_parts_is_none(two_files: HandTable) -> None:
    before = newest(two_files).snapshot()
    two_files.checkpoint(parts=3)[1].unlink()
    assert newest(two_files).snapshot() == before
    two_files.forget_commits(1)
    with pytest.raises(TableUnavailableError, match=r"version 2 .*00000000000000000000\.json is"):
        newest(two_files).snapshot()


def test_a_damaged_checkpoint_is_not_needed_if_the_commits_are_there(two_files: HandTable) -> None:
    before = newest(two_files).snapshot()
    [file] = two_files.checkpoint()
    file.write_bytes(file.read_bytes()[:-50])
    assert newest(two_files).snapshot() == before
    two_files.forget_commits(1)
    with pytest.raises(CorruptDataError, match=file.name):
        newest(two_files).snapshot()


def test_a_sidecar_that_is_gone_is_not_needed_if_the_commits_are_there(
    two_files: HandTable,
) -> None:
    before = newest(two_files).snapshot()
    [*_, sidecar] = two_files.checkpoint_v2()
    sidecar.unlink()
    assert newest(two_files).snapshot() == before
    two_files.forget_commits(1)
    with pytest.raises(TableUnavailableError, match=f"{sidecar.name} is missing"):
        newest(two_files).snapshot()


def test_a_log_that_is_cleaned_up_during_a_look_is_listed_again(
    two_files: HandTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listing still had the commits, and then there is a checkpoint in their place."""
    expected_files = newest(two_files).snapshot().files
    real = replay.read_commit

    def cleaned_up(folder: Any, version: int) -> Any:
        if two_files.commit_file(0).exists():
            two_files.checkpoint()
            two_files.forget_commits(3)
        return real(folder, version)

    monkeypatch.setattr(replay, "read_commit", cleaned_up)
    assert newest(two_files).snapshot().files == expected_files


@pytest.mark.parametrize(
    "hint",
    [
        "",
        "no json",
        "[]",
        '{"version": "2"}',
        '{"version": -2}',
        '{"version": 1}',
        '{"version": 99}',
        '{"version": 99999999999999999999999}',
    ],
)
def test_a_wrong_hint_of_the_last_checkpoint_changes_nothing(
    two_files: HandTable, hint: str
) -> None:
    two_files.checkpoint()
    two_files.append(rows_of(4))
    before = newest(two_files).snapshot()
    two_files.hint(hint)
    assert newest(two_files).snapshot() == before
    assert newest(two_files).snapshot(1).version == 1


def test_a_hint_of_an_older_checkpoint_hides_no_newer_version(two_files: HandTable) -> None:
    two_files.checkpoint()
    two_files.append(rows_of(4))
    two_files.checkpoint(hint=False)
    two_files.append(rows_of(5))
    assert newest(two_files).snapshot().version == 4


def test_compacted_commits_are_left_alone(two_files: HandTable) -> None:
    before = newest(two_files).snapshot()
    name = f"{0:020d}.{2:020d}.compacted.json"
    (two_files.log / name).write_text("nonsense", encoding="utf-8")
    (two_files.log / f"{3:020d}.json.tmp").write_text("nonsense", encoding="utf-8")
    (two_files.log / f"{2:020d}.crc").write_text("nonsense", encoding="utf-8")
    assert newest(two_files).snapshot() == before


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text[:-20], "Unterminated|Expecting"),
        (lambda _: "", "it is empty"),
        (lambda text: "\0" * len(text), "Expecting value"),
        (lambda text: text + "3\n", "a line is no action"),
        (lambda text: text + '{"add": {"path": "x"}}\n', "size"),
        (lambda text: text + '{"add": {"size": 1}}\n', "path"),
        (lambda text: text + '{"add": [1]}\n', "an action is malformed"),
        (lambda text: text + '{"txn": {"appId": "a"}}\n', "version"),
        (lambda text: text + '{"metaData": {"id": "a", "schemaString": "{"}}\n', "Expecting"),
    ],
    ids=["cut", "emptied", "zeroed", "number", "size", "path", "list", "txn", "schema"],
)
def test_a_damaged_commit_is_named(two_files: HandTable, damage: object, reason: str) -> None:
    file = two_files.commit_file(2)
    assert callable(damage)
    file.write_text(damage(file.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(CorruptDataError, match=rf"{file.name}: .*({reason})"):
        newest(two_files).snapshot()


def test_a_table_without_metadata_is_damaged(two_files: HandTable) -> None:
    file = two_files.commit_file(0)
    file.write_text('{"commitInfo": {}}\n', encoding="utf-8")
    with pytest.raises(CorruptDataError, match="no metadata or no protocol"):
        newest(two_files).snapshot()


def test_a_commit_that_is_missing_is_named(two_files: HandTable) -> None:
    two_files.commit_file(1).unlink()
    with pytest.raises(TableUnavailableError, match=two_files.commit_file(1).name):
        newest(two_files).snapshot()


def test_no_table_and_no_version_are_said(two_files: HandTable, tmp_path: Path) -> None:
    with pytest.raises(NoSuchTableError, match="there is no Delta table at file:///"):
        open_table(str(tmp_path / "other")).snapshot()
    with pytest.raises(NoSuchTableError, match="has no version 9: its newest is 2"):
        newest(two_files).snapshot(9)


def test_an_empty_folder_may_be_a_disk_that_is_not_mounted(tmp_path: Path) -> None:
    for folder in (tmp_path / "absent", tmp_path):
        with pytest.raises(NoSuchTableError, match="its disk may not be mounted"):
            open_table(str(folder)).snapshot()
    (tmp_path / "rows.parquet").touch()
    with pytest.raises(NoSuchTableError, match="there is no Delta table") as caught:
        open_table(str(tmp_path)).snapshot()
    assert "mount" not in str(caught.value)


@pytest.mark.parametrize("feature", ["variantType", "catalogManaged", "fooBar"])
def test_an_unknown_reader_feature_is_refused_by_its_name(tmp_path: Path, feature: str) -> None:
    table = HandTable(tmp_path / "t")
    table.create(COLUMNS, features=["deletionVectors", feature])
    with pytest.raises(UnsupportedTableError, match=rf"cannot read: {feature}; drop the feature"):
        newest(table).snapshot()


def test_a_later_reader_version_is_refused(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t")
    table.create(COLUMNS, reader_version=4)
    with pytest.raises(UnsupportedTableError, match="cannot read: reader version 4"):
        newest(table).snapshot()


def test_a_feature_that_was_dropped_again_is_no_hindrance(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t")
    table.create(COLUMNS, features=["variantType"])
    table.commit({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
    assert newest(table).snapshot().version == 1


@pytest.mark.parametrize(
    "path",
    ["file:///elsewhere/x.parquet", "/elsewhere/x.parquet", "s3a://b/x.parquet", "../x.parquet"],
)
def test_a_file_outside_of_the_table_is_refused(table: HandTable, path: str) -> None:
    add = table.write(rows_of(0))
    add["add"]["path"] = path
    table.commit(add)
    with pytest.raises(UnsupportedTableError, match="outside of its folder"):
        newest(table).snapshot()


@pytest.mark.parametrize("prefix", ["file:", "file://", "file://localhost", ""])
def test_an_absolute_path_into_the_table_is_read(table: HandTable, prefix: str) -> None:
    add = table.write(rows_of(0), name="a b.parquet")
    add["add"]["path"] = f"{prefix}{table.path}/{add['add']['path']}"
    table.commit(add)
    assert read(table.path, 0, 1) == expected(0)


def test_commits_say_what_they_did(two_files: HandTable) -> None:
    first, second = two_files.live
    two_files.rewrite(rows_of(0, 1, 2, 3), [first, second])
    two_files.commit({"txn": {"appId": "a", "version": 7}}, userMetadata="m", userName="u")
    two_files.commit(two_files.remove(next(iter(two_files.live))), operation="DELETE")
    two_files.commit(two_files.metadata(COLUMNS), operation="SET", inCommitTimestamp=5)
    found = newest(two_files).commits(1, 6)
    assert found == (
        Commit(2, "WRITE", 1002, adds_rows=True),
        Commit(3, "OPTIMIZE", 1003),
        Commit(4, "WRITE", 1004, "u", "m", transactions={"a": 7}),
        Commit(5, "DELETE", 1005, removes_rows=True),
        Commit(6, "SET", 5, changes_metadata=True),
    )
    assert [commit.changes_rows for commit in found] == [True, False, False, True, False]
    two_files.forget_commits(3)
    with pytest.raises(TableUnavailableError, match=r"does not have .*2\.json any more"):
        newest(two_files).commits(1, 6)


def test_a_version_names_its_commit_if_that_is_there(two_files: HandTable) -> None:
    table = newest(two_files)
    found = table.snapshot().commit
    assert found == table.commit_digest(two_files.version) != table.commit_digest(0)
    two_files.checkpoint()
    assert table.snapshot().commit == found
    two_files.commit_file(two_files.version).unlink()
    assert table.snapshot().commit == table.commit_digest(two_files.version) == ""


def test_statistics_alone_may_show_that_all_offsets_are_there(two_files: HandTable) -> None:
    found = newest(two_files).snapshot()
    assert found.is_dense(0, 4)
    assert found.is_dense(1, 3)
    assert found.is_dense(2, 2)
    assert not found.is_dense(0, 5)
    two_files.append(rows_of(3))
    assert not newest(two_files).snapshot().is_dense(0, 4)
    assert newest(two_files).snapshot().is_dense(0, 3)


def test_a_schema_is_a_struct(table: HandTable) -> None:
    table.commit({"metaData": {"id": "a", "schemaString": json.dumps("long")}})
    with pytest.raises(CorruptDataError, match="the schema is no struct"):
        newest(table).snapshot()
