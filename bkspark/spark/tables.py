"""Refuse tables of a catalog: Spark creates such tables and then cannot read them.

A query on a table does not pass the options of the table's creation to the source, so neither the
log nor the cluster is known. Spark does not tell the source that a write fills a new table either.
But the rows of a new table are written by an execution nested in another execution, that of the
statement which creates the table. A query's ``foreachBatch`` writes in nested executions too, for a
table or not, and is therefore allowed.
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


class JobContext(Protocol):
    """The part of ``TaskContext`` that describes the job."""

    def getLocalProperty(self, key: str) -> str | None: ...


def require_no_new_table(task: JobContext | None) -> None:
    """Check before the first write that the write of this ``task`` does not fill a new table.

    Raises:
        InvalidRequestError: the write fills a new table; no row is written, and Spark drops the
            table.
    """
    if task is None or task.getLocalProperty(BATCH_ID) is not None:
        return
    root = task.getLocalProperty(ROOT_EXECUTION_ID)
    if root is not None and task.getLocalProperty(EXECUTION_ID) not in (None, root):
        raise InvalidRequestError(NO_TABLES)
