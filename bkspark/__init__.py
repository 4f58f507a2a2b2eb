"""Replicated log storage for Spark: Apache BookKeeper's guarantees with no servers to run."""

from importlib import import_module
from typing import TYPE_CHECKING

from bkspark import admin
from bkspark._version import VERSION as __version__
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    CorruptDataError,
    InvalidRequestError,
    InvalidTermError,
    LedgerClosedError,
    LedgerExistsError,
    LedgerFencedError,
    MetadataVersionError,
    NoSuchEntryError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    NothingSentError,
    OutcomeUnknownError,
    UnauthorizedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry
    from pyspark.sql import SparkSession

    from bkspark.bookkeeper import BookKeeper
    from bkspark.ledger.handles.adv_handle import AdvWriteHandle
    from bkspark.ledger.handles.read_handle import Entry, ReadHandle
    from bkspark.ledger.handles.settings import ReaderSettings, WriterSettings
    from bkspark.ledger.handles.write_handle import WriteHandle
    from bkspark.ledger.recovery.recover import RecoveryReport
    from bkspark.log.log_handle import LogEntry, LogHandle
    from bkspark.log.log_writer import LogWriter

_LOADED_WHEN_ASKED_FOR = {
    "AdvWriteHandle": "bkspark.ledger.handles.adv_handle",
    "BookKeeper": "bkspark.bookkeeper",
    "Entry": "bkspark.ledger.handles.read_handle",
    "LogEntry": "bkspark.log.log_handle",
    "LogHandle": "bkspark.log.log_handle",
    "LogWriter": "bkspark.log.log_writer",
    "ReadHandle": "bkspark.ledger.handles.read_handle",
    "ReaderSettings": "bkspark.ledger.handles.settings",
    "RecoveryReport": "bkspark.ledger.recovery.recover",
    "WriteHandle": "bkspark.ledger.handles.write_handle",
    "WriterSettings": "bkspark.ledger.handles.settings",
}
"""They need pyarrow, which takes longer to import than all the rest."""


def __getattr__(name: str) -> object:
    if name not in _LOADED_WHEN_ASKED_FOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(_LOADED_WHEN_ASKED_FOR[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _verb(name: str) -> object:
    from bkspark import verbs

    return getattr(verbs, name)


admin.find_verbs_by(_verb)


def register(spark: "SparkSession", **defaults: object) -> None:
    """Register ``format("bookkeeper")`` for one session; see ``bkspark.spark.registration``."""
    from bkspark.spark.registration import register as register_source

    register_source(spark, **defaults)


def register_metrics(registry: "CollectorRegistry | None" = None) -> None:
    """Show what the handles of this process do to Prometheus, in its default registry or another.

    Not needed where ``prometheus_client`` was imported before the first ``BookKeeper``.
    """
    from bkspark.cluster import client_metrics

    client_metrics.register(registry)


def recover_ledger(
    spark: "SparkSession",
    metadata_uri: str,
    ledger_id: int,
    *,
    password: str = "",
    password_file: str = "",
    password_env: str = "",
    tell: "Callable[[str], None] | None" = None,
    accepts_loss: bool = False,
    seal: bool = False,
) -> "RecoveryReport":
    """Fence a ledger's writer and close it, as Spark tasks; see ``bkspark.spark.actions``.

    Args:
        seal: whether the ledger that an unbounded log goes on in is closed too; else it is OPEN
            again (``report.is_open``).

    Raises:
        InvalidRequestError: ``spark`` is a session of Spark Connect.
    """
    from bkspark.cluster import arguments
    from bkspark.cluster.password import Password
    from bkspark.spark.connect import require_own_driver

    require_own_driver(spark)
    from bkspark.spark.actions import recover_ledger as recover_with_spark

    uri = arguments.metadata_uri(metadata_uri)
    number = arguments.whole_number("a ledger id", ledger_id)
    secret = Password(file=password_file, env=password_env, literal=password)
    seals = arguments.yes_or_no("seal", given=seal)
    return recover_with_spark(
        spark, uri, number, secret, seals=seals, tell=tell, accepts_loss=accepts_loss
    )


__all__ = [
    "AdvWriteHandle",
    "BookKeeper",
    "BookKeeperError",
    "BookieUnavailableError",
    "CorruptDataError",
    "Entry",
    "InvalidRequestError",
    "InvalidTermError",
    "LedgerClosedError",
    "LedgerExistsError",
    "LedgerFencedError",
    "LogEntry",
    "LogHandle",
    "LogWriter",
    "MetadataVersionError",
    "NoSuchEntryError",
    "NoSuchLedgerError",
    "NotEnoughBookiesError",
    "NothingSentError",
    "OutcomeUnknownError",
    "ReadHandle",
    "ReaderSettings",
    "RecoveryReport",
    "UnauthorizedError",
    "WriteHandle",
    "WriterSettings",
    "__version__",
    "admin",
    "recover_ledger",
    "register",
    "register_metrics",
]
