"""A table of three columns with four rows in two files, and reads of it as a log does them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bkspark.table.reading import read_range
from bkspark.table.snapshot import Snapshot
from bkspark.table.table import open_table
from tests.kit.delta import HandTable

COLUMNS = {"_offset": "long", "k": "integer", "v": "string"}
SCHEMA = pa.schema([("k", pa.int32()), ("v", pa.string())])

Read = Callable[..., list[dict[str, Any]]]


def rows_of(*offsets: int) -> pa.Table:
    """Rows whose values say their offsets."""
    values = {
        "_offset": pa.array(offsets, pa.int64()),
        "k": pa.array([offset * 10 for offset in offsets], pa.int32()),
        "v": pa.array([f"v{offset}" for offset in offsets]),
    }
    return pa.table(values)


def expected(*offsets: int) -> list[dict[str, Any]]:
    return list(rows_of(*offsets).to_pylist())


def read(
    path: Path | str,
    begin: int,
    end: int,
    schema: pa.Schema = SCHEMA,
    *,
    columns: Mapping[str, Any] | None = None,
    snapshot: Snapshot | None = None,
    missing: Sequence[tuple[int, int]] = (),
) -> list[dict[str, Any]]:
    """Read a range, with the columns as the table has them now; rows in the order of offsets."""
    table = open_table(str(path))
    snapshot = snapshot or table.snapshot()
    sources = snapshot.columns if columns is None else columns
    batches = read_range(table, snapshot, begin, end, schema, sources, missing)
    rows = [row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")]
    return sorted(rows, key=lambda row: row["_offset"])


@pytest.fixture
def table(tmp_path: Path) -> HandTable:
    """Without rows."""
    table = HandTable(tmp_path / "table")
    table.create(COLUMNS)
    return table


@pytest.fixture
def two_files(table: HandTable) -> HandTable:
    """Offsets 0 and 1, and 2 and 3."""
    table.append(rows_of(0, 1))
    table.append(rows_of(2, 3))
    return table
