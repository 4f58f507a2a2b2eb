"""Whatever a table's owner does, a log's rows are read as Spark and delta-rs read them."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bkspark.errors import TableChangedError
from bkspark.format.canonical_rows import digest_of
from bkspark.table.conversion import ColumnSource
from bkspark.table.reading import read_range
from bkspark.table.table import open_table

from .layouts import COLUMNS, LAYOUTS, LOG_FILES, ROWS, Owner

UNREAD_BY_DELTALAKE = {"widened", "widened to double", "INT96 of all years"}
"""Refused, or read wrongly without an error."""

OFFSET = "_offset"


def read_by_us(
    owner: Owner, columns: Mapping[str, ColumnSource], schema: pa.Schema, there: set[int]
) -> pa.Table:
    """The rows of a log whose columns are those of ``schema``; others than ``there`` are gone."""
    table = open_table(owner.path, columns[OFFSET].physical_name)
    missing = [(offset, offset + 1) for offset in range(ROWS) if offset not in there]
    if missing:
        with pytest.raises(TableChangedError) as error:
            list(read_range(table, table.snapshot(), 0, ROWS, pa.schema([]), columns))
        gone = [(n, n + 1) for begin, end in error.value.missing for n in range(begin, end)]
        assert gone == missing
    batches = list(read_range(table, table.snapshot(), 0, ROWS, schema, columns, missing))
    return pa.Table.from_batches(batches).sort_by(OFFSET).select(schema.names)


def read_by_spark(owner: Owner) -> pa.Table:
    """The log's columns that are left, by the names that the log knows."""
    names = [name for name in COLUMNS if owner.now.get(name) != ""]
    rows = owner.spark.read.format("delta").load(owner.path)
    rows = rows.selectExpr(*(f"{owner.now.get(name, name)} AS {name}" for name in names))
    return rows.where(f"{OFFSET} < {ROWS}").orderBy(OFFSET).toArrow()


def read_by_deltalake(owner: Owner, schema: pa.Schema, offset_column: str) -> pa.Table:
    """The rows with the names that the owner knows."""
    rows = pa.table(DeltaTable(owner.path).scan())
    rows = rows.rename_columns([OFFSET if n == offset_column else n for n in rows.column_names])
    rows = rows.select(schema.names).cast(schema)
    return rows.filter(pc.less(rows.column(OFFSET), ROWS)).sort_by(OFFSET)


def assert_equal(found: pa.Table, wanted: pa.Table) -> None:
    assert found.column_names == wanted.column_names
    for name in wanted.column_names:
        one, other = found.column(name).to_pylist(), wanted.column(name).to_pylist()
        # By text: a NaN is a NaN, and -0.0 is not 0.0.
        assert list(map(repr, one)) == list(map(repr, other)), name
    assert digest_of(found) == digest_of(wanted)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_read_as_others_read_it(
    delta_spark: SparkSession, place: str, name: str
) -> None:
    owner = Owner(delta_spark, place)
    LAYOUTS[name](owner)
    assert name not in LOG_FILES or list(Path(place).glob(f"_delta_log/{LOG_FILES[name]}"))
    wanted = read_by_spark(owner)
    there = set(wanted.column(OFFSET).to_pylist())
    assert len(there) > ROWS // 3
    first = open_table(place).snapshot(owner.first_version).columns
    assert_equal(read_by_us(owner, first, wanted.schema, there), wanted)

    for dropped in (name for name in COLUMNS if name not in wanted.column_names):
        schema = wanted.schema.append(pa.field(dropped, pa.string()))
        with pytest.raises(TableChangedError, match=f"column '{dropped}' is not in the table"):
            read_by_us(owner, first, schema, there)

    if name not in UNREAD_BY_DELTALAKE:
        position = owner.now.get(OFFSET, OFFSET)
        now = dict(open_table(place).snapshot().columns)
        now[OFFSET] = now.pop(position)
        present = delta_spark.read.format("delta").load(place).limit(0).toArrow().schema
        schema = pa.schema([f.with_name(OFFSET) if f.name == position else f for f in present])
        ours = read_by_us(owner, now, schema, there)
        assert_equal(ours, read_by_deltalake(owner, schema, position))
