"""Where a micro-batch stands among those of its query that are in a log.

Spark numbers the micro-batches of a query from 0 on and keeps the numbers in the checkpoint.

Rule 1. Spark itself runs only the last batch of a checkpoint again. The number of a batch below the
last committed one says that the checkpoint went back: it was restored from a backup, or copied. The
batch may have other rows than the one that was committed under its number, so it is refused.

Rule 2. The last committed batch may come again, after a crash between the commit and Spark's note
of it. It is Spark's own retry if it has the same rows, in whatever order and partitions. Then
nothing is written. With other rows it is refused: neither rows may be lost in silence.

Rule 3. A batch without rows can lose none, and is not compared.
"""

from bkspark.errors import InvalidRequestError

ON_REPEATED_BATCH = "onRepeatedBatch"
COMPARE, SKIP = "compare", "skip"
"""The option that says what to do with the last committed batch when it comes again."""

_NEW_CHECKPOINT = (
    "start the query with a new checkpoint, which makes it a new query, and with the "
    "startingOffsets of the first rows that the log does not have"
)


def is_repeated(query_id: str, batch_id: int, last_batch_id: int, log_name: str) -> bool:
    """Whether the batch is the last committed one again; False if it is a new one.

    Raises:
        InvalidRequestError: it comes before the last committed one (rule 1).
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
    """The refusal of the last committed batch that has come again with other rows (rule 2).

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
