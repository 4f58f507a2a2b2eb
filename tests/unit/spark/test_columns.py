"""Names of columns in another case, and columns that only reads have."""

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from bkspark.errors import InvalidRequestError
from bkspark.spark.columns import require_same_case, without_metadata, without_metadata_columns


class Task:
    """A task of a session with this setting."""

    def __init__(self, setting: str | None) -> None:
        self.setting = setting

    def getLocalProperty(self, key: str) -> str | None:
        return self.setting if key == "spark.sql.caseSensitive" else None


@pytest.mark.parametrize("task", [None, Task(None), Task("false"), Task("False")])
def test_names_in_another_case_are_taken_unless_the_session_tells_cases_apart(
    task: Task | None,
) -> None:
    require_same_case(task, ["ID", "text"], ["id", "text", "more"])


@pytest.mark.parametrize("setting", ["true", "TRUE"])
def test_names_in_another_case_are_refused_where_the_session_tells_cases_apart(
    setting: str,
) -> None:
    require_same_case(Task(setting), ["text", "id"], ["id", "text", "more"])
    with pytest.raises(InvalidRequestError, match="column 'ID' is 'id' in the log"):
        require_same_case(Task(setting), ["text", "ID"], ["id", "text", "more"])


def test_columns_that_only_reads_have_are_left_out() -> None:
    names = ["_Offset", "id", "_ledger_id", "_entry_id"]
    schema = StructType([StructField(name, LongType()) for name in names])
    assert without_metadata_columns(schema).names == ["id"]
    batch = pa.record_batch([pa.array([n]) for n in range(4)], names=names)
    assert [one.to_pydict() for one in without_metadata([batch])] == [{"id": [1]}]
