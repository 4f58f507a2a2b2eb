"""A log's columns are found by what never changes, and come in the types that the log has."""

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bkspark.errors import CorruptDataError, TableChangedError, UnsupportedTableError
from bkspark.table.delta_types import TableColumn, format_type, parse_schema, parse_type
from bkspark.table.reading import read_range
from bkspark.table.table import open_table
from tests.kit.delta import HandTable, mapped, schema_string

from .conftest import COLUMNS, read, rows_of

NOON = datetime(2024, 2, 29, 12)  # noqa: DTZ001 - of no zone
PHYSICAL = {"_offset": mapped(1, "p1"), "k": mapped(2, "p2"), "v": mapped(3, "p3")}
BY_NAME = {"delta.columnMapping.mode": "name"}
BY_ID = {"delta.columnMapping.mode": "id"}


def physical(*offsets: int) -> pa.Table:
    return rows_of(*offsets).rename_columns(["p1", "p2", "p3"])


def numbered(rows: pa.Table) -> pa.Table:
    """The same rows under other names, with the numbers of their columns."""
    fields = [
        field.with_name(f"other{n}").with_metadata({b"PARQUET:field_id": str(n).encode()})
        for n, field in enumerate(rows.schema, start=1)
    ]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))


def columns_of(table: HandTable) -> Any:
    return open_table(str(table.path)).snapshot().columns


def one(name: str, kind: Any) -> pa.Schema:
    return pa.schema([pa.field(name, kind)])


def made(path: Path, kind: Any, values: pa.Array, **how: Any) -> HandTable:
    """A table with a column ``c``."""
    table = HandTable(path / "t")
    table.create({"_offset": "long", "c": kind})
    offsets = pa.array(range(len(values)), pa.int64())
    table.append(pa.table({"_offset": offsets, "c": values}), **how)
    return table


# --- column mapping ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [BY_NAME, BY_ID])
def test_a_renamed_column_is_the_same(tmp_path: Path, mode: dict[str, str]) -> None:
    table = HandTable(tmp_path / "t")
    table.create(COLUMNS, metadata=PHYSICAL, properties=mode, reader_version=2)
    rows = physical(0, 1) if mode is BY_NAME else numbered(rows_of(0, 1))
    table.append(rows, offsets=rows.column_names[0])
    known = columns_of(table)
    renamed = {"_offset": "long", "v": "integer", "k": "string"}
    metadata = {"_offset": mapped(1, "p1"), "v": mapped(2, "p2"), "k": mapped(3, "p3")}
    table.commit(table.metadata(renamed, metadata, properties=mode))
    assert read(table.path, 0, 2, columns=known) == rows_of(0, 1).to_pylist()


