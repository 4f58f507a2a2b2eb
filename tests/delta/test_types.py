"""Each type of Spark is read from a table as Spark wrote it, whatever the zone of the session."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bkspark.table.reading import read_range
from bkspark.table.table import open_table

from .test_layouts import assert_equal

TIMES = (
    "timestamp'0001-01-01 00:00:00Z', timestamp'1582-10-10 01:02:03Z', "
    "timestamp'1883-11-18 17:00:00Z', timestamp'2024-03-31 01:30:00Z', "
    "timestamp'2024-11-03 06:30:00.000001Z', timestamp'9999-12-31 23:59:59.999999Z', null"
)
ZONELESS = (
    "timestamp_ntz'0001-01-01 00:00:00', timestamp_ntz'2024-03-31 02:30:00', "
    "timestamp_ntz'9999-12-31 23:59:59.999999', null"
)
DATES = "date'0001-01-01', date'1582-10-10', date'1970-01-01', date'9999-12-31', null"
COLUMNS = {
    "a_boolean": "array(true, false, null)",
    "a_byte": "array(cast(-128 AS byte), cast(127 AS byte), null)",
    "a_short": "array(cast(-32768 AS short), cast(32767 AS short), null)",
    "an_integer": "array(-2147483648, 2147483647, null)",
    "a_long": "array(-9223372036854775808L, 9223372036854775807L, null)",
    "a_float": "array(float('NaN'), float(-0.0f), 0.0f, float('-Infinity'), 1.4e-45f, null)",
    "a_double": "array(double('NaN'), -0.0d, 0.0d, double('Infinity'), 4.9e-324d, null)",
    "a_small_decimal": "array(cast(-9.99 AS decimal(3,2)), cast(0 AS decimal(3,2)), null)",
    "a_large_decimal": "array(cast('-12345678901234567890.123456789012345678' AS decimal(38,18)), "
    "cast(0 AS decimal(38,18)), null)",
    "a_string": "array('', 'a', 'ü€😀', '\\u0000', null)",
    "a_binary": "array(x'', x'00ff', null)",
    "a_date": f"array({DATES})",
    "a_timestamp": f"array({TIMES})",
    "a_timestamp_ntz": f"array({ZONELESS})",
    "a_list": f"array(array({TIMES}), array(), null)",
    "a_list_of_lists": "array(array(array(1, null), array(), null), null)",
    "a_struct": "array(named_struct('x', null, 'y', named_struct('z', -0.0d, 't', "
    f"array({TIMES})[0])), named_struct('x', 1, 'y', null), null)",
    "a_map": f"array(map('a', array({DATES})), map(), map('b', null), null)",
    "a_map_of_structs": "array(map(1, named_struct('x', '')), null)",
}


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_each_type_is_read_as_it_was_written(
    delta_spark: SparkSession,
    conf: Callable[[dict[str, str]], AbstractContextManager[None]],
    place: str,
    zone: str,
    kind: str,
) -> None:
    picked = [f"get({values}, int(id % size({values}))) AS {n}" for n, values in COLUMNS.items()]
    settings = {"spark.sql.session.timeZone": zone, "spark.sql.parquet.outputTimestampType": kind}
    with conf(settings):
        rows = delta_spark.range(0, 60, 1, 2).selectExpr("id AS _offset", *picked)
        rows.write.format("delta").save(place)
    wanted = delta_spark.read.format("delta").load(place).orderBy("_offset").toArrow()
    table = open_table(place)
    snapshot = table.snapshot()
    batches = list(read_range(table, snapshot, 0, 60, wanted.schema, snapshot.columns))
    assert_equal(pa.Table.from_batches(batches).sort_by("_offset"), wanted)
