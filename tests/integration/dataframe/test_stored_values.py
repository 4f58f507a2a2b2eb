"""What a task may not write: rows that a reader would take for damage, or for other values."""

import json
from collections.abc import Callable

import pyarrow as pa
import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema
from bkspark.format.spark_types import SPARK_TYPE_KEY
from bkspark.log.batch import preparing as write_target
from tests.integration.rig import Rig
from tests.integration.stream_driver import Driver, settled_rows, the_log

TEXT = pa.schema([("s", pa.string())])
NOT_UTF_8 = pa.RecordBatch.from_arrays(
    [pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xc9"]).buffers())],
    schema=TEXT,
)


def column(kind: pa.DataType, said: str, lengths: str | None = None) -> pa.Schema:
    metadata = {} if lengths is None else {"__CHAR_VARCHAR_TYPE_STRING": lengths}
    value = {"name": "s", "type": said, "nullable": True, "metadata": metadata}
    return pa.schema([pa.field("s", kind, metadata={SPARK_TYPE_KEY: json.dumps(value)})])


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_string_that_is_not_utf_8_fails_its_task(
    make_rig: Callable[..., Rig], compression: str
) -> None:
    rig = make_rig(bookie_count=3)
    good = pa.record_batch([["a", "b", "c"]], schema=TEXT)
    with pytest.raises(InvalidRequestError, match=r"'s' has .* in row 4 of partition 1; "):
        rig.write([[good], [good, NOT_UTF_8]], schema=TEXT)
    assert rig.log() is None


def test_rows_are_held_to_what_the_log_says_of_its_columns(make_rig: Callable[..., Rig]) -> None:
    """A DataFrame mostly has plain strings for a log of VARCHAR."""
    rig = make_rig(bookie_count=3)
    log = column(pa.string(), "string", "varchar(3)")
    rows = [pa.record_batch([[text]], schema=TEXT) for text in ("abc", "abcd")]
    rig.write([[rows[0]]], schema=log)
    rig.write([[rows[0]]], schema=TEXT)
    with pytest.raises(InvalidRequestError, match="row 0 of partition 0 has 4 characters"):
        rig.write([[rows[1]]], schema=TEXT)
    assert rig.log().end_offset == 2  # type: ignore[union-attr]


def test_a_column_of_another_spark_type_is_refused_before_a_task_runs(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(bookie_count=3)
    days, seconds = (
        column(pa.duration("us"), said) for said in ("interval day", "interval day to second")
    )
    rig.write([[pa.record_batch([pa.array([0], pa.duration("us"))], schema=days)]], schema=days)
    with pytest.raises(InvalidRequestError, match="column s is interval day to second in place of"):
        write_target.prepare(rig.request(schema=seconds))


VOID = pa.schema([("s", pa.null())])
NOTHING = pa.record_batch([pa.nulls(2)], schema=VOID)
WORDS = pa.record_batch([["a", "b"]], schema=TEXT)


@pytest.mark.parametrize("is_displaced", [False, True])
def test_a_stream_of_voids_goes_into_a_log_of_texts(
    make_rig: Callable[..., Rig], is_displaced: bool
) -> None:
    """Its rows are stored as the log's are, also where they are written anew into another tail."""
    rig = make_rig(bookie_count=3)
    rig.write([[WORDS]], schema=TEXT)
    driver = Driver(rig, options={"schema": VOID})
    driver.commit(driver.planned(0, [[NOTHING]]))
    batch = driver.planned(1, [[NOTHING]])  # into the tail
    if is_displaced:
        rig.write([[WORDS]], schema=TEXT)  # which is closed now
    driver.commit(batch)
    rows = [value for (value,) in settled_rows(rig)]
    assert rows.count(None) == 4
    assert sorted(filter(None, rows)) == sorted(["a", "b"] * (1 + is_displaced))
    with Cluster(rig.uri) as cluster:
        kinds = {
            arrow_schema.decode(cluster.ledger(place.ledger_id).value.settings.schema).types[0]
            for place in the_log(rig).ledgers
        }
    assert kinds == {pa.string()}
