"""Write add records that name entry logs, one after another into one ledger, each with its ack.

The order is normative (R1, H16, H17): every entry log durable on Qa members of its window, then the
record on the journals, then the post-check on each bookie, then the quorum, then the metadata
check, then the ack. A DataFrame write is one such record; a streaming sink writes one per batch.
"""

import logging
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bkspark import environment
from bkspark.bookie.checks import as_judged
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster import log_messages
from bkspark.cluster.bookie_client import BookieClient, close_all, seconds_to_store
from bkspark.cluster.client_metrics import ClientCounts, CommittedRecord
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.fan_out import Timeouts, ask_all
from bkspark.cluster.log_messages import tell
from bkspark.cluster.records import Versioned
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    LedgerFencedError,
    NotEnoughBookiesError,
)
from bkspark.format.digest import Digester
from bkspark.format.journal import EncodedRecord
from bkspark.ledger.copying import copy_entry_log
from bkspark.ledger.entry_log_reader import NoGoodSourceError
from bkspark.ledger.handles.entries import RecordEncoder
from bkspark.ledger.handles.lane import Appender
from bkspark.ledger.handles.membership import Membership, News
from bkspark.log.recovering import Undecided
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import (
    FIRST,
    CommitTimes,
    ConfirmedEnd,
    LedgerMetadata,
    Member,
    TimeStep,
)
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log.batch import AttemptReport, CommitPlan, Holders, plan_commit
from bkspark.protocol.log.transactions import remembering
from bkspark.protocol.writer import steps
from bkspark.protocol.writer.adding import PendingAdd
from bkspark.protocol.writer.writing import LedgerWriter

# --- commit in progress --------------------------------------------------------------------------
# The state of the record that a ``RecordWriter`` is writing.


@dataclass(slots=True)
class CommitInProgress:
    """The contents and the state of one record.

    Attributes:
        addresses: addresses of the ledger's members, and of other bookies that have rows or may
            replace a member.
        transactions: the last version of each application, including the record's own.
        steps: when parts of the rows were committed, if they were committed before.
        bad: bookies that proved to have no good copies, each with the reason.
        record: the encoded record, once it is made.
        sent_at: when the record was made, in seconds of the monotonic clock.
    """

    plan: CommitPlan
    holders: Holders
    addresses: dict[str, BookieAddress]
    transactions: dict[str, int]
    steps: tuple[TimeStep, ...] = ()
    bad: dict[str, str] = field(default_factory=dict)
    record: EncodedRecord | None = None
    sent_at: float = 0.0

    @property
    def members(self) -> list[Member]:
        return [address.member for address in self.addresses.values()]

    def committed(self, ledger: LedgerMetadata, add: PendingAdd) -> CommittedRecord:
        """Return the counts of the acknowledged ``add``, in the term of ``ledger``."""
        took = environment.monotonic() - self.sent_at
        count = add.last_entry_id - add.first_entry_id + 1
        return CommittedRecord(ledger.ledger_id, ledger.term, add.last_entry_id, count, took)


# --- record writer -------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

_IS_NOT_VISIBLE = "nothing of this write is visible; run it again"


