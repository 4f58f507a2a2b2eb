"""Committing a DataFrame write: one add record, its checks, its ack; then close, then splice.

The order is normative (reliability R1): every entry log durable on Qa members of its window, then
the record on the journals, then the post-check on each bookie, then the quorum, then the metadata
check, then the ack. Only after that is the ledger closed and put on the log's list, which is the
instant at which all rows become visible.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bkspark.bookie.contract import BookieAddress, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.client.batch.plan import schema_after
from bkspark.client.batch.target import BatchTarget, member_of
from bkspark.client.cluster import Cluster, now_ms
from bkspark.client.copying import copy_entry_log
from bkspark.client.metadata_check import still_current
from bkspark.client.placing import has_markers
from bkspark.client.post_check import post_check
from bkspark.client.records import Seen
from bkspark.errors import (
    BookieUnavailableError,
    LedgerFencedError,
    NotEnoughBookiesError,
)
from bkspark.format import arrow_schema, journal, layout
from bkspark.protocol.adding import PendingAdd, PendingAdds
from bkspark.protocol.batch import AttemptReport, CommitPlan, Copy, plan_commit
from bkspark.protocol.ledger import LedgerMetadata, Member
from bkspark.protocol.log import LogRecord
from bkspark.protocol.record import AddRecord


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What a commit did.

    Attributes:
        row_count: rows now in the log by this write; 0 if it was empty or done before.
        failures: bookies that failed on the way, each with the reason in one line.
    """

    ledger_id: int
    row_count: int
    failures: dict[str, str]


def commit(target: BatchTarget, reports: Sequence[AttemptReport | None]) -> CommitResult:
    """Commit exactly the attempts reported; all their rows become visible at once.

    Raises:
        NotEnoughBookiesError: nothing was committed.
        LedgerFencedError, OutcomeUnknownError: somebody interfered; nothing is visible unless the
            ledger is on the log's list.
    """
    if target.is_done:
        return CommitResult(target.ledger_id, 0, {})
    with Cluster(target.metadata_uri) as cluster, ExitStack() as journals:
        writer = _RecordWriter(cluster, target, journals)
        plan = writer.write(reports)
        cluster.ledgers.update(
            str(target.ledger_id), lambda metadata: _closed(metadata, target, plan)
        )
        has_joined = _splice(cluster, target)
    return CommitResult(target.ledger_id, plan.row_count if has_joined else 0, writer.failures)


def _splice(cluster: Cluster, target: BatchTarget) -> bool:
    """Put the closed ledger on its log's list, founding the log if there is none.

    Returns whether it is there now: not if it is empty, or its transaction was committed before.
    """
    schema = arrow_schema.decode(target.schema)

    def joined(record: LogRecord | None) -> LogRecord:
        log = record or LogRecord.vacant(target.log_name, target.quorum)
        if log.has_committed(target.transaction):
            return log.without(target.ledger_id)
        # The ledger is read after the log: whoever deletes it drops it from the log first.
        after = log.spliced(
            cluster.ledger(target.ledger_id).value,
            schema=schema_after(schema, log, target.merges_schema, target.is_overwrite),
            transaction=target.transaction,
            overwrite=target.is_overwrite,
        )
        return after if after == log else after.stamped(now_ms())

    log = cluster.logs.update(target.log_name, joined).value
    return any(logged.ledger_id == target.ledger_id for logged in log.ledgers)


def abort(target: BatchTarget) -> None:
    """See to it that the write's ledger never joins the log, unless it has already.

    Deletes nothing: Spark calls this in another process, also after a commit whose answer was lost
    (reliability R7, H5).
    """
    if target.is_done:
        return
    vacant = LogRecord.vacant(target.log_name, target.quorum)
    with Cluster(target.metadata_uri) as cluster:
        cluster.logs.update(
            target.log_name, lambda record: (record or vacant).without(target.ledger_id)
        )


def _closed(
    metadata: LedgerMetadata | None, target: BatchTarget, plan: CommitPlan
) -> LedgerMetadata:
    if metadata is None:
        raise LedgerFencedError(f"ledger {target.ledger_id} is gone")
    return metadata.closed(
        last_entry_id=plan.row_count - 1,
        length_bytes=plan.length_bytes,
        transactions=_transactions(target),
        term=target.term,
        token=target.token,
    )


def _transactions(target: BatchTarget) -> dict[str, int]:
    transaction = target.transaction
    return {transaction.app_id: transaction.version} if transaction else {}


