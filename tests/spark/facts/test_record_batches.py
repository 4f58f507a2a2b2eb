"""Which Arrow record batches Spark takes from `read()` and which it gives to `write()`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from facts.journal import calls

MISMATCH = "DATA_SOURCE_RETURN_SCHEMA_MISMATCH"
LARGE = {"spark.sql.execution.arrow.useLargeVarTypes": "true"}

Read = Callable[..., list[Any]]


@pytest.fixture
def read(spark: SparkSession, tmp_path: Path) -> Read:
    """Hand batches to Spark as the result of one `read()` and collect the rows."""

    def run(ddl: str, *batches: pa.RecordBatch) -> list[Any]:
        files = []
        for i, batch in enumerate(batches):
            files.append(str(tmp_path / f"{i}.arrow"))
            with pa.ipc.new_file(files[-1], batch.schema) as file:
                file.write_batch(batch)
        df = spark.read.format("facts_batches").schema(ddl).option("batches", ",".join(files))
        return [row.x for row in df.load().collect()]

    return run


def _batch(values: pa.Array, *, nullable: bool = True, **field: Any) -> pa.RecordBatch:
    return pa.record_batch(
        [values], schema=pa.schema([pa.field("x", values.type, nullable=nullable, **field)])
    )


def _store(df: DataFrame, folder: Path) -> pa.Schema:
    """Write with the naive store; return the Arrow schema that its writer was given."""
    folder.mkdir()
    df.coalesce(1).write.format("facts_store").mode("append").save(str(folder))
    with pa.ipc.open_file(folder / "0.arrow") as file:
        return file.schema


ONE = pa.array([1], pa.int64())
TEXT = pa.array(["a"])
BYTES = pa.array([b"a"])
TIME = pa.array([0], pa.timestamp("us", "UTC"))


@pytest.mark.parametrize(
    ("ddl", "batch"),
    [
        pytest.param("x LONG", _batch(ONE, nullable=False), id="not null for nullable"),
        pytest.param("x LONG NOT NULL", _batch(ONE), id="nullable for not null"),
        pytest.param("x LONG", _batch(ONE.cast(pa.int32())), id="narrower integer"),
        pytest.param("x STRING", _batch(TEXT.cast(pa.large_string())), id="large string"),
        pytest.param("x STRING", _batch(TEXT.cast(pa.string_view())), id="string view"),
        pytest.param("x STRING", _batch(TEXT.dictionary_encode()), id="dictionary"),
        pytest.param("x BINARY", _batch(BYTES.cast(pa.large_binary())), id="large binary"),
        pytest.param(
            "x TIMESTAMP", _batch(TIME.cast(pa.timestamp("us"))), id="timestamp without zone"
        ),
        pytest.param(
            "x TIMESTAMP", _batch(TIME.cast(pa.timestamp("us", "+00:00"))), id="another UTC"
        ),
        pytest.param(
            "x TIMESTAMP", _batch(TIME.cast(pa.timestamp("ms", "UTC"))), id="milliseconds"
        ),
    ],
)
def test_a_first_batch_of_another_schema_is_refused(read, ddl, batch):
    """Every batch is built with the schema that pyspark derives from `reader()`'s argument."""
    with pytest.raises(PythonException, match=MISMATCH):
        read(ddl, batch)


def test_columns_in_another_order_are_refused(read):
    """A projection reorders the columns, it does not only drop some."""
    batch = pa.RecordBatch.from_pydict({"y": ONE, "x": ONE})
    with pytest.raises(PythonException, match=MISMATCH):
        read("x LONG, y LONG", batch)


def test_arrow_metadata_and_the_name_of_list_elements_are_not_compared(read):
    """Entries may carry metadata of ours in their Arrow schema."""
    batch = _batch(ONE, metadata={"k": "v"}).replace_schema_metadata({"k": "v"})
    assert read("x LONG", batch) == [1]
    assert read("x ARRAY<LONG>", _batch(pa.array([[1]]))) == [[1]]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(_batch(ONE.cast(pa.int32())), id="type"),
        pytest.param(_batch(ONE, nullable=False), id="nullability"),
    ],
)
def test_only_the_first_batch_is_checked_and_a_later_one_fails_in_arrow(read, second):
    """Spark's message does not name the column then: we check every batch ourselves."""
    with pytest.raises(PythonException, match="write record batch with different schema"):
        read("x LONG", _batch(ONE), second)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_read_wants_timestamps_in_utc_whatever_the_session_time_zone(read, conf, zone):
    """The reader need not know the session's time zone, which it cannot ask for."""
    with conf({"spark.sql.session.timeZone": zone}):
        assert len(read("x TIMESTAMP", _batch(TIME))) == 1
        with pytest.raises(PythonException, match=MISMATCH):
            read("x TIMESTAMP", _batch(TIME.cast(pa.timestamp("us", "Europe/Berlin"))))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+02:00"])
