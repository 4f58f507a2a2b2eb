"""``compact``: plan, rewrite all runs in parallel, report, and note the time.

Rule. Each run is rewritten and replaced separately. So one run's problem delays no other run, and a
killed compaction has finished some runs.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bkspark import environment
from bkspark.admin.compacting.compaction_plan import CompactPlan
from bkspark.admin.compacting.task import Compacted, CompactRun
from bkspark.admin.maintenance import Left, Progress, Report, noted
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.protocol.log.compaction import TARGET_BYTES, runs_of

logger = logging.getLogger(__name__)

VERB = "compact"
AT_ONCE = 4
"""Runs rewritten in parallel in one process: each holds some blocks in memory."""

SideBySide = Callable[[Sequence[CompactRun]], Sequence[Compacted]]
"""Rewrites runs separately and returns their outcomes."""


@dataclass(frozen=True, slots=True)
class CompactRequest:
    """Arguments of a compaction.

    Attributes:
        target_bytes: payload of a large enough ledger; ledgers of up to half are small.
        max_bytes_per_second: limit for all runs together.
    """

    target_bytes: int = TARGET_BYTES
    password: Password = field(default_factory=Password)
    max_bytes_per_second: float | None = None


def compact(
    cluster: Cluster,
    log_name: str,
    wanted: CompactRequest,
    *,
    dry_run: bool = False,
    compact_all: SideBySide | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Merge a log's small ledgers into large ledgers; offsets and their rows stay.

    Args:
        dry_run: plan only.
        compact_all: runner of the rewriting; None for threads of this process.

    Raises:
        NoSuchLedgerError: no such log.
        UnauthorizedError: the log's password is missing or wrong; no run was rewritten.
    """
    began_ms = environment.now_ms()
    log = cluster.log(log_name).value
    make_digester(log.digest, wanted.password)
    plan = CompactPlan(log, wanted.target_bytes, tuple(runs_of(log, wanted.target_bytes)))
    if dry_run:
        return Report(VERB, plan.facts, details={"runs": plan.rows})
    at_once = len(plan.runs) if compact_all else min(AT_ONCE, len(plan.runs))
    rate = wanted.max_bytes_per_second
    tasks = [
        CompactRun(
            *(cluster.uri, cluster.cluster_id, log.name, log.generation, run),
            *(wanted.password, rate and rate / at_once),
        )
        for run in plan.runs
    ]
    report = _report(plan, (compact_all or _in_threads(progress))(tasks))
    for left in report.left:
        logger.info("compact: %s: %s", left.subject, left.reason)
    return noted(cluster, report, began_ms)


def _in_threads(progress: Progress) -> SideBySide:
    def compact_all(tasks: Sequence[CompactRun]) -> Sequence[Compacted]:
        done: list[int] = []
        total = sum(task.run.ledger_count for task in tasks)
        progress(0, total)

        def work(task: CompactRun) -> Compacted:
            result = task.carry_out()
            done.append(task.run.ledger_count)
            progress(sum(done), total)
            return result

        return environment.for_each(work, tasks, at_once=AT_ONCE, name="compact")

    return compact_all


def _report(plan: CompactPlan, found: Sequence[Compacted]) -> Report:
    merged = [one for result in found for one in result.merged]
    name = plan.log.name
    left = [
        Left(f"offsets {one.run.begin} to {one.run.end - 1} of log {name}", one.problem)
        for one in found
        if one.problem
    ]
    replaced = sum(one.ledger_count for one in merged)
    length = sum(one.length_bytes for one in merged)
    return Report(
        VERB,
        plan.facts,
        {"ledgers": replaced, "new ledgers": len(merged), "bytes": length},
        left,
        {"NUM_LEDGERS_COMPACTED": replaced, "NUM_BYTES_COMPACTED": length},
        {
            "compacted": [
                {
                    "ledger_id": one.ledger_id,
                    "first_offset": one.first_offset,
                    "entries": one.entry_count,
                    "bytes": one.length_bytes,
                    "ledgers": one.ledger_count,
                }
                for one in merged
            ]
        },
        f"{len(left):,} of {len(plan.runs):,} runs left" if left else "",
    )
