"""Compares a micro-batch with its query's committed micro-batches.

Spark numbers the micro-batches of a query from 0 on and keeps the numbers in the checkpoint.

Rule 1. Spark itself runs only the last batch of a checkpoint again. A batch number below the last
committed number proves an old checkpoint: restored from a backup, or copied. The batch may have
other rows than the committed batch of its number, so the batch is refused.

Rule 2. After a crash between the commit and Spark's note of the commit, Spark runs the last
committed batch again. A batch with the same rows, in any order and partitions, is Spark's own
retry, and nothing is written. A batch with other rows is refused, because neither set of rows may
be lost silently.

Rule 3. A batch without rows can lose none, and is not compared.
"""

from bkspark.errors import InvalidRequestError

ON_REPEATED_BATCH = "onRepeatedBatch"
COMPARE, SKIP = "compare", "skip"
"""Values of the option for a repeated last batch."""

_NEW_CHECKPOINT = (
    "start the query with a new checkpoint, which makes it a new query, and with the "
    "startingOffsets of the first rows that the log does not have"
)


def is_repeated(query_id: str, batch_id: int, last_batch_id: int, log_name: str) -> bool:
    """Whether the batch is the last committed batch again; False for a new batch.

    Raises:
        InvalidRequestError: the batch comes before the last committed batch (rule 1).
    """
    if batch_id < last_batch_id:
        raise InvalidRequestError(
            f"micro-batch {batch_id} of query {query_id} is not written to log {log_name!r}: the "
            f"log has its micro-batch {last_batch_id} already, so the query's checkpoint was "
            "restored from a backup or copied",
            hint=_NEW_CHECKPOINT,
        )
    return batch_id == last_batch_id


def other_rows(query_id: str, batch_id: int, log_name: str, what: str) -> InvalidRequestError:
    """Return the error for the last committed batch repeated with other rows (rule 2).

    Args:
        what: the difference.
    """
    return InvalidRequestError(
        f"micro-batch {batch_id} of query {query_id} is in log {log_name!r} already, with other "
        f"rows ({what}): the query's checkpoint was restored from a backup or copied, or the "
        "query gives other rows each time it runs",
        hint=f"in the first case {_NEW_CHECKPOINT}; in the second case set "
        f"{ON_REPEATED_BATCH}={SKIP}, which keeps the committed rows of a repeated batch",
    )
