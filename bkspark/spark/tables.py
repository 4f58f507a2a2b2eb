"""Tables of a catalog: Spark makes them, and then cannot read them.

A query on a table hands none of the options on with which it was made, so it says neither which log
is meant nor in which cluster. And Spark does not tell the source that the rows which it is to write
are those of a new table. What can be seen is that they are written by an execution within another
one, that of the statement which makes the table. So is what a query's ``foreachBatch`` writes,
table or not, which is therefore let through.
"""

from typing import Protocol

from bkspark.errors import InvalidRequestError

NO_TABLES = (
    "tables are not supported: use save(NAME) in place of saveAsTable, and CREATE TEMPORARY VIEW v "
    "USING bookkeeper OPTIONS (path 'NAME') in place of CREATE TABLE"
)

EXECUTION_ID = "spark.sql.execution.id"
ROOT_EXECUTION_ID = "spark.sql.execution.root.id"
BATCH_ID = "streaming.sql.batchId"
"""Local properties of tasks."""


class Task(Protocol):
    """What a ``TaskContext`` tells about its job."""

    def getLocalProperty(self, key: str) -> str | None: ...


def require_no_new_table(task: Task | None) -> None:
    """Check, before a row is written, that the write of this ``task`` is not to fill a new table.

    Raises:
        InvalidRequestError: it is; nothing is written, and Spark drops the table again.
    """
    if task is None or task.getLocalProperty(BATCH_ID) is not None:
        return
    root = task.getLocalProperty(ROOT_EXECUTION_ID)
    if root is not None and task.getLocalProperty(EXECUTION_ID) not in (None, root):
        raise InvalidRequestError(NO_TABLES)
