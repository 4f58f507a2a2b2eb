"""What a session of Spark Connect cannot do, told before anything is tried."""

from bkspark.errors import InvalidRequestError

_CONNECT = "pyspark.sql.connect."
"""Where its sessions come from; pyspark need not be able to import it."""


def require_own_driver(spark: object) -> None:
    """Check that ``spark`` runs its driver here: a recovery's steps are tasks of its context.

    Raises:
        InvalidRequestError: it is a session of Spark Connect.
    """
    if any(kind.__module__.startswith(_CONNECT) for kind in type(spark).__mro__):
        raise InvalidRequestError(
            "a Spark Connect session cannot run a recovery: it has no SparkContext",
            hint="use `bkspark ledger recover ID` or BookKeeper(URI).recover_ledger(ID) where the "
            "bookies are mounted, or spark-submit jobs/recover.py",
        )