def test_offsets_are_known_by_their_physical_name(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t")
    table.create(COLUMNS, metadata=PHYSICAL, properties=BY_NAME, reader_version=2)
    table.append(physical(0, 1), offsets="p1")
    known = columns_of(table)
    renamed = {"position": "long", "k": "integer", "v": "string"}
    metadata = {"position": PHYSICAL["_offset"], "k": PHYSICAL["k"], "v": PHYSICAL["v"]}
    table.commit(table.metadata(renamed, metadata, properties=BY_NAME))
    [file] = open_table(str(table.path), "p1").snapshot().files
    assert (file.first_offset, file.last_offset) == (0, 1)
    assert read(table.path, 0, 2, columns=known) == rows_of(0, 1).to_pylist()


@pytest.mark.parametrize("again", [{}, {"v": mapped(9, "p9")}])
def test_a_dropped_column_is_an_error_and_never_null(tmp_path: Path, again: Any) -> None:
    """Also if another column has its name now, and though the file still has its values."""
    table = HandTable(tmp_path / "t")
    table.create(COLUMNS, metadata=PHYSICAL, properties=BY_NAME, reader_version=2)
    table.append(physical(0, 1), offsets="p1")
    known = columns_of(table)
    left = {"_offset": "long", "k": "integer", **dict.fromkeys(again, "string")}
    metadata = {"_offset": PHYSICAL["_offset"], "k": PHYSICAL["k"], **again}
    table.commit(table.metadata(left, metadata, properties=BY_NAME))
    with pytest.raises(TableChangedError, match=r"column 'v' is not in the table .* version 2"):
        read(table.path, 0, 2, columns=known)
    assert len(read(table.path, 0, 2, one("k", pa.int32()), columns=known)) == 2


def test_offsets_that_were_dropped_are_an_error(two_files: HandTable) -> None:
    two_files.commit(two_files.metadata({"k": "integer"}))
    with pytest.raises(TableChangedError, match="column '_offset' is not in the table"):
        read(two_files.path, 0, 4, one("k", pa.int32()))


def test_a_mapping_without_its_reader_version_is_not_in_force(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t")
    table.create(COLUMNS, metadata=PHYSICAL, properties=BY_NAME, reader_version=1)
    table.append(rows_of(0, 1))
    assert read(table.path, 0, 2) == rows_of(0, 1).to_pylist()


def test_a_mapping_by_feature_is_in_force(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t")
    table.create(COLUMNS, metadata=PHYSICAL, properties=BY_NAME, features=["columnMapping"])
    table.append(physical(0, 1), offsets="p1")
    assert read(table.path, 0, 2) == rows_of(0, 1).to_pylist()


def test_an_unknown_mapping_is_refused(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t")
    table.create(COLUMNS, properties={"delta.columnMapping.mode": "magic"}, reader_version=2)
    with pytest.raises(UnsupportedTableError, match="unknown column mapping 'magic'"):
        open_table(str(table.path)).snapshot()


def test_a_column_that_was_added_later_is_null_before(two_files: HandTable) -> None:
    two_files.commit(two_files.metadata({**COLUMNS, "w": "string"}))
    rows = rows_of(4).append_column("w", pa.array(["there"]))
    two_files.append(rows)
    found = read(two_files.path, 0, 5, one("w", pa.string()))
    assert [row["w"] for row in found] == [None, None, None, None, "there"]


def test_a_column_that_the_table_never_had_is_null(two_files: HandTable) -> None:
    found = read(two_files.path, 0, 4, one("x", pa.list_(pa.int8())), columns={})
    assert [row["x"] for row in found] == [None] * 4


def test_a_column_in_other_letters_is_not_taken_for_a_missing_one(two_files: HandTable) -> None:
    two_files.append(rows_of(4).rename_columns(["_offset", "K", "V"]))
    assert read(two_files.path, 4, 5) == rows_of(4).to_pylist()


def test_a_name_with_a_dot_is_not_a_field_of_a_struct(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t")
    fields = [{"name": "b", "type": "integer", "nullable": True, "metadata": {}}]
    kinds = {"_offset": "long", "a": {"type": "struct", "fields": fields}, "a.b": "string"}
    table.create(kinds)
    rows = [{"_offset": 0, "a": {"b": 1}, "a.b": "text"}]
    inner = pa.struct([("b", pa.int32())])
    table.append(
        pa.Table.from_pylist(
            rows, pa.schema([("_offset", pa.int64()), ("a", inner), ("a.b", pa.string())])
        )
    )
    assert read(table.path, 0, 1, one("a.b", pa.string())) == [{"_offset": 0, "a.b": "text"}]
    assert read(table.path, 0, 1, one("a", inner)) == [{"_offset": 0, "a": {"b": 1}}]


# --- nested columns ------------------------------------------------------------------------------

INNER = {"type": "struct", "fields": []}


def nested_type(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """An array of maps to structs with two fields, with their metadata."""
    fields = [
        {"name": a.pop("name", "a"), "type": "integer", "nullable": True, "metadata": a},
        {"name": b.pop("name", "b"), "type": "string", "nullable": True, "metadata": b},
    ]
    inner = {"type": "struct", "fields": fields}
    table = {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True}
    return {"type": "array", "elementType": table, "containsNull": True}


WANTED = pa.list_(pa.map_(pa.string(), pa.struct([("a", pa.int32()), ("b", pa.string())])))
VALUES = [
    [{"x": {"a": 1, "b": "one"}, "y": None}],
    None,
    [],
    [None, {}, {"z": {"a": None, "b": None}}],
]


def renamed_in(kind: pa.DataType, names: list[str]) -> pa.DataType:
    inner = pa.struct([(names[0], pa.int32()), (names[1], pa.string())])
    return pa.list_(pa.map_(pa.string(), inner))


def with_names(names: list[str]) -> list[Any]:
    """`VALUES` with other names of the two fields."""

    def inner(value: Any) -> Any:
        return value and {names[0]: value["a"], names[1]: value["b"]}

    return [
        rows and [maps and {key: inner(value) for key, value in maps.items()} for maps in rows]
        for rows in VALUES
    ]


def test_nested_fields_are_found_by_physical_names(tmp_path: Path) -> None:
    """The names of two fields were exchanged, and a range begins within a batch."""
    table = HandTable(tmp_path / "t")
    kind = nested_type(mapped(3, "pa"), mapped(4, "pb"))
    metadata = {"_offset": mapped(1, "_offset"), "c": mapped(2, "c")}
    given = {"properties": BY_NAME, "metadata": metadata}
    table.create({"_offset": "long", "c": kind}, **given, reader_version=2)  # type: ignore[arg-type]
    values = pa.array(with_names(["pa", "pb"]), renamed_in(WANTED, ["pa", "pb"]))
    table.append(pa.table({"_offset": pa.array(range(4), pa.int64()), "c": values}))
    known = columns_of(table)
    exchanged = nested_type({"name": "b", **mapped(3, "pa")}, {"name": "a", **mapped(4, "pb")})
    table.commit(table.metadata({"_offset": "long", "c": exchanged}, **given))  # type: ignore[arg-type]
    for begin in range(4):
        found = read(table.path, begin, 4, one("c", WANTED), columns=known)
        assert [row["c"] for row in found] == VALUES[begin:]
    dropped = nested_type({"name": "b", **mapped(3, "pa")}, {"name": "z", **mapped(9, "p9")})
    table.commit(table.metadata({"_offset": "long", "c": dropped}, **given))  # type: ignore[arg-type]
    with pytest.raises(TableChangedError, match=r"column 'c\.element\.value\.b' is not in the"):
        read(table.path, 0, 4, one("c", WANTED), columns=known)


def test_nested_fields_that_were_added_later_are_null(tmp_path: Path) -> None:
    kind = nested_type({}, {})
    values = pa.array(VALUES, WANTED)
    table = made(tmp_path, kind, values)
    wider = pa.struct([("b", pa.string()), ("new", pa.float64()), ("a", pa.int64())])
    wanted = pa.list_(pa.map_(pa.string(), wider))
    found = read(table.path, 0, 4, one("c", wanted))
    assert found[0]["c"] == [{"x": {"b": "one", "new": None, "a": 1}, "y": None}]
    assert [row["c"] for row in found[1:3]] == [None, []]


def test_nested_types_of_another_kind_are_an_error(tmp_path: Path) -> None:
    table = made(tmp_path, nested_type({}, {}), pa.array(VALUES, WANTED))
    known = columns_of(table)
    table.commit(table.metadata({"_offset": "long", "c": "string"}))
    with pytest.raises(TableChangedError, match="column 'c' is not in the table"):
        read(table.path, 0, 4, one("c", WANTED), columns=known)


def test_a_type_is_text_and_back() -> None:
    kind = nested_type(mapped(3, "pa"), {})
    [column] = parse_schema(schema_string({"c": kind}))
    assert parse_type(column.type_text) == parse_type(format_type(column.type))
    assert "pa" in column.type_text
    assert column.type_text.count("physicalName") == 1
    [plain] = parse_schema(schema_string({"c": "decimal(10,2)"}))
    assert plain == TableColumn("c", "c", "decimal(10,2)")
    assert parse_type(plain.type_text) == plain.type
    assert parse_type('"decimal(10,2)"') == plain.type


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"type": "struct", "fields": [3]}',
        '{"type": "struct", "fields": [{"name": 3, "type": "long"}]}',
        '{"type": "struct", "fields": [{"name": "a", "type": {"type": "udt"}}]}',
        '{"type": "struct", "fields": [{"name": "a", "type": "long", "metadata": 3}]}',
        '{"type":"array","elementType":' * 100 + '"long"' + "}" * 100,
        '{"type":"array","elementType":' * 9000 + '"long"' + "}" * 9000,
    ],
)
def test_a_malformed_schema_is_damage(two_files: HandTable, text: str) -> None:
    two_files.commit({"metaData": {"id": "a", "schemaString": text}})
    with pytest.raises(CorruptDataError, match=r"3\.json: "):
        open_table(str(two_files.path)).snapshot()


# --- types ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "stored", "wanted"),
    [
        ("long", pa.array([1, None, -5], pa.int64()), pa.int32()),
        ("long", pa.array([1, None, -5], pa.int32()), pa.int64()),
        ("double", pa.array([1.0, None, -5.0], pa.float64()), pa.int16()),
        ("double", pa.array([0.5, None, float("-inf"), -0.0], pa.float64()), pa.float32()),
        (
            "decimal(20,6)",
            pa.array([Decimal("1.500000"), None], pa.decimal128(20, 6)),
            pa.decimal128(12, 3),
        ),
        ("decimal(20,0)", pa.array([Decimal(7), None], pa.decimal128(20, 0)), pa.int32()),
        (
            "timestamp_ntz",
            pa.array([date(2024, 2, 29), None]).cast(pa.timestamp("us")),
            pa.date32(),
        ),
        ("string", pa.array(["a", None, ""]).dictionary_encode(), pa.string()),
        ("binary", pa.array([b"a", None, b""], pa.large_binary()), pa.binary()),
    ],
)
def test_a_widened_type_is_given_back(
    tmp_path: Path, kind: str, stored: pa.Array, wanted: pa.DataType
) -> None:
    found = read(made(tmp_path, kind, stored).path, 0, len(stored), one("c", wanted))
    assert [row["c"] for row in found] == pa.array(stored.to_pylist()).cast(wanted).to_pylist()


@pytest.mark.parametrize(
    ("kind", "stored", "wanted"),
    [
        ("long", pa.array([2**40], pa.int64()), pa.int32()),
        ("double", pa.array([0.5], pa.float64()), pa.int32()),
        ("double", pa.array([0.1], pa.float64()), pa.float32()),
        ("double", pa.array([1e300], pa.float64()), pa.float32()),
        (
            "decimal(20,6)",
            pa.array([Decimal("1.000001")], pa.decimal128(20, 6)),
            pa.decimal128(12, 3),
        ),
        ("timestamp_ntz", pa.array([NOON], pa.timestamp("us")), pa.date32()),
        ("string", pa.array(["x"]), pa.int32()),
        ("string", pa.array(["x"]), pa.struct([("a", pa.int32())])),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(
    tmp_path: Path, kind: str, stored: pa.Array, wanted: pa.DataType
) -> None:
    with pytest.raises(TableChangedError, match="is not one of the log: part-"):
        read(made(tmp_path, kind, stored).path, 0, 1, one("c", wanted))


def test_a_nan_is_a_nan_in_a_narrower_type(tmp_path: Path) -> None:
    table = made(tmp_path, "double", pa.array([float("nan"), None]))
    found = read(table.path, 0, 2, one("c", pa.float32()))
    assert [repr(row["c"]) for row in found] == ["nan", "None"]


JULIAN_DAY_OF_1970 = 2_440_588
OLD = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1500, 3, 1, 12, tzinfo=UTC),
    None,
    datetime(2262, 4, 12, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_times_of_all_years_are_right_in_each_zone(tmp_path: Path, zone: str) -> None:
    table = open_table(
        str(made(tmp_path, "timestamp", pa.array(OLD, pa.timestamp("us", "UTC"))).path)
    )
    snapshot = table.snapshot()
    schema = one("c", pa.timestamp("us", zone))
    [rows] = read_range(table, snapshot, 0, 5, schema, snapshot.columns)
    assert rows.column("c").type == pa.timestamp("us", zone)
    assert rows.column("c").cast(pa.timestamp("us", "UTC")).to_pylist() == OLD


def test_int96_is_read_in_microseconds(tmp_path: Path) -> None:
    """Bytes as Spark writes them: pyarrow has no way to write the year 9999 so."""
    near = pa.array([0, 86_400 * 10**9], pa.timestamp("ns"))
    how = {"use_deprecated_int96_timestamps": True, "compression": "none", "use_dictionary": False}
    table = made(tmp_path, "timestamp", near, write_statistics=False, **how)
    [name] = table.live
    data = (table.path / name).read_bytes()
    second = struct.pack("<qi", 0, JULIAN_DAY_OF_1970 + 1)
    assert data.count(second) == 1
    last = struct.pack("<qi", 0, JULIAN_DAY_OF_1970 + (date(9999, 12, 31) - date(1970, 1, 1)).days)
    (table.path / name).write_bytes(data.replace(second, last))
    found = read(table.path, 0, 2, one("c", pa.timestamp("us", "UTC")))
    assert [row["c"] for row in found] == [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, tzinfo=UTC),
    ]


@pytest.mark.parametrize("key", ["org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"])
@pytest.mark.parametrize(
    ("kind", "values", "is_refused"),
    [
        ("date", pa.array([date(1582, 10, 15), None]), False),
        ("date", pa.array([date(1582, 10, 14), None]), True),
        (
            "timestamp",
            pa.array([datetime(1900, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            False,
        ),
        (
            "timestamp",
            pa.array([datetime(1899, 12, 31, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            True,
        ),
        ("timestamp", pa.array([None], pa.timestamp("us", "UTC")), False),
        ("string", pa.array(["x"]), False),
    ],
)
def test_dates_of_another_calendar_are_refused(
    tmp_path: Path, key: str, kind: str, values: pa.Array, is_refused: bool
) -> None:
    table = HandTable(tmp_path / "t")
    table.create({"_offset": "long", "c": kind})
    rows = pa.table({"_offset": pa.array(range(len(values)), pa.int64()), "c": values})
    table.append(rows.replace_schema_metadata({key: ""}))
    schema = one("c", values.type)
    if is_refused:
        with pytest.raises(TableChangedError, match="it has dates of the Julian calendar"):
            read(table.path, 0, len(values), schema)
    else:
        assert [row["c"] for row in read(table.path, 0, len(values), schema)] == values.to_pylist()


# --- partitions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "value", "wanted"),
    [
        ("string", "a/b%c=ü ", "a/b%c=ü ", pa.string()),
        ("string", "", None, pa.string()),
        ("string", None, None, pa.string()),
        ("integer", "-7", -7, pa.int32()),
        ("long", str(2**40), 2**40, pa.int64()),
        ("byte", "", None, pa.int8()),
        ("boolean", "true", True, pa.bool_()),
        ("boolean", "FALSE", False, pa.bool_()),
        ("double", "-0.0", -0.0, pa.float64()),
        ("double", "1.0E10", 1e10, pa.float64()),
        ("float", "-Infinity", float("-inf"), pa.float32()),
        ("decimal(12,3)", "1.5", Decimal("1.500"), pa.decimal128(12, 3)),
        ("date", "0001-01-01", date(1, 1, 1), pa.date32()),
        ("date", "9999-12-31", date(9999, 12, 31), pa.date32()),
        (
            "timestamp",
            "2024-02-29T01:02:03.000004Z",
            datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC),
            pa.timestamp("us", "UTC"),
        ),
        (
            "timestamp",
            "2024-02-29 01:02:03+02:00",
            datetime(2024, 2, 28, 23, 2, 3, tzinfo=UTC),
            pa.timestamp("us", "UTC"),
        ),
        (
            "timestamp_ntz",
            "2024-02-29 01:02:03.000004",
            datetime(2024, 2, 29, 1, 2, 3, 4),  # noqa: DTZ001
            pa.timestamp("us"),
        ),
        ("long", "7", 7, pa.int32()),
    ],
)
def test_a_partition_value_is_parsed(
    tmp_path: Path, kind: str, text: str | None, value: Any, wanted: pa.DataType
) -> None:
    table = HandTable(tmp_path / "t")
    table.create({"_offset": "long", "c": kind}, partition=["c"])
    rows = pa.table({"_offset": pa.array([0, 1], pa.int64())})
    table.append(rows, values={"c": text}, name=f"c={str(text).replace('/', '%2F')}/a b.parquet")
    found = read(table.path, 0, 2, one("c", wanted))
    assert [repr(row["c"]) for row in found] == [repr(pa.scalar(value, wanted).as_py())] * 2


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("timestamp", "2024-02-29 01:02:03", "has no zone"),
        ("timestamp_ntz", "2024-02-29 01:02:03Z", "has a zone"),
        ("boolean", "yes", "neither true nor false"),
        ("integer", "x", "invalid literal"),
        ("integer", str(2**40), "too large|not in range|out of bounds"),
        ("date", "2024-02-30", "day"),
        ("binary", "x", "a partition of type binary is not read"),
    ],
)
def test_a_partition_value_of_two_meanings_is_refused(
    tmp_path: Path, kind: str, text: str, reason: str
) -> None:
    table = HandTable(tmp_path / "t")
    table.create({"_offset": "long", "c": kind}, partition=["c"])
    table.append(pa.table({"_offset": pa.array([0], pa.int64())}), values={"c": text})
    with pytest.raises(CorruptDataError, match=f"partition values of part-.*({reason})"):
        read(table.path, 0, 1, one("c", pa.null()))


def test_partition_values_are_by_physical_name(tmp_path: Path) -> None:
    table = HandTable(tmp_path / "t")
    table.create(COLUMNS, metadata=PHYSICAL, properties=BY_NAME, reader_version=2, partition=["v"])
    table.append(physical(0).drop(["p3"]), values={"p3": "here", "v": "not"}, offsets="p1")
    assert [row["v"] for row in read(table.path, 0, 1)] == ["here"]