class _RecordWriter:
    """Gets the one add record of a write acknowledged, replacing bookies that fail."""

    def __init__(self, cluster: Cluster, target: BatchTarget, journals: ExitStack) -> None:
        self._cluster = cluster
        self._target = target
        self._cleanup = journals
        self._digester = target.digester()
        self._journals: dict[str, Journal] = {}
        self._pending = PendingAdds(target.quorum)
        self._add: PendingAdd | None = None
        self._seen: Seen[LedgerMetadata] = cluster.ledger(target.ledger_id)
        self.failures: dict[str, str] = {}

    def write(self, reports: Sequence[AttemptReport | None]) -> CommitPlan:
        """Write the record for ``reports`` and return once it is acknowledged.

        Every round either succeeds or knows one more bookie that fails, so it ends.
        """
        for report in reports:
            self.failures.update(dict(report.failures) if report else {})
        failed: set[str] = set()
        while True:
            plan = plan_commit(
                reports,
                quorum=self._target.quorum,
                ensemble=self._seen.value.last_fragment.ensemble,
                spares=[member_of(spare) for spare in self._target.spares],
                failed=failed,
            )
            if not plan.row_count:
                self._require_current()
                return plan
            news = self._make_copies(plan.copies) or self._change_ensemble(plan.ensemble)
            news = news or self._append(plan, failed)
            if not news:
                return plan
            failed |= news

    def _make_copies(self, copies: Sequence[Copy]) -> set[str]:
        """Returns the bookies that failed."""
        failed: set[str] = set()
        for copy in copies:
            if copy.target_id in failed:
                continue
            sources = [self._target.address(source) for source in copy.source_ids]
            into = self._target.address(copy.target_id)
            try:
                copy_entry_log(
                    copy.entry_log,
                    sources,
                    into,
                    self._digester,
                    ledger_id=self._target.ledger_id,
                )
            except BookieUnavailableError as error:
                self._note(copy.target_id, error)
                failed.add(copy.target_id)
        return failed

    def _change_ensemble(self, ensemble: tuple[Member, ...]) -> set[str]:
        """Put ``ensemble`` in place by CAS, before anything is counted on it (RB-06).

        Returns the new members that failed.
        """
        before = self._seen.value.last_fragment.ensemble
        replaced = [index for index, pair in enumerate(zip(before, ensemble)) if pair[0] != pair[1]]
        if not replaced:
            return set()
        failed: set[str] = set()
        for index in replaced:
            bookie_id = ensemble[index].bookie_id
            address = self._target.address(bookie_id)
            if not has_markers(address, self._target.ledger_id, self._target.term):
                failed.add(bookie_id)
        if failed:
            return failed
        self._seen = self._cluster.ledgers.update(
            str(self._target.ledger_id), lambda metadata: self._changed(metadata, ensemble)
        )
        self._pending.replace_members(replaced)
        return set()

    def _changed(
        self, metadata: LedgerMetadata | None, ensemble: tuple[Member, ...]
    ) -> LedgerMetadata:
        if metadata is None:
            raise LedgerFencedError(f"ledger {self._target.ledger_id} is gone")
        first = self._pending.last_add_confirmed + 1
        return metadata.with_ensemble(
            first, ensemble, term=self._target.term, token=self._target.token
        )

    def _append(self, plan: CommitPlan, failed: set[str]) -> set[str]:
        """Record, post-checks, quorum, metadata check. Returns bookies worth another round."""
        add = self._add = self._add or self._pending.push(plan.row_count, names_entry_logs=True)
        news: set[str] = set()
        for index, member in enumerate(self._seen.value.last_fragment.ensemble):
            if member.bookie_id in failed or index in add.counted:
                continue
            try:
                self._append_to(index, self._target.address(member.bookie_id), plan)
                add.counted.add(index)
            except BookieUnavailableError as error:
                self._note(member.bookie_id, error)
                news.add(member.bookie_id)
        if news and self._has_spare(failed | news):
            return news
        ticket = self._pending.ticket()
        if ticket is None:
            raise NotEnoughBookiesError(
                f"ledger {self._target.ledger_id}: the add record is on too few bookies "
                f"({'; '.join(self.failures.values())})",
                hint="nothing was committed; add bookies or bring back the failed ones, "
                "then run the write again",
            )
        self._require_current()
        self._pending.acknowledge(ticket)
        return set()

    def _append_to(self, index: int, address: BookieAddress, plan: CommitPlan) -> None:
        journal_file = self._journals.get(address.bookie_id)
        if journal_file is None:
            with open_bookie(address).open_root() as root:
                journal_file = root.open_journal(self._journal_name)
            self._cleanup.callback(journal_file.close)
            journal_file.append(
                journal.encode(self._record(plan), self._digester).frame(index, journal_file.end)
            )
            self._journals[address.bookie_id] = journal_file
        post_check(address, journal_file, ledger_id=self._target.ledger_id, term=self._target.term)

    @property
    def _journal_name(self) -> str:
        return layout.journal(self._target.ledger_id, self._target.term, self._target.token)

    def _record(self, plan: CommitPlan) -> AddRecord:
        return AddRecord(
            ledger_id=self._target.ledger_id,
            term=self._target.term,
            token=self._target.token,
            first_entry_id=0,
            last_entry_id=plan.row_count - 1,
            last_add_confirmed=-1,
            length_bytes=plan.length_bytes,
            quorum=self._target.quorum,
            transactions=_transactions(self._target),
            attempts=plan.attempts,
        )

    def _has_spare(self, failed: set[str]) -> bool:
        used = {member.bookie_id for member in self._seen.value.last_fragment.ensemble}
        return any(spare.bookie_id not in used | failed for spare in self._target.spares)

    def _require_current(self) -> None:
        self._seen = still_current(
            self._cluster, self._seen, hint="nothing of this write is visible; run it again"
        )

    def _note(self, bookie_id: str, error: BookieUnavailableError) -> None:
        self.failures[bookie_id] = str(error)
