"""A cluster as shown to people: its readable records, and the ledgers that need help."""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
from bkspark.format.recovery import StuckRecovery
from bkspark.log.reading.log_view import was_set_aside
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.recovery import messages
from bkspark.quantities import plural

# --- survey --------------------------------------------------------------------------------------
# A cluster as shown to people: an unreadable record hides no other record.
#
# The rule: **no decision uses a survey.** Writers, recoveries and deletions must fail if a record
# gives no answer, because unknown is never absent. Only views continue, and name the record.


logger = logging.getLogger(__name__)


class Survey(Cluster):
    """A ``Cluster`` treating unreadable records as absent, and listing them in ``unreadable``."""

    def __init__(self, metadata_uri: str) -> None:
        super().__init__(metadata_uri)
        people = (self.upkeep.recoveries, self.upkeep.reports)
        shown = (self.ledgers, self.logs, *people, self.upkeep.lost, self.registrations)
        for records in (*shown, self._ledger_ids.counters):
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

    def read_all(self) -> "AllRecords":
        """Read each record once, to fill ``unreadable``."""
        ledgers = [*self.ledgers.present(map(str, self.ledger_ids()))]
        for ledger_id in self._ids(layout.RECOVERIES_PREFIX):
            self.upkeep.recoveries.get(str(ledger_id))
        logs = every_log(self, self.log_names())
        self.bookies()
        self.lost_members()
        self._ledger_ids.counters.get(layout.LEDGER_COUNTER_KEY)
        return AllRecords([seen.value for seen in ledgers], logs)

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


@dataclass(frozen=True, slots=True)
class AllRecords:
    """The readable records of ledgers and of logs, tombstones included."""

    ledgers: list[LedgerMetadata]
    logs: list[LogRecord]


def every_log(cluster: Cluster, names: Iterable[str]) -> list[LogRecord]:
    """Return the records of the logs ``names``, tombstones included."""
    return [seen.value for seen in cluster.logs.present(names)]


# --- listed ledgers ------------------------------------------------------------------------------
# Find ledgers listed by logs but without a metadata record.


_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Gone:
    """Ledgers that a log lists, and that have no metadata record.

    Attributes:
        reasons: reasons and next steps: of ledgers set aside by an operator, and of others.
    """

    log: str
    ledger_ids: list[int]
    reasons: list[tuple[str, str]]


def gone_from_lists(
    cluster: Cluster, logs: Iterable[LogRecord], known: Collection[int]
) -> Iterator[Gone]:
    """Yield the logs listing ledgers without a record, or with a tombstone only.

    Args:
        logs: read before.
        known: ids of ledgers seen before. Records of other ledgers, and the lists naming them, are
            read once more, since a log may have dropped them meanwhile.
    """
    for log in logs:
        name = log.name
        unknown = [ledger_id for ledger_id in log.listed_ids if ledger_id not in known]
        gone = [ledger_id for ledger_id in unknown if _is_gone(cluster, ledger_id)]
        if gone:  # unless the log has dropped them meanwhile
            gone = [ledger_id for ledger_id in _listed(cluster, name) if ledger_id in gone]
        if gone:
            yield Gone(name, gone, list(_reasons(cluster, name, gone)))


def _reasons(cluster: Cluster, name: str, gone: Collection[int]) -> Iterator[tuple[str, str]]:
    aside = [ledger_id for ledger_id in gone if was_set_aside(cluster, ledger_id)]
    missing = [ledger_id for ledger_id in gone if ledger_id not in aside]
    if aside:
        yield (
            f"the metadata records of these ledgers were set aside, so their rows are lost: "
            f"{_shown(aside)}",
            f"`bkspark log show {name}` names the offsets; give up these and all "
            f"before them: `bkspark log truncate {name} --before OFFSET`",
        )
    if missing:
        yield (
            f"{plural(len(missing), 'ledger')} on its list cannot be read, because of missing "
            f"metadata records: {_shown(missing)}",
            "bring the metadata store back as it was",
        )


def _shown(ids: Sequence[int]) -> str:
    more = " …" if len(ids) > _SHOWN_MAX else ""
    return ", ".join(map(str, ids[:_SHOWN_MAX])) + more


def _is_gone(cluster: Cluster, ledger_id: int) -> bool:
    seen = cluster.ledgers.get(str(ledger_id))
    return seen is None or seen.value.state is LedgerState.DELETING


def _listed(cluster: Cluster, log_name: str) -> tuple[int, ...]:
    seen = cluster.logs.get(log_name)
    return () if seen is None else seen.value.listed_ids


# --- stuck recoveries ----------------------------------------------------------------------------
# Ledgers IN_RECOVERY, and why the last recovery could not close them.
#
# The information is for people: a recovery's note may be outdated, and nothing depends on the note.
# The note is shown only while the ledger is in the term of the note, and without bookies declared
# lost since.


@dataclass(frozen=True, slots=True)
class UnfinishedRecovery:
    """A ledger IN_RECOVERY.

    Attributes:
        stuck: the reason; None if the recovery still runs, or died before noting the reason.
    """

    ledger: LedgerMetadata
    stuck: StuckRecovery | None


def unfinished_recoveries(
    cluster: Cluster, ledgers: Iterable[LedgerMetadata]
) -> Iterator[UnfinishedRecovery]:
    """Yield those of ``ledgers`` that are IN_RECOVERY."""
    for ledger in ledgers:
        if ledger.state is LedgerState.IN_RECOVERY:
            seen = cluster.upkeep.recoveries.get(str(ledger.ledger_id))
            is_of_now = seen is not None and seen.value.term == ledger.term
            stuck = _without_lost(cluster, ledger, seen.value) if seen and is_of_now else None
            yield UnfinishedRecovery(ledger, stuck)


def _without_lost(cluster: Cluster, ledger: LedgerMetadata, stuck: StuckRecovery) -> StuckRecovery:
    """Update ``stuck`` for bookies declared lost since."""
    members = {member.bookie_id: member for member in Locations(ledger).members}
    waiting = [members[name] for name in stuck.waiting_for if name in members]
    all_lost = cluster.lost_members()
    lost = [member for member in waiting if member in all_lost]
    if not lost:
        return stuck
    silent = [member for member in waiting if member not in all_lost]
    reason, hint = messages.since_lost(
        ledger.ledger_id, stuck.entry_id, lost, silent, cluster.addresses()
    )
    names = tuple(member.bookie_id for member in silent)
    return replace(stuck, waiting_for=names, reason=reason, hint=hint)
