"""Refuse early what a session of Spark Connect cannot do."""

from bkspark.errors import InvalidRequestError

_CONNECT = "pyspark.sql.connect."
"""Prefix of the modules of Connect sessions; pyspark need not be importable here."""


_RECOVERY_HINT = (
    "use `bkspark ledger recover ID` or BookKeeper(URI).recover_ledger(ID) where the bookies are "
    "mounted, or spark-submit jobs/recover.py"
)


def require_own_driver(spark: object, what: str = "a recovery", hint: str = _RECOVERY_HINT) -> None:
    """Check that ``spark`` runs its driver in this process; the steps of ``what`` need its context.

    Args:
        hint: the alternative to suggest.

    Raises:
        InvalidRequestError: ``spark`` is a session of Spark Connect.
    """
    if any(kind.__module__.startswith(_CONNECT) for kind in type(spark).__mro__):
        raise InvalidRequestError(
            f"a Spark Connect session cannot run {what}: it has no SparkContext", hint=hint
        )
