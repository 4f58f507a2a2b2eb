"""Replicated log storage for Spark: Apache BookKeeper's guarantees with no servers to run."""

from importlib import import_module
from typing import TYPE_CHECKING

from bkspark._version import VERSION as __version__
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    CorruptDataError,
    InvalidRequestError,
    LedgerClosedError,
    LedgerExistsError,
    LedgerFencedError,
    MetadataVersionError,
    NoSuchEntryError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
    UnauthorizedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from bkspark.client.bookkeeper import BookKeeper
    from bkspark.client.handles.adv_handle import AdvWriteHandle
    from bkspark.client.handles.read_handle import Entry, ReadHandle
    from bkspark.client.handles.settings import ReaderSettings, WriterSettings
    from bkspark.client.handles.write_handle import WriteHandle
    from bkspark.client.logs.log_handle import LogEntry, LogHandle
    from bkspark.client.logs.log_writer import LogWriter
    from bkspark.client.recovery.recover import RecoveryReport

_LOADED_WHEN_ASKED_FOR = {
    "AdvWriteHandle": "bkspark.client.handles.adv_handle",
    "BookKeeper": "bkspark.client.bookkeeper",
    "Entry": "bkspark.client.handles.read_handle",
    "LogEntry": "bkspark.client.logs.log_handle",
    "LogHandle": "bkspark.client.logs.log_handle",
    "LogWriter": "bkspark.client.logs.log_writer",
    "ReadHandle": "bkspark.client.handles.read_handle",
    "ReaderSettings": "bkspark.client.handles.settings",
    "RecoveryReport": "bkspark.client.recovery.recover",
    "WriteHandle": "bkspark.client.handles.write_handle",
    "WriterSettings": "bkspark.client.handles.settings",
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


def register(spark: "SparkSession", **defaults: object) -> None:
    """Register ``format("bookkeeper")`` for one session; see ``bkspark.spark.registration``."""
    from bkspark.spark.registration import register as register_source

    register_source(spark, **defaults)


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
) -> "RecoveryReport":
    """Fence a ledger's writer and close it, as Spark tasks; see ``bkspark.spark.actions``.

    Raises:
        InvalidRequestError: ``spark`` is a session of Spark Connect.
    """
    from bkspark.client import arguments
    from bkspark.client.password import Password
    from bkspark.spark.connect import require_own_driver

    require_own_driver(spark)
    from bkspark.spark.actions import recover_ledger as recover_with_spark

    uri = arguments.metadata_uri(metadata_uri)
    number = arguments.whole_number("a ledger id", ledger_id)
    secret = Password(file=password_file, env=password_env, literal=password)
    return recover_with_spark(spark, uri, number, secret, tell=tell, accepts_loss=accepts_loss)


__all__ = [
    "AdvWriteHandle",
    "BookKeeper",
    "BookKeeperError",
    "BookieUnavailableError",
    "CorruptDataError",
    "Entry",
    "InvalidRequestError",
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
    "OutcomeUnknownError",
    "ReadHandle",
    "ReaderSettings",
    "RecoveryReport",
    "UnauthorizedError",
    "WriteHandle",
    "WriterSettings",
    "__version__",
    "recover_ledger",
    "register",
]
