"""``audit``: plan, carry out, report; after an audit of the whole cluster, note the time."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from bkspark import environment
from bkspark.admin.auditing.audit import Audit
from bkspark.admin.auditing.audit_plan import AuditPlan, plan_of_all, plan_of_some
from bkspark.admin.auditing.copies import Gap
from bkspark.admin.auditing.findings import VERB
from bkspark.admin.auditing.words import in_words
from bkspark.admin.listed_ledgers import gone_from_lists
from bkspark.admin.maintenance import Progress, Report, Tell, noted, planned, telling
from bkspark.admin.survey import Survey
from bkspark.cluster.cluster import Cluster
from bkspark.ledger.recovery.running import Runner, in_threads

logger = logging.getLogger(__name__)

SHOWN_TELL_SECONDS = 1.0
"""Reporting interval of views: they wait at most 12 intervals, not a minute, for a silent
bookie.
"""


def audit(
    cluster: Survey,
    *,
    logs: Collection[str] = (),
    ledgers: Collection[int] = (),
    dry_run: bool = False,
    run: Runner | None = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Find missing copies, and ledgers waiting for recovery with the reasons.

    Args:
        logs, ledgers: names and ids to examine; if both are empty, all ledgers and surplus files on
            bookies.
        dry_run: plan only.
        run: runner of the instructions; None for threads of this process.

    Raises:
        NoSuchLedgerError: no such log or ledger.
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    began_ms = environment.now_ms()
    plan = plan_audit(cluster, logs, ledgers)
    if dry_run:
        return planned(VERB, plan)
    work = Audit(cluster, plan, telling(run, tell), dropped_ledgers(cluster))
    work.carry_out(progress)
    names = cluster.log_names() if plan.is_of_all else logs
    work.findings.recordless = list(gone_from_lists(cluster, names, work.seen))
    work.findings.unreadable = dict(cluster.unreadable)
    found = work.findings.report(plan, work.lost_bookies)
    report = replace(found, summary=in_words(found.counters))
    for left in report.left:
        logger.info("audit: %s: %s", left.subject, left.reason)
    if report.left:
        logger.warning("audit: %s findings; the report names them", len(report.left))
    if plan.is_of_all:
        report = noted(cluster, report, began_ms)
    return report


def plan_audit(
    cluster: Cluster, logs: Collection[str] = (), ledgers: Collection[int] = ()
) -> AuditPlan:
    """Plan an audit of some or all ledgers; raise the errors of ``audit``."""
    bookie_ids = sorted(cluster.bookies())
    if not logs and not ledgers:
        return plan_of_all(cluster.ledger_ids(), bookie_ids)
    wanted = {cluster.ledger(ledger_id).value.ledger_id for ledger_id in ledgers}
    for name in logs:
        wanted |= set(cluster.log(name).value.listed_ids)
    return plan_of_some(sorted(wanted), bookie_ids)


def gaps_of(cluster: Cluster, ledger_ids: Sequence[int]) -> list[Gap]:
    """Return the missing copies of some ledgers, for views."""
    plan = plan_of_some(ledger_ids, sorted(cluster.bookies()))
    run = partial(in_threads, tell_seconds=SHOWN_TELL_SECONDS)
    work = Audit(cluster, plan, run, dropped_ledgers(cluster))
    work.carry_out(lambda _done, _total: None)
    return work.findings.gaps


def dropped_ledgers(cluster: Cluster) -> set[int]:
    """Return the ids of all ledgers dropped by logs: no copy of them is required."""
    seen = (cluster.logs.get(name) for name in cluster.log_names())
    return {
        ledger_id for log in seen if log is not None for ledger_id in log.value.every_dropped_id()
    }
