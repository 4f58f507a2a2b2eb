"""A cluster as shown to people: an unreadable record hides no other record.

The rule: **no decision uses a survey.** Writers, recoveries and deletions must fail if a record
gives no answer, because unknown is never absent. Only views continue, and name the record.
"""

import logging
from contextlib import suppress
from typing import Any

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import WHAT_TO_DO, Records, Versioned
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    InvalidRequestError,
    NoSuchLedgerError,
)
from bkspark.format import layout
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.log.record import LogRecord

logger = logging.getLogger(__name__)


class Survey(Cluster):
    """A ``Cluster`` treating unreadable records as absent, and listing them in ``unreadable``."""

    def __init__(self, metadata_uri: str) -> None:
        super().__init__(metadata_uri)
        people = (self.upkeep.recoveries, self.upkeep.reports)
        shown = (self.ledgers, self.logs, *people, self.upkeep.lost, self.registrations)
        for records in (*shown, self._counters):
            records.step_over = self._note

    def ledger(self, ledger_id: int) -> Versioned[LedgerMetadata]:
        """As of ``Cluster``; a named ledger with an unreadable record is not said to be missing.

        Raises:
            NoSuchLedgerError: there is no such ledger.
            CorruptDataError: the ledger's record cannot be read.
        """
        try:
            return super().ledger(ledger_id)
        except NoSuchLedgerError as error:
            raise self._unknown_or(error, self.ledgers, str(ledger_id)) from None

    def log(self, name: str) -> Versioned[LogRecord]:
        """As of ``Cluster``; raises like ``ledger``."""
        try:
            return super().log(name)
        except NoSuchLedgerError as error:
            raise self._unknown_or(error, self.logs, name) from None

    def _unknown_or(
        self, error: BookKeeperError, records: Records[Any], name: str
    ) -> BookKeeperError:
        """Return ``error``, or one that says why the record of ``name`` is unknown, not absent."""
        with suppress(InvalidRequestError):  # no name of a record
            reason = self.unreadable.get(records.key(name))
            if reason is not None:
                return CorruptDataError(reason, hint=WHAT_TO_DO)
        return error

    def ledger_ids(self) -> list[int]:
        """Ids of all ledgers, including ledgers with unreadable records."""
        return self._ids(layout.LEDGERS_PREFIX)

    def read_all(self) -> list[LedgerMetadata]:
        """Read each record once to fill ``unreadable``; return the ledgers."""
        found = [self.ledgers.get(str(ledger_id)) for ledger_id in self.ledger_ids()]
        for ledger_id in self._ids(layout.RECOVERIES_PREFIX):
            self.upkeep.recoveries.get(str(ledger_id))
        for name in self.log_names():
            self.logs.get(name)
        self.bookies()
        self.lost_members()
        self._counters.get(layout.LEDGER_COUNTER_KEY)
        return [seen.value for seen in found if seen is not None]

    def _ids(self, prefix: str) -> list[int]:
        ids = []
        for name in self.store.list(prefix):
            try:
                ids.append(layout.parse_ledger_key(name))
            except InvalidRequestError as error:
                self._note(f"{prefix}/{name}", error)
        return ids

    def _note(self, key: str, error: BookKeeperError) -> None:
        if key not in self.unreadable:
            logger.warning("left out: metadata record %s: %s", key, error.args[0])
        self.unreadable[key] = str(error.args[0])
