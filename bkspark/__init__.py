"""Replicated log storage for Spark: Apache BookKeeper's guarantees with no servers to run."""

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
]