def test_timestamps_reach_the_writer_with_the_session_time_zone_in_their_type(
    spark, conf, tmp_path, zone
):
    """The writer replaces the zone by UTC, nested fields too, before it keeps or compares a schema.

    Otherwise two sessions could not append to one log, nor could either read it.
    """
    with conf({"spark.sql.session.timeZone": zone}):
        df = spark.sql("SELECT timestamp '2026-01-02 03:04:05' AS t, array(now()) AS nested")
        schema = _store(df, tmp_path / "store")
    assert schema.field("t").type == pa.timestamp("us", zone)
    assert schema.field("nested").type.value_type == pa.timestamp("us", zone)


def test_pyarrow_cannot_cast_a_null_struct_with_a_not_null_field_to_its_own_type():
    """The time zone is changed by relabelling: the same buffers read with another schema.

    `RecordBatch.cast` casts every column, also those whose type is right already, and Spark
    sends such structs (a variant is one): null, with a null in the field that is never null.
    """

    def schema(zone: str, *, nullable: bool = False) -> pa.Schema:
        field = pa.field("f", pa.int64(), nullable=nullable)
        return pa.schema([("s", pa.struct([field])), ("t", pa.timestamp("us", zone))])

    fields = list(schema("UTC", nullable=True).field("s").type)
    mask = pa.array([False, True])
    structs = pa.StructArray.from_arrays([pa.array([1, None])], fields=fields, mask=mask)
    batch = pa.record_batch([structs, TIME.take([0, 0])], schema=schema("UTC", nullable=True))
    batch = pa.ipc.read_record_batch(batch.serialize(), schema("Europe/Berlin"))
    with pytest.raises(pa.ArrowInvalid, match="nulls in input cannot be viewed as non-nullable"):
        batch.cast(schema("UTC"))
    relabelled = pa.ipc.read_record_batch(batch.serialize(), schema("UTC"))
    relabelled.validate(full=True)
    assert relabelled.schema == schema("UTC")
    assert relabelled.column("s").to_pylist() == [{"f": 1}, None]


def test_large_var_types_reach_the_writer_at_every_depth(spark, conf, tmp_path):
    """The writer has to narrow `large_string` and `large_binary` to what `read()` may return."""
    with conf(LARGE):
        df = spark.sql("SELECT 'a' AS s, X'00' AS b, array('x') AS a, parse_json('1') AS v")
        schema = _store(df, tmp_path / "store")
    assert schema.field("s").type == pa.large_string()
    assert schema.field("b").type == pa.large_binary()
    assert schema.field("a").type.value_type == pa.large_string()
    assert [field.type for field in schema.field("v").type] == [pa.large_binary()] * 2


def test_read_refuses_large_var_types_even_when_they_are_switched_on(read, conf):
    """Blocks are stored with 32-bit offsets, and cut well below 2 GiB per column."""
    with conf(LARGE):
        assert read("x STRING", _batch(TEXT)) == ["a"]
        assert read("x BINARY", _batch(BYTES)) == [b"a"]
        with pytest.raises(PythonException, match=MISMATCH):
            read("x STRING", _batch(TEXT.cast(pa.large_string())))
        with pytest.raises(PythonException, match=MISMATCH):
            read("x BINARY", _batch(BYTES.cast(pa.large_binary())))


def test_batches_for_the_writer_are_cut_by_rows_and_by_bytes(spark, conf, tmp_path):
    """The writer regroups rows into blocks of its own size: Spark's batches depend on settings."""
    rows = "spark.sql.execution.arrow.maxRecordsPerBatch"
    size = "spark.sql.execution.arrow.maxBytesPerBatch"
    df = spark.range(0, 100, 1, 1).selectExpr("repeat('x', 1000) AS s")
    with conf({rows: "30"}):
        _store(df, tmp_path / "by rows")
    with conf({size: "10000"}):
        _store(df, tmp_path / "by bytes")
    assert _rows(tmp_path / "by rows") == [30, 30, 30, 10]
    by_bytes = _rows(tmp_path / "by bytes")
    assert sum(by_bytes) == 100
    assert max(by_bytes) < 20


def _rows(folder: Path) -> list[int]:
    with pa.ipc.open_file(folder / "0.arrow") as file:
        return [file.get_batch(i).num_rows for i in range(file.num_record_batches)]


def test_a_column_that_is_never_null_reaches_the_writer_as_not_null(spark, journal, tmp_path):
    """Two appends may differ in nullability only: a log's schema is compared without it."""
    df = spark.sql("SELECT id, nullif(id, 0) AS n FROM range(2)")
    df.write.format("facts_store").option("journal", journal).mode("append").save(str(tmp_path))
    (call,) = calls(journal, "writer")
    assert '"name":"id","nullable":false' in call["schema"]
    assert '"name":"n","nullable":true' in call["schema"]
    with pa.ipc.open_file(sorted(tmp_path.glob("*.arrow"))[0]) as file:
        assert [field.nullable for field in file.schema] == [False, True]
