"""What a session of Spark Connect cannot do, told before anything is tried."""

from bkspark.errors import InvalidRequestError

_CONNECT = "pyspark.sql.connect."
"""Where its sessions come from; pyspark need not be able to import it."""


_RECOVERY_HINT = (
    "use `bkspark ledger recover ID` or BookKeeper(URI).recover_ledger(ID) where the bookies are "
    "mounted, or spark-submit jobs/recover.py"
)


def require_own_driver(spark: object, what: str = "a recovery", hint: str = _RECOVERY_HINT) -> None:
    """Check that ``spark`` runs its driver here: the steps of ``what`` are tasks of its context.

    Args:
        hint: what to do instead.

    Raises:
        InvalidRequestError: it is a session of Spark Connect.
    """
    if any(kind.__module__.startswith(_CONNECT) for kind in type(spark).__mro__):
        raise InvalidRequestError(
            f"a Spark Connect session cannot run {what}: it has no SparkContext", hint=hint
        )
