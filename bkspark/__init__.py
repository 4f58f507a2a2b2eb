"""Replicated log storage for Spark: Apache BookKeeper's guarantees with no servers to run."""

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
    from pyspark.sql import SparkSession


def register(spark: "SparkSession", **defaults: object) -> None:
    """Register ``format("bookkeeper")`` for one session; see ``bkspark.spark.registration``."""
    from bkspark.spark.registration import register as register_source

    register_source(spark, **defaults)


__all__ = [
    "BookKeeperError",
    "BookieUnavailableError",
    "CorruptDataError",
    "InvalidRequestError",
    "LedgerClosedError",
    "LedgerExistsError",
    "LedgerFencedError",
    "MetadataVersionError",
    "NoSuchEntryError",
    "NoSuchLedgerError",
    "NotEnoughBookiesError",
    "OutcomeUnknownError",
    "UnauthorizedError",
    "__version__",
    "register",
]
