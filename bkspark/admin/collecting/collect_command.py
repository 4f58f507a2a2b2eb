"""``collect``: plan, carry out, report, and note the time."""

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from bkspark import environment
from bkspark.admin.collecting.collection import CollectionOutcome, Collector
from bkspark.admin.collecting.collection_plan import CollectPlan
from bkspark.admin.collecting.garbage import plan_collection
from bkspark.admin.maintenance import Left, Progress, Report, Tell, noted, telling
from bkspark.admin.unreadable_bookies import leave_out_unreadable, left_records
from bkspark.bookie.messages import on_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.ledger.recovery.running import Runner

logger = logging.getLogger(__name__)

VERB = "collect"

ABANDONED_AFTER_SECONDS = 7 * 86_400.0
"""A longer write may count as abandoned, and then fails at commit."""

READ_GRACE_SECONDS = 86_400.0
"""A longer read of ledgers compacted meanwhile may fail; ``abandoned_after`` applies if shorter."""

DELETED = "DELETED_LEDGER_COUNT"
RECLAIMED = "RECLAIMED_DELETION_SPACE_BYTES"
FAILED = "RECLAIM_FAILED_TO_DELETE"
"""BookKeeper's names."""
TO_FREE = "SPACE_TO_RECLAIM_BYTES"
"""Bytes found but not freed yet, including ledgers kept for readers for a while."""


def collect(
    cluster: Cluster,
    *,
    abandoned_after: float = ABANDONED_AFTER_SECONDS,
    dry_run: bool = False,
    run: Runner | None = None,
    tell: Tell | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Free files left by deleted ledgers, truncations, overwrites and aborted writes.

    Also free unneeded files of closed ledgers: copies on former members, unnamed entry logs, and
    journals of truncated beginnings without any counting entry. Then remove unnamed log pages of
    gone ledgers.

    The collection may be killed, repeated, and run beside any other work.

    Args:
        abandoned_after: seconds to keep a ledger its log does not name, counted from the ledger's
            creation: a longer write may count as abandoned, and fails at commit. Ledgers replaced
            by a compaction are kept as long, but at most a day: a longer read must be repeated.
        run: runner of the instructions; None for threads of this process.

    Raises:
        OutcomeUnknownError: the metadata store or Spark gave no definite answer; repeat the run.
    """
    began_ms = environment.now_ms()
    runner = telling(run, tell)
    unreadable = leave_out_unreadable(cluster)
    made_before_ms = began_ms - int(abandoned_after * 1000)
    plan = plan_collection(
        cluster,
        runner,
        made_before_ms=made_before_ms,
        now_ms=began_ms,
        replaced_before_ms=began_ms - int(min(abandoned_after, READ_GRACE_SECONDS) * 1000),
    )
    if dry_run:
        return Report(VERB, plan.facts, details=_rows(plan))
    work = Collector(cluster, plan, runner, cluster.left_out)
    work.carry_out(progress)
    outcome = work.outcome
    lost = {member.bookie_id for member in cluster.lost_members()}
    report = _report(plan, outcome, lost, left_records(unreadable))
    logger.info("collect: %d ledgers, %d bytes freed", outcome.freed, outcome.removed.bytes)
    return noted(cluster, report, began_ms)


def _rows(plan: CollectPlan) -> dict[str, list[Mapping[str, Any]]]:
    return {"ledgers": [*(one.row for one in plan.garbage), *(one.row for one in plan.unwanted)]}


def _report(
    plan: CollectPlan,
    outcome: CollectionOutcome,
    lost: Collection[str],
    unreadable: Collection[Left],
) -> Report:
    left = [*_left(plan, outcome, lost), *unreadable]
    removed = outcome.removed
    return Report(
        VERB,
        plan.facts,
        {
            "ledgers": outcome.freed,
            "files": removed.files,
            "bytes": removed.bytes,
            "pages": outcome.pages,
        },
        left,
        {
            DELETED: outcome.freed,
            RECLAIMED: removed.bytes,
            TO_FREE: max(0, plan.usage.bytes - removed.bytes) + plan.later.bytes,
            FAILED: len({*outcome.owed, *(ledger_id for ledger_id, _ in outcome.problems)}),
        },
        _rows(plan),
        summary="some is left for the next run" if left else "",
    )


def _left(plan: CollectPlan, outcome: CollectionOutcome, lost: Collection[str]) -> Iterator[Left]:
    for bookie_id, reason in sorted(outcome.silent.items()):
        if bookie_id not in lost:  # expected to stay silent
            yield Left(f"bookie {bookie_id}", reason)
    for (ledger_id, bookie_id), problem in sorted(outcome.problems.items()):
        yield Left(f"ledger {ledger_id}", on_bookie(bookie_id, problem))
    for ledger_id, bookie_ids in sorted(outcome.owed.items()):
        yield Left(f"ledger {ledger_id}", f"to be freed on {', '.join(bookie_ids)}")
    waiting = {f"metadata record {key}": why for key, why in outcome.unreadable.items()}
    for subject, reason in sorted({**plan.doubts, **outcome.doubts, **waiting}.items()):
        yield Left(subject, reason)
