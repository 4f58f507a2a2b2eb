"""``scrub``: plan, read all copies, mark damage, report, and note the time.

Rule. As in an audit, records are read first and bookies afterwards. Damage counts only for ledgers
with unchanged records afterwards.

Rule. Reading takes hours, so findings are reported even if the run cannot read the rest.
"""

import logging
from collections.abc import Collection, Iterable, Sequence

from bkspark import environment
from bkspark.admin.auditing.audit import LOOKS_MAX
from bkspark.admin.auditing.audit_command import dropped_ledgers, plan_audit
from bkspark.admin.auditing.look import slim
from bkspark.admin.maintenance import Progress, Report, Tell, noted, planned, telling
from bkspark.admin.noted_damage import News, NotedDamage
from bkspark.admin.scrubbing.findings import VERB, ScrubFindings
from bkspark.admin.scrubbing.look import ReadAll, Scrubbed
from bkspark.admin.scrubbing.scrub_plan import LEDGERS_AT_ONCE, ScrubPlan, ScrubRequest
from bkspark.admin.survey import Survey
from bkspark.errors import BookKeeperError, NothingSentError, OutcomeUnknownError
from bkspark.format import layout
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member

logger = logging.getLogger(__name__)


def scrub(
    cluster: Survey,
    wanted: ScrubRequest,
    *,
    logs: Collection[str] = (),
    ledgers: Collection[int] = (),
    dry_run: bool = False,
    run: Runner | None = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Read every copy and check every byte; mark damage for a repair.

    Args:
        logs, ledgers: names and ids to read; all if both are empty.
        dry_run: plan only.
        run: runner of the instructions; None for threads of this process.

    Raises:
        NoSuchLedgerError: no such log or ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    began_ms = environment.now_ms()
    looked_at = plan_audit(cluster, logs, ledgers)
    plan = ScrubPlan(looked_at, wanted.sample, wanted.bytes_per_second)
    if dry_run:
        return planned(VERB, plan)
    work = Scrub(cluster, wanted, telling(run, tell), dropped_ledgers(cluster))
    work.carry_out(plan, progress)
    work.findings.unreadable = dict(cluster.unreadable)
    report = work.findings.report(plan)
    for left in report.left:
        logger.warning("scrub: %s: %s", left.subject, left.reason)
    if looked_at.is_of_all:
        report = noted(cluster, report, began_ms)
    return report


class Scrub:
    """Carries out a plan.

    Args:
        dropped: ids of ledgers dropped by logs; no client reads them.
    """

    def __init__(
        self, cluster: Survey, wanted: ScrubRequest, run: Runner, dropped: Collection[int]
    ) -> None:
        self.findings = ScrubFindings()
        self._cluster = cluster
        self._wanted = wanted
        self._run = run
        self._dropped = frozenset(dropped)
        self._addresses = cluster.addresses()
        self._noted = NotedDamage(cluster)

    def carry_out(self, plan: ScrubPlan, progress: Progress) -> None:
        """Read all copies, or as many as get answers.

        Raises:
            NothingSentError: this process could not ask, and no file was read before.
            OutcomeUnknownError: Spark gave no definite answer before any file was read.
        """
        try:
            self._read_all(plan, progress)
        except (NothingSentError, OutcomeUnknownError) as error:
            if not self.findings.counts["files"]:
                raise
            self.findings.cut_by = str(error.args[0])

    def _read_all(self, plan: ScrubPlan, progress: Progress) -> None:
        ids = plan.ledger_ids
        progress(0, len(ids))
        for begin in range(0, len(ids), LEDGERS_AT_ONCE):
            again: Sequence[int] = ids[begin : begin + LEDGERS_AT_ONCE]
            for _ in range(LOOKS_MAX):
                again = self._look(again) if again else again
            self.findings.changing += again
            progress(min(begin + LEDGERS_AT_ONCE, len(ids)), len(ids))
        if plan.looked_at.is_of_all:
            self._forget_what_is_gone()

    def _look(self, ledger_ids: Sequence[int]) -> list[int]:
        """Read ledgers once; return ids of the ledgers to read again."""
        ledgers = self._records(ledger_ids)
        asked = self._asked(ledgers.values())
        bad = {i for _, answer in asked if isinstance(answer, Scrubbed) for i in answer.bad}
        again, unsure = self._changed(ledgers[ledger_id] for ledger_id in bad)
        for read, answer in asked:
            if isinstance(answer, Scrubbed):
                known = {ledger.ledger_id for ledger in read.ledgers} - again - unsure
                self._take(read.address.member, answer, known)
            else:
                reason = str(getattr(answer, "reason", answer))
                self.findings.silent[read.address.bookie_id] = reason
        self.findings.counts.update(ledgers=len(ledgers.keys() - again - unsure))
        return sorted(again)

    def _take(self, member: Member, answer: Scrubbed, known: set[int]) -> None:
        """Count a bookie's findings about the ledgers ``known``."""
        findings = self.findings
        findings.counts.update(files=answer.files, bytes=answer.byte_count)
        findings.undigested |= answer.undigested & known
        found = [one for ledger_id, one in answer.bad.items() if ledger_id in known]
        findings.bad += [(member.bookie_id, one) for one in found]
        self._note(member, answer, known)

    def _records(self, ledger_ids: Sequence[int]) -> dict[int, LedgerMetadata]:
        found = {i: self._cluster.ledgers.get(str(i)) for i in ledger_ids}
        return {
            ledger_id: seen.value
            for ledger_id, seen in found.items()
            if seen is not None
            and seen.value.state is not LedgerState.DELETING
            and ledger_id not in self._dropped
        }

    def _asked(self, ledgers: Iterable[LedgerMetadata]) -> list[tuple[ReadAll, object]]:
        """Return each bookie's answer; a silent bookie is not asked again."""
        of_member: dict[Member, list[LedgerMetadata]] = {}
        for ledger in ledgers:
            for member in dict.fromkeys(m for f in ledger.fragments for m in f.ensemble):
                of_member.setdefault(member, []).append(slim(ledger))
        asked = [
            (self._addresses[member], tuple(theirs))
            for member, theirs in of_member.items()
            if member in self._addresses and member.bookie_id not in self.findings.silent
        ]
        wanted = self._wanted
        reads = [
            ReadAll(address, theirs, wanted.password, wanted.sample, wanted.bytes_per_second)
            for address, theirs in asked
        ]
        return list(zip(reads, self._run(reads), strict=True))

    def _changed(self, ledgers: Iterable[LedgerMetadata]) -> tuple[set[int], set[int]]:
        """Return ids of the ledgers changed meanwhile, and of ledgers with unknown state."""
        changed: set[int] = set()
        unsure: set[int] = set()
        for ledger in ledgers:
            now = self._cluster.ledgers.get(str(ledger.ledger_id))
            if now is None and self._is_unreadable(ledger.ledger_id):
                unsure.add(ledger.ledger_id)
            elif now is None or now.value != ledger:
                changed.add(ledger.ledger_id)
        self.findings.unsure |= unsure
        return changed, unsure

    def _is_unreadable(self, ledger_id: int) -> bool:
        """Return whether the record exists but cannot be read."""
        return layout.ledger_key(ledger_id) in self._cluster.unreadable

    # --- marks ----------------------------------------------------------------------------------

    def _note(self, member: Member, answer: Scrubbed, known: Collection[int]) -> None:
        """Mark damage; remove marks of good or unneeded copies."""
        bad = {i: one for i, one in answer.bad.items() if i in known}
        found = {i: one.mark for i, one in bad.items() if one.mark is not None}
        unsure = {i for i, one in bad.items() if one.unknown} | answer.partial | answer.undigested
        self._bring(News(member, found, unsure, set(known) - found.keys() - unsure))

    def _forget_what_is_gone(self) -> None:
        """Remove marks of copies no ledger needs any more."""
        marked = list(self._noted.marks(self._addresses))
        ledgers = self._records([ledger_id for _, ledger_id in marked])
        for member, ledger_id in marked:
            ledger = ledgers.get(ledger_id)
            if ledger is None and self._is_unreadable(ledger_id):
                continue
            if ledger is None or all(member not in f.ensemble for f in ledger.fragments):
                self._bring(News(member, {}, (), {ledger_id}))

    def _bring(self, news: News) -> None:
        try:
            left_out = self._noted.note(news)
        except BookKeeperError as error:
            # The findings are reported all the same: reading took hours.
            self.findings.unnoted[news.member.bookie_id] = f"nothing is marked: {error.args[0]}"
            return
        if left_out:
            self.findings.unnoted[news.member.bookie_id] = (
                f"{left_out:,} more ledgers are damaged there than the record has room for: "
                "repair, then scrub again"
            )