class RecordWriter:
    """The only writer of an OPEN ledger, which is new or was taken over in the writer's term.

    The writer runs the state machine of ``writing`` in a plain loop. After an error other than
    ``InvalidRequestError`` the outcome of the record is unknown, and the writer cannot be used
    again: a recovery of the ledger decides the outcome.

    Args:
        seen: the ledger's metadata.
        term, token: the caller's own; ``seen`` may show another writer's (R2).
        ensemble: addresses of the members of the last fragment.
        standing: the ledger's state at the takeover.
        begun: the members' journals; empty if another process has made the ledger.
        unjoined: ids of bookies that must not be asked to join (R19).

    Raises:
        LedgerFencedError: another writer has taken the ledger over.
    """

    def __init__(
        self,
        cluster: Cluster,
        seen: Versioned[LedgerMetadata],
        digester: Digester,
        ensemble: Sequence[BookieAddress],
        *,
        term: int,
        token: str,
        standing: ConfirmedEnd = FIRST,
        begun: Begun | None = None,
        unjoined: Collection[str] = (),
    ) -> None:
        if not seen.value.is_writable_by(term=term, token=token):
            raise seen.value.fenced(term, hint=_IS_NOT_VISIBLE)
        self._noted: dict[str, str] = {}
        self.transactions: dict[str, int] = dict(standing.transactions)
        self.record_count = standing.record_count
        self._machine = LedgerWriter(
            seen.value,
            last_add_confirmed=standing.last_entry_id,
            length_bytes=standing.length_bytes,
            times=standing.times,
            unjoined=unjoined,
        )
        self._cluster = cluster
        self._digester = digester
        self._encoder = RecordEncoder(seen.value, digester)
        self._members = Membership(
            cluster, seen, digester, begun or Begun(), ensemble, is_timed=True
        )
        self._commit: CommitInProgress | None = None
        self._counts = environment.the_one(ClientCounts)
        self._counts.watch(self)
        self._channels: dict[str, BookieClient] = {}
        self._appenders: dict[str, Appender] = {}

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def metadata(self) -> LedgerMetadata:
        """The ledger's metadata, as last seen."""
        return self._machine.metadata

    @property
    def last_add_confirmed(self) -> int:
        """The id of the last acknowledged entry, -1 if none."""
        return self._machine.pending.last_add_confirmed

    @property
    def length_bytes(self) -> int:
        """Payload bytes up to the last acknowledged entry."""
        return self._machine.pending.length_bytes

    @property
    def entry_count(self) -> int:
        """Number of entries that were sent and wait for an ack; 0 after the writer has ended."""
        sent = () if self._machine.has_ended else tuple(self._machine.pending)
        return sent[-1].last_entry_id - sent[0].first_entry_id + 1 if sent else 0

    @property
    def undecided(self) -> Undecided | None:
        """Entries that were sent and have no ack, for a recovery to decide; None if there are none.

        The offsets are entry ids: the writer does not know the ledger's place in the log.
        """
        sent = list(self._machine.pending)
        if not sent:
            return None
        first, count = sent[0].first_entry_id, sent[-1].last_entry_id - sent[0].first_entry_id + 1
        return Undecided(self._ledger_id, first, first, count, self.metadata.term)

    @property
    def failures(self) -> dict[str, str]:
        """Every bookie that failed, in tasks too, with the reason."""
        return {**self._noted, **self._machine.changes.failures}

    def write(
        self,
        reports: Sequence[AttemptReport | None],
        *,
        spares: Sequence[BookieAddress],
        transaction: Transaction | None,
        times: CommitTimes | None = None,
        time_steps: tuple[TimeStep, ...] = (),
    ) -> CommitPlan:
        """Write the record for ``reports`` and wait for its ack.

        Without rows no record is written; the writer only checks that it still owns the ledger.

        Args:
            spares: bookies that may replace members, and bookies outside the ensemble that hold
                rows.
            times, time_steps: when the rows were committed, if before; None for now.

        Raises:
            NotEnoughBookiesError: too few bookies; the record has no ack.
            LedgerFencedError: another writer has taken the ledger over.
        """
        quorum, first = self.metadata.quorum, self.last_add_confirmed + 1
        plan = plan_commit(reports, quorum=quorum, first_entry_id=first)
        for report in reports:
            self._note(dict(report.failures) if report else {})
        if not plan.row_count:
            self.require_current()
            return plan
        done = {transaction.app_id: transaction.version} if transaction else {}
        committed = remembering(self.transactions, done, is_of_tail=True)
        ensemble = self._machine.ensemble
        known = [*spares, *map(self._members.address, ensemble)]
        addresses = {address.bookie_id: address for address in known}
        holders = Holders(plan.written, quorum)
        self._commit = CommitInProgress(plan, holders, addresses, committed, time_steps)
        self._bring(steps.Gathered(holders.ceding(ensemble, self._commit.members)))
        times = times or CommitTimes.at(environment.now_ms())
        rows = (plan.row_count, plan.length_bytes)
        self._bring(steps.Submitted(*rows, names_entry_logs=True, times=times))
        assert not self._machine.pending, "its last event leads to an ack, or to an error"
        return plan

    def confirm(self) -> None:
        """Let readers see the last acknowledged entry before the next record does (RB-12).

        The confirmation need not be durable. If a bookie fails here, the next record notices the
        failure.
        """
        self._bring(steps.Idle())

    def require_current(self) -> None:
        """Return if the writer still owns the ledger.

        Raises:
            LedgerFencedError: another writer has taken the ledger over.
        """
        self._bring(steps.Asked())

    def close_ledger(self) -> None:
        """Close the ledger at the last acknowledged entry; the writer cannot be used again.

        Raises:
            LedgerFencedError, LedgerClosedError: another client has taken the ledger over.
        """
        closed = partial(self._machine.closed, transactions=self.transactions)
        with self._members.explaining():
            self._cluster.ledgers.update(str(self._ledger_id), closed)
        self.close()

    def close(self) -> None:
        """Close the journals; the ledger stays as it is."""
        close_all(self._channels.values())
        self._members.close()

    @property
    def _ledger_id(self) -> int:
        return self.metadata.ledger_id

    # --- the machine, in a plain loop --------------------------------------------------------

    def _bring(self, event: steps.Event) -> None:
        """Give ``event`` to the machine, and carry out all resulting instructions."""
        if self._machine.has_ended:
            ended = LedgerFencedError(f"the writer of ledger {self._ledger_id} has ended")
            raise self._members.explained(ended)
        to_do = deque(self._machine.receive(event))
        try:
            while to_do:
                for then, seen in self._carried_out(to_do.popleft()):
                    to_do += self._machine.receive(then)
                    if seen is not None and seen.value is self.metadata:
                        self._members.seen = seen
        except BookKeeperError as error:
            self._machine.receive(steps.Stop(error))
            raise self._told(self._members.explained(error)) from error
        except BaseException:
            self._machine.has_ended = True  # its last instruction was not carried out
            raise

    def _carried_out(self, step: steps.Instruction) -> Iterable[News]:
        """Carry out ``step`` and return the resulting events."""
        match step:
            case steps.Copy():
                return [self._copy(step)]
            case steps.Append():
                return self._append(step)
            case steps.Confirm():
                self._send_confirmation(step)
            case steps.CheckMetadata():
                return [self._members.check(step.ticket, self._members.seen)]
            case steps.Acknowledge():
                self._acknowledged(step.adds)
            case steps.Release():
                self._cluster.note_failure(step.member)
                self._note({step.member.bookie_id: step.reason})
            case steps.Enlist():
                return [self._enlist(step)]
            case steps.Swap():
                return [self._members.swap(step)]
            case steps.Join():
                old, reason = step.replaced
                self._members.joined(replace(step, replaced=(old, self._noted.get(old, reason))))
            case steps.WarnOfGaps():
                self._members.warn(step)
            case steps.EndWriter(error) if error is not None:
                raise error
        return ()

    def _enlist(self, step: steps.Enlist) -> News:
        """Enlist a bookie with rows, or a spare; a ceding member yields only to a better one."""
        assert self._commit is not None
        index, here = step.ensemble_index, self._machine.ensemble[step.ensemble_index]
        than = None if index in self._machine.changes.failed else here
        preferred = self._commit.holders.preferred(index, self._commit.members, than=than)
        addresses = [self._commit.addresses[member.bookie_id] for member in preferred]
        return self._members.enlist(step, addresses)

    def _copy(self, step: steps.Copy) -> News:
        """Copy the entry logs that a member lacks, from bookies that have not failed."""
        assert self._commit is not None
        index, name, bad = step.ensemble_index, step.member.bookie_id, self._commit.bad
        failed = {self._machine.ensemble[i].bookie_id for i in self._machine.changes.failed}
        for log in self._commit.holders.missing(index, name):
            names = self._commit.holders.sources(log, {*failed, *bad})
            into, *sources = (self._commit.addresses[one] for one in (name, *names))
            try:
                bad |= copy_entry_log(log, sources, into, self._digester, ledger_id=self._ledger_id)
            except NoGoodSourceError as error:
                self._note(error.problems)
                raise
            except BookieUnavailableError as error:
                return steps.Failed(index, name, as_judged(error)), None
            self._commit.holders.copied(log, name)
        self._note(bad)
        return steps.Copied(index, name, step.add.first_entry_id, tuple(bad.items())), None

    def _append(self, step: steps.Append) -> list[News]:
        """Append the record and do its post-check, on all members at once."""
        commit, add = self._commit, step.add
        assert commit is not None
        if commit.record is None:  # once: its bytes never change (R9, H12)
            commit.sent_at = environment.monotonic()
            commit.record = self._encoder.name(
                add, commit.plan.attempts, commit.transactions, commit.steps
            )
        questions = {
            self._channel(index): partial(self._append_to, index, commit.record, add)
            for index in step.indexes
        }
        answers = ask_all(questions, Timeouts(seconds_to_store(len(commit.record.header))))
        found: list[News] = []
        for index, channel in zip(step.indexes, questions):
            event = answers[channel]
            if isinstance(event, BookieUnavailableError):
                event = steps.Failed(index, channel.address.bookie_id, as_judged(event))
            found.append((event, None))
        return found

    def _append_to(
        self, index: int, record: EncodedRecord, add: PendingAdd
    ) -> steps.Stored | steps.Failed:
        """Append to one bookie, and check that the append counts."""
        channel = self._channel(index)
        bookie_id = channel.address.bookie_id
        appender = self._appenders.get(bookie_id) or self._new_appender(channel)
        try:
            appender.append(record.record, record.frame(index, appender.end))
        except LedgerFencedError as error:
            return steps.Failed(index, bookie_id, error)
        return steps.Stored(index, bookie_id, add.first_entry_id, add.last_entry_id)

    def _send_confirmation(self, step: steps.Confirm) -> None:
        record = self._encoder.confirm(
            self._machine.pending,
            fragment_first_entry_id=Locations(self.metadata).last.first_entry_id,
            transactions=self.transactions,
        )
        questions = {
            self._channel(index): partial(one.append, record.record, record.frame(index, one.end))
            for index in step.indexes
            if (one := self._appenders.get(self._machine.ensemble[index].bookie_id)) is not None
        }
        timeouts = Timeouts(seconds_to_store(len(record.header)))
        for channel, end in ask_all(questions, timeouts).items():
            if isinstance(end, BookieUnavailableError):
                self._note({channel.address.bookie_id: str(end)})

    def _channel(self, index: int) -> BookieClient:
        address = self._members.address(self._machine.ensemble[index])
        known = self._channels.get(address.bookie_id)
        return known or self._channels.setdefault(address.bookie_id, BookieClient(address))

    def _new_appender(self, channel: BookieClient) -> Appender:
        address = channel.address
        appender = Appender(address, self.metadata, self._members.journal_on(address))
        channel.cleanup.callback(appender.close)
        return self._appenders.setdefault(address.bookie_id, appender)

    def _acknowledged(self, adds: tuple[PendingAdd, ...]) -> None:
        assert self._commit is not None
        self.transactions = self._commit.transactions
        self.record_count += len(adds)
        for add in adds:
            self._counts.committed(self._commit.committed(self.metadata, add))

    def _told(self, error: BookKeeperError) -> BookKeeperError:
        """Log the end of this writer; return the error for the caller that writes rows."""
        said, ledger_id = "ledger %d: its writer ends: %s", self._ledger_id
        tell(logger, said, ledger_id, error.args[0], ledger_id=ledger_id)
        if isinstance(error, NotEnoughBookiesError):
            names = ", ".join(sorted(self.failures)) or "none"
            return NotEnoughBookiesError(
                error.args[0],
                hint="nothing was committed; add bookies or bring back the failed ones "
                f"({names}), then run the write again",
            )
        if isinstance(error, LedgerFencedError):
            return error.reworded(error.args[0], hint=_IS_NOT_VISIBLE)
        return error

    def _note(self, failures: Mapping[str, str]) -> None:
        for bookie_id, reason in failures.items():
            if bookie_id not in self._noted:
                log_messages.given_up(logger, self._ledger_id, bookie_id, reason)
            self._noted[bookie_id] = reason
