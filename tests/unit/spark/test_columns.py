"""Names of columns in another case, and columns that only reads have."""

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from bkspark.errors import InvalidRequestError
from bkspark.spark.schema import require_same_case, without_metadata, without_metadata_columns


class Task:
    """A task of a session with this setting."""

    def __init__(self, setting: str | None) -> None:
        self.setting = setting

    def getLocalProperty(self, key: str) -> str | None:
        return self.setting if key == "spark.sql.caseSensitive" else None


POINT = pa.struct([("x", pa.int64()), ("y", pa.int64())])
TURNED = pa.struct([("Y", pa.int64()), ("x", pa.int64())])
LOG = pa.schema([("id", pa.int64()), ("p", pa.list_(POINT)), ("m", pa.map_(POINT, POINT))])
IN_ORDER = [
    LOG,
    pa.schema([LOG.field("p"), LOG.field("id")]),
    pa.schema([("p", pa.large_list(pa.struct([POINT.field("y")])))]),
]
IN_ANOTHER_CASE = [
    (pa.schema([("ID", pa.int64())]), "'ID' is 'id'"),
    (pa.schema([("p", pa.list_(TURNED))]), "'p.element.Y' is 'p.element.y'"),
    (pa.schema([("m", pa.map_(TURNED, POINT))]), "'m.key.Y' is 'm.key.y'"),
    (pa.schema([("m", pa.map_(POINT, TURNED))]), "'m.value.Y' is 'm.value.y'"),
]


@pytest.mark.parametrize("task", [None, Task(None), Task("false"), Task("False")])
def test_names_in_another_case_are_taken_unless_the_session_tells_cases_apart(
    task: Task | None,
) -> None:
    for given, _ in IN_ANOTHER_CASE:
        require_same_case(task, given, LOG)


@pytest.mark.parametrize("setting", ["true", "TRUE"])
def test_names_in_another_case_are_refused_where_the_session_tells_cases_apart(
    setting: str,
) -> None:
    for given in IN_ORDER:
        require_same_case(Task(setting), given, LOG)
    for given, words in IN_ANOTHER_CASE:
        with pytest.raises(InvalidRequestError, match=f"column {words} in the log"):
            require_same_case(Task(setting), given, LOG)


def test_columns_that_only_reads_have_are_left_out() -> None:
    names = ["_Offset", "id", "_ledger_id", "_entry_id"]
    schema = StructType([StructField(name, LongType()) for name in names])
    assert without_metadata_columns(schema).names == ["id"]
    batch = pa.record_batch([pa.array([n]) for n in range(4)], names=names)
    assert [one.to_pydict() for one in without_metadata([batch])] == [{"id": [1]}]
