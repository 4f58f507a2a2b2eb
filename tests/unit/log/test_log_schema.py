"""What is said about rows whose schema is not the log's."""

import pyarrow as pa
import pytest

from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema
from bkspark.log.creating import schema_after
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.record import LogRecord

BASE = pa.schema([("id", pa.int64()), ("text", pa.string())])


@pytest.mark.parametrize(
    ("rows", "merges"),
    [
        (pa.schema([*BASE, ("more", pa.int64())]), True),
        (pa.schema([("id", pa.decimal128(20, 0)), ("text", pa.string())]), True),
        (pa.schema([("id", pa.date32()), ("text", pa.string())]), False),
        (pa.schema([*BASE, pa.field("more", pa.int64(), nullable=False)]), False),
    ],
    ids=["more", "wider", "type", "more without nulls"],
)
def test_merge_schema_is_named_only_where_it_would_take_the_rows(
    rows: pa.Schema, merges: bool
) -> None:
    log = LogRecord("a", LogSettings(Quorum(3, 3, 2)), arrow_schema.encode(BASE))
    with pytest.raises(InvalidRequestError) as caught:
        schema_after(rows, log, merges_schema=False, is_overwrite=False)
    assert ("mergeSchema" in str(caught.value)) == merges
    if merges:
        schema_after(rows, log, merges_schema=True, is_overwrite=False)


@pytest.mark.parametrize(
    "rows",
    [pa.schema([BASE.field("text"), BASE.field("id")]), pa.schema([BASE.field("id")])],
    ids=["order", "missing"],
)
def test_rows_of_another_order_or_without_a_column_leave_the_schema(rows: pa.Schema) -> None:
    log = LogRecord("a", LogSettings(Quorum(3, 3, 2)), arrow_schema.encode(BASE))
    assert schema_after(rows, log, merges_schema=False, is_overwrite=False) == log.schema
