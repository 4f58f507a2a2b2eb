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
    NoSuchTableError,
    NotEnoughBookiesError,
    NothingSentError,
    NotLeaderError,
    OutcomeUnknownError,
    TableChangedError,
    TableUnavailableError,
    UnauthorizedError,
    UnsupportedTableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from prometheus_client import CollectorRegistry
    from pyspark.sql import DataFrame, SparkSession

    from bkspark.bookkeeper import BookKeeper
    from bkspark.cluster.election import Election
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
    "Election": "bkspark.cluster.election",
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
"""These need pyarrow, which takes longer to import than all the rest."""


def __getattr__(name: str) -> object:
    if name not in _LOADED_WHEN_ASKED_FOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(_LOADED_WHEN_ASKED_FOR[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _calls() -> "Mapping[str, Callable[..., object]]":
    from bkspark import verbs

    return {name: getattr(verbs, name) for name in verbs.__all__}


admin.show_calls_of(_calls)


def register(spark: "SparkSession", **defaults: object) -> None:
    """Register ``format("bookkeeper")`` for one session, with defaults for its options.

    A session needs this call only if the package came by ``--py-files``, or to set defaults. Spark
    finds an installed package by itself. An option of a read or write comes before ``defaults``,
    then come the session's settings ``spark.bookkeeper.*``, then the environment.

    Args:
        spark: the session.
        defaults: options by name, for example ``metadataServiceUri="file:///data/meta"``.

    Raises:
        InvalidRequestError: a default is the password itself.
    """
    from bkspark.spark.source import register as register_source

    register_source(spark, **defaults)


def read(
    spark: "SparkSession",
    log: str,
    *,
    columns: "Sequence[str] | None" = None,
    starting_offsets: "int | str | Mapping[str, Mapping[str, int]] | None" = None,
    ending_offsets: "int | str | Mapping[str, Mapping[str, int]] | None" = None,
    starting_timestamp: "datetime | int | None" = None,
    ending_timestamp: "datetime | int | None" = None,
    version_as_of: int | None = None,
    timestamp_as_of: "datetime | int | None" = None,
    **options: object,
) -> "DataFrame":
    """Read a log as a DataFrame.

    The tasks read and check the bytes of ``columns`` only, which Spark cannot tell a data source by
    itself. So this is the quick way to query some of many columns.

    Args:
        spark: a session. The cluster is that of ``register``, of the session's settings, of the
            environment, or of ``options``.
        log: the log's name.
        columns: the columns to read, in this order; None for all.
        starting_offsets: ``"earliest"``, ``"latest"`` or the first offset to read; None for the
            earliest. Kafka's form works too: ``{"events": {"0": 42}}``, or its JSON.
        ending_offsets: ``"latest"`` or the offset at which to stop; None for the latest.
        starting_timestamp, ending_timestamp: instead of offsets, read what was committed at the
            first of these times or later, and before the second; each a ``datetime`` with a time
            zone, or milliseconds since 1970.
        version_as_of, timestamp_as_of: instead of an end, read the log as it was once it had this
            version of ``view=history``, or as it was at this time.
        options: further options of ``format("bookkeeper")``, by name.

    Raises:
        InvalidRequestError: a column does not exist or is named twice, or an option is wrong.
        NoSuchLedgerError: there is no such log.
    """
    from bkspark.spark.source import read_log

    given = {
        "startingOffsets": starting_offsets,
        "endingOffsets": ending_offsets,
        "startingTimestamp": starting_timestamp,
        "endingTimestamp": ending_timestamp,
        "versionAsOf": version_as_of,
        "timestampAsOf": timestamp_as_of,
        **options,
    }
    return read_log(spark, log, columns, given)


def configure_delta(builder: "SparkSession.Builder", table: str = "") -> "SparkSession.Builder":
    """Add to the builder of a session what it needs to write and read Delta tables.

    The session gets the jars of Delta from Maven Central when it starts, its SQL extension and its
    catalog. Packages, excludes and extensions that the builder has stay. Settings of a properties
    file for these are replaced.

        spark = bkspark.configure_delta(SparkSession.builder).getOrCreate()

    Args:
        builder: of a session with its own driver, not one of Spark Connect.
        table: URL of a table in a bucket, which may name a store. The session also gets Hadoop's
            client of S3 (some 690 MB), unless Spark has it, and settings for this bucket: the
            endpoint and the region of the store, or of the AWS environment.

    Returns:
        The builder.

    Raises:
        InvalidRequestError: there are no jars for the installed Spark, a session without Delta
            is running in this process, or the store of the table is not known here.
    """
    from bkspark.spark.delta import configure_delta as configure

    return configure(builder, table)


def register_metrics(registry: "CollectorRegistry | None" = None) -> None:
    """Add the metrics of this process's handles to a Prometheus registry.

    You need this call only if ``prometheus_client`` is imported after the first ``BookKeeper``.

    Args:
        registry: None for the default registry of ``prometheus_client``.
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
    """Fence a ledger's writer, recover the ledger and close it, by tasks of a Spark session.

    Args:
        spark: a session with its own driver, not one of Spark Connect.
        metadata_uri: the cluster's metadata store.
        ledger_id: the ledger.
        password, password_file, password_env: the ledger password, or what holds it.
        tell: called with one line for each step.
        accepts_loss: accept that entries are lost if only lost or damaged bookies could tell
            whether they were acknowledged. The report names them.
        seal: also close the open ledger of an unbounded log. Otherwise it is OPEN again
            (``report.is_open``).

    Returns:
        What the recovery did.

    Raises:
        InvalidRequestError: ``spark`` is a session of Spark Connect.
        NoSuchLedgerError: there is no such ledger.
        NotEnoughBookiesError: the end cannot be decided yet. The message names the bookies that
            could tell, and what helps.
        UnauthorizedError: the password is missing or wrong. No writer was fenced.
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
    may_lose = arguments.yes_or_no("accepts_loss", given=accepts_loss)
    return recover_with_spark(
        spark, uri, number, secret, seals=seals, tell=tell, accepts_loss=may_lose
    )


__all__ = [
    "AdvWriteHandle",
    "BookKeeper",
    "BookKeeperError",
    "BookieUnavailableError",
    "CorruptDataError",
    "Election",
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
    "NoSuchTableError",
    "NotEnoughBookiesError",
    "NotLeaderError",
    "NothingSentError",
    "OutcomeUnknownError",
    "ReadHandle",
    "ReaderSettings",
    "RecoveryReport",
    "TableChangedError",
    "TableUnavailableError",
    "UnauthorizedError",
    "UnsupportedTableError",
    "WriteHandle",
    "WriterSettings",
    "__version__",
    "admin",
    "configure_delta",
    "read",
    "recover_ledger",
    "register",
    "register_metrics",
]
