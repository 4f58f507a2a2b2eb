"""Add records that name entry logs, one after the other into one ledger, each with its ack.

The order is normative (R1, H16, H17): every entry log durable on Qa members of its window, then the
record on the journals, then the post-check on each bookie, then the quorum, then the metadata
check, then the ack. A DataFrame write is one such record, a streaming sink writes one per batch.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from bkspark.bookie.contract import BookieAddress, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.cluster import ensemble_log
from bkspark.cluster.bookie_client import BookieClient, close_all, seconds_to_store
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.ensembles import enlist
from bkspark.cluster.fan_out import Timeouts, ask_all
from bkspark.cluster.metadata_check import still_current
from bkspark.cluster.post_check import post_check
from bkspark.cluster.records import Seen
from bkspark.errors import (
    BookieUnavailableError,
    LedgerFencedError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.ledger.copying import copy_entry_log
from bkspark.ledger.entry_log_reader import NoGoodSourceError
from bkspark.log.batch.sending import Sending
from bkspark.protocol.ledger.adding import PendingAdds
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, Member, Standing
from bkspark.protocol.ledger.record import AddRecord, Transaction, confirmation
from bkspark.protocol.log.batch import AttemptReport, CommitPlan, Copy, plan_commit

logger = logging.getLogger(__name__)


class RecordWriter:
    """The one writer of an OPEN ledger, which is new or was laid down by the writer before.

    After an error other than ``InvalidRequestError`` the record's outcome is unknown and the
    writer is of no more use: whoever wants to know recovers the ledger.

    Args:
        seen: the ledger's metadata.
        term, token: the caller's own; what was read may be somebody else's by now (R2).
        ensemble: where the members of its last fragment are.
        standing: where the ledger stood when it was taken up; None if nothing was written to it.

    Raises:
        LedgerFencedError: somebody has taken the ledger over.
    """

    def __init__(
        self,
        cluster: Cluster,
        seen: Seen[LedgerMetadata],
        digester: Digester,
        ensemble: Sequence[BookieAddress],
        *,
        term: int,
        token: str,
        standing: Standing | None = None,
    ) -> None:
        if not seen.value.is_writable_by(term=term, token=token):
            raise LedgerFencedError(
                f"ledger {seen.value.ledger_id} was taken over by another client "
                f"({seen.value.state.value}, term {seen.value.term})",
                hint="nothing of this write is visible; run it again",
            )
        self.failures: dict[str, str] = {}
        begin = standing or Standing(INVALID_ENTRY_ID, 0, 0)
        self.transactions: dict[str, int] = dict(begin.transactions)
        self.length_bytes = begin.length_bytes
        self.record_count = begin.record_count
        self._cluster = cluster
        self._digester = digester
        self._seen = seen
        self._ledger_id = seen.value.ledger_id
        self._members = {address.bookie_id: address for address in ensemble}
        self._spares: dict[str, BookieAddress] = {}
        self._unjoined: set[str] = set()
        self._channels: dict[str, BookieClient] = {}
        self._cleanup = ExitStack()
        self._cleanup.callback(lambda: close_all(self._channels.values()))
        self._journals: dict[str, Journal] = {}
        self._is_laid_down = False
        self._pending = PendingAdds(seen.value.quorum, last_add_confirmed=begin.last_entry_id)

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def metadata(self) -> LedgerMetadata:
        """Of the ledger, as last seen."""
        return self._seen.value

    @property
    def last_add_confirmed(self) -> int:
        """The last entry with an ack, -1 if none."""
        return self._pending.last_add_confirmed

    def write(
        self,
        reports: Sequence[AttemptReport | None],
        *,
        spares: Sequence[BookieAddress],
        transaction: Transaction | None,
    ) -> CommitPlan:
        """Write the record for ``reports`` and return once it is acknowledged.

        Without rows there is no record, only the check that the ledger is still this writer's.
        Every round either succeeds or knows one more bookie that fails, so it ends.

        Args:
            spares: bookies that may step in, and those outside of the ensemble that hold rows.

        Raises:
            NotEnoughBookiesError: too few bookies; the record has no ack.
            LedgerFencedError: somebody has taken the ledger over.
        """
        if self._is_laid_down:
            raise LedgerFencedError(f"ledger {self._ledger_id} was laid down by this writer")
        self._spares = {spare.bookie_id: spare for spare in spares}
        for report in reports:
            self._note(dict(report.failures) if report else {})
        add: Sending | None = None
        failed = set(self._unjoined)
        while True:
            plan = plan_commit(
                reports,
                quorum=self.metadata.quorum,
                ensemble=self.metadata.last_fragment.ensemble,
                spares=[spare.member for spare in spares],
                failed=failed,
                first_entry_id=self.last_add_confirmed + 1,
            )
            if not plan.row_count:
                self.require_current()
                return plan
            news = self._make_copies(plan.copies) or self._change_ensemble(plan.ensemble)
            if not news:
                add = add or self._push(plan, transaction)
                news = self._append(add, failed)
                if not news:
                    self._acknowledged(add)
                    self._tell_of_gaps(add, failed)
                    return plan
            failed |= news

    def confirm(self) -> None:
        """Let readers see the last acknowledged entry before the next record says so (RB-12).

        Its durability does not matter, so a bookie that fails is left for the next record to see.
        """
        record = confirmation(
            ledger_id=self._ledger_id,
            term=self.metadata.term,
            token=self.metadata.token,
            last_add_confirmed=self.last_add_confirmed,
            length_bytes=self.length_bytes,
            quorum=self.metadata.quorum,
            fragment_first_entry_id=self.metadata.last_fragment.first_entry_id,
            transactions=self.transactions,
            stored=self._pending.stored,
        )
        encoded = journal.encode(record, self._digester)
        questions = {
            self._channels[member.bookie_id]: partial(file.append, encoded.frame(index, file.end))
            for index, member in enumerate(self.metadata.last_fragment.ensemble)
            if (file := self._journals.get(member.bookie_id)) is not None
        }
        timeouts = Timeouts(seconds_to_store(len(encoded.header)))
        for channel, end in ask_all(questions, timeouts).items():
            if isinstance(end, BookieUnavailableError):
                self._note({channel.address.bookie_id: str(end)})

    def require_current(self) -> None:
        """Return if the ledger is still this writer's.

        Raises:
            LedgerFencedError: somebody has taken it over.
        """
        self._seen = still_current(
            self._cluster, self._seen, hint="nothing of this write is visible; run it again"
        )

    def close_ledger(self) -> None:
        """Close the ledger at the last acknowledged entry; the writer is of no more use.

        Raises:
            LedgerFencedError, LedgerClosedError: somebody else has taken it over.
        """
        self._cluster.ledgers.update(str(self._ledger_id), self._closed)
        self.close()

    def lay_down(self) -> None:
        """Leave the ledger open for whoever takes it up; this writer never writes again.

        Raises:
            OutcomeUnknownError: a record has no ack, so there is something to recover.
            LedgerFencedError, LedgerClosedError: somebody else has taken it over.
        """
        if self._pending:
            raise OutcomeUnknownError(f"ledger {self._ledger_id} has a record without an ack")
        self._is_laid_down = True
        self._cluster.ledgers.update(str(self._ledger_id), self._put_down)
        self.close()

    def close(self) -> None:
        """Let go of the journals; the ledger stays as it is."""
        self._cleanup.close()

    def _there(self, metadata: LedgerMetadata | None) -> LedgerMetadata:
        if metadata is None:
            raise LedgerFencedError(f"ledger {self._ledger_id} is gone")
        return metadata

    def _put_down(self, metadata: LedgerMetadata | None) -> LedgerMetadata:
        standing = Standing(
            self.last_add_confirmed, self.length_bytes, self.record_count, self.transactions
        )
        mine = self.metadata
        return self._there(metadata).put_down(standing, term=mine.term, token=mine.token)

    def _closed(self, metadata: LedgerMetadata | None) -> LedgerMetadata:
        return self._there(metadata).closed(
            last_entry_id=self.last_add_confirmed,
            length_bytes=self.length_bytes,
            transactions=self.transactions,
            term=self.metadata.term,
            token=self.metadata.token,
        )

    def _make_copies(self, copies: Sequence[Copy]) -> set[str]:
        """Returns the bookies that failed."""
        failed: set[str] = set()
        for copy in copies:
            if failed & {copy.target_id, *copy.source_ids}:
                continue  # the next round knows better
            into, *sources = map(self._address, (copy.target_id, *copy.source_ids))
            try:
                bad = copy_entry_log(
                    copy.entry_log, sources, into, self._digester, ledger_id=self._ledger_id
                )
            except NoGoodSourceError as error:
                bad = error.problems
            except BookieUnavailableError as error:
                bad = {copy.target_id: str(error)}
            self._note(bad)
            failed |= bad.keys()
        return failed

    def _change_ensemble(self, ensemble: tuple[Member, ...]) -> set[str]:
        """Put ``ensemble`` in place by CAS, before anything is counted on it (RB-06).

        Returns the new members that failed.
        """
        before = self.metadata.last_fragment.ensemble
        replaced = [index for index, pair in enumerate(zip(before, ensemble)) if pair[0] != pair[1]]
        if not replaced:
            return set()
        joining = [self._address(ensemble[index].bookie_id) for index in replaced]
        permission = layout.permission(self._ledger_id, self.metadata.term, self.metadata.token)
        failed = {address.bookie_id for address in joining} - enlist(joining, permission)
        if failed:
            self._unjoined |= failed
            self._note(dict.fromkeys(failed, "it takes no marker"))
            return failed
        self._seen = self._cluster.ledgers.update(
            str(self._ledger_id), lambda metadata: self._changed(metadata, ensemble)
        )
        for old, new in ((before[i].bookie_id, ensemble[i].bookie_id) for i in replaced):
            why, first = self.failures.get(old, "it has fewer rows"), self.last_add_confirmed + 1
            ensemble_log.replaced(logger, self._ledger_id, old, new, first, why)
        self._members.update((address.bookie_id, address) for address in joining)
        self._pending.replace_members(replaced)
        return set()

    def _changed(
        self, metadata: LedgerMetadata | None, ensemble: tuple[Member, ...]
    ) -> LedgerMetadata:
        first, mine = self.last_add_confirmed + 1, self.metadata
        there = self._there(metadata)
        return there.with_ensemble(first, ensemble, term=mine.term, token=mine.token)

    def _push(self, plan: CommitPlan, transaction: Transaction | None) -> Sending:
        """The record for ``plan``, whose bytes from now on never change (R9, H12)."""
        done = {transaction.app_id: transaction.version} if transaction else {}
        add = self._pending.push(plan.row_count, names_entry_logs=True)
        record = AddRecord(
            ledger_id=self._ledger_id,
            term=self.metadata.term,
            token=self.metadata.token,
            first_entry_id=add.first_entry_id,
            last_entry_id=add.last_entry_id,
            last_add_confirmed=self.last_add_confirmed,
            length_bytes=self.length_bytes + plan.length_bytes,
            quorum=self.metadata.quorum,
            fragment_first_entry_id=self.metadata.last_fragment.first_entry_id,
            transactions={**self.transactions, **done},
            attempts=plan.attempts,
            stored=self._pending.stored,
        )
        return Sending(add, journal.encode(record, self._digester))

    def _append(self, add: Sending, failed: set[str]) -> set[str]:
        """Record, post-checks, quorum, metadata check. Returns bookies worth another round.

        All members work at once; what one has stored counts when its post-check is over.
        """
        ids = [member.bookie_id for member in self.metadata.last_fragment.ensemble]
        left = [index for index in range(len(ids)) if index not in add.pending.counted]
        questions: dict[BookieClient, Callable[[], Journal]] = {}
        for index in [index for index in left if ids[index] not in failed]:
            known, is_there = self._journals.get(ids[index]), ids[index] in add.appended_to
            channel = self._channel(ids[index])
            questions[channel] = partial(self._append_to, channel, index, add, known, is_there)
        answers = ask_all(questions, Timeouts(seconds_to_store(len(add.encoded.header))))
        news: set[str] = set()
        for channel, end in answers.items():
            bookie_id = channel.address.bookie_id
            if isinstance(end, BookieUnavailableError):
                self._note({bookie_id: str(end)})
                news.add(bookie_id)
            else:
                self._journals[bookie_id] = end
                add.appended_to.add(bookie_id)
                self._pending.count(ids.index(bookie_id), add.pending.first_entry_id)
        if news and self._has_spare(failed | news):
            return news
        ticket = self._pending.ticket()
        if ticket is None:
            raise NotEnoughBookiesError(
                f"ledger {self._ledger_id}: the add record is on too few bookies "
                f"({'; '.join(self.failures.values())})",
                hint="nothing was committed; add bookies or bring back the failed ones, "
                "then run the write again",
            )
        self.require_current()
        self._pending.acknowledge(ticket)
        return set()

    def _append_to(
        self, channel: BookieClient, index: int, add: Sending, known: Journal | None, is_there: bool
    ) -> Journal:
        """A question to one bookie: append there, unless it was, and see whether that counts."""
        address, record = channel.address, add.encoded.record
        file = known or self._new_journal(channel)
        if not is_there:
            file.append(add.encoded.frame(index, file.end))
        post_check(address, file, ledger_id=self._ledger_id, term=record.term, token=record.token)
        return file

    def _channel(self, bookie_id: str) -> BookieClient:
        channel = self._channels.get(bookie_id) or BookieClient(self._address(bookie_id))
        return self._channels.setdefault(bookie_id, channel)

    def _new_journal(self, channel: BookieClient) -> Journal:
        name = layout.journal(self._ledger_id, self.metadata.term, self.metadata.token)
        with open_bookie(channel.address).open_root() as root:
            file = root.open_journal(name)
        channel.cleanup.callback(file.close)
        return file

    def _acknowledged(self, add: Sending) -> None:
        self.length_bytes = add.encoded.record.length_bytes
        self.transactions = dict(add.encoded.record.transactions)
        self.record_count += 1

    def _tell_of_gaps(self, add: Sending, failed: set[str]) -> None:
        names = [member.bookie_id for member in self.metadata.last_fragment.ensemble]
        have = {names[index] for index in add.pending.counted} - failed
        lacking = {n: self.failures.get(n, "it failed") for n in names if n not in have}
        ensemble_log.fewer_copies(logger, self.metadata, add.pending.first_entry_id, lacking)

    def _has_spare(self, failed: set[str]) -> bool:
        used = {member.bookie_id for member in self.metadata.last_fragment.ensemble}
        return any(spare not in used | failed for spare in self._spares)

    def _address(self, bookie_id: str) -> BookieAddress:
        known = self._members.get(bookie_id) or self._spares.get(bookie_id)
        if known is None:
            raise BookieUnavailableError(f"bookie {bookie_id} is not known to this writer")
        return known

    def _note(self, failures: Mapping[str, str]) -> None:
        for bookie_id, reason in failures.items():
            if bookie_id not in self.failures:
                ensemble_log.given_up(logger, self._ledger_id, bookie_id, reason)
            self.failures[bookie_id] = reason
