"""``compact`` and ``retain``: the maintenance of one log."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bkspark import environment
from bkspark.admin.maintenance import (
    IN_THREADS,
    Execution,
    Facts,
    Left,
    Pace,
    Progress,
    Report,
    noted,
)
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import no_heartbeat
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookKeeperError
from bkspark.log import truncation
from bkspark.log.truncation import Truncation, TruncationPlan
from bkspark.protocol.bounds import TARGET_BYTES
from bkspark.protocol.log.compaction import MergeRange, runs_of
from bkspark.protocol.log.record import LogRecord
from bkspark.quantities import timestamp

# The parts that move rows load Arrow, which a truncation does without.
if TYPE_CHECKING:
    from bkspark.log.compaction import Merged

# --- task ----------------------------------------------------------------------------------------
# The rewriting of one run, in a thread or as a Spark task.


@dataclass(frozen=True, slots=True)
class Compacted:
    """The outcome of a run.

    Attributes:
        merged: the new ledgers; empty if all columns differ.
        problem: why the run was left, with the remedy; empty on success.
    """

    run: MergeRange
    merged: "tuple[Merged, ...]" = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CompactRun:
    """Rewrites one run with connections of its own; picklable.

    Attributes:
        generation: generation of the log when the run was found.
        bytes_per_second: limit of the read rate; None for unlimited.
    """

    metadata_uri: str
    cluster_id: str
    log_name: str
    generation: int
    run: MergeRange
    password: Password
    bytes_per_second: float | None = None

    def carry_out(self) -> Compacted:
        """Rewrite the run; a second rewriting finds the run changed, or loses its compare-and-set.

        Runs on: driver thread | executor.
        """
        from bkspark.log.compaction import compact_run

        pace = Pace(self.bytes_per_second, no_heartbeat)
        try:
            with Cluster(self.metadata_uri, cluster_id=self.cluster_id) as cluster:
                log = cluster.log(self.log_name).value.still_of(self.generation)
                found = compact_run(cluster, log, self.run, self.password, pace.passed)
        except BookKeeperError as error:
            return Compacted(self.run, problem=str(error))
        return Compacted(self.run, tuple(found))


# --- compaction plan -----------------------------------------------------------------------------
# The plan of a compaction.


@dataclass(frozen=True, slots=True)
class CompactPlan:
    """Runs of neighbouring ledgers, each to become a single ledger.

    Attributes:
        log: the log's record when the runs were found.
        target_bytes: payload of a large enough ledger.
    """

    log: LogRecord
    target_bytes: int
    runs: tuple[MergeRange, ...]

    @property
    def facts(self) -> Facts:
        length = sum(run.length_bytes for run in self.runs)
        return {
            "log": self.log.name,
            "target_bytes": self.target_bytes,
            "runs": len(self.runs),
            "ledgers": sum(run.ledger_count for run in self.runs),
            "ledgers_of_log": self.log.ledger_count,
            "entries": sum(run.end - run.begin for run in self.runs),
            "bytes": length,
            "bytes_to_write": length * self.log.quorum.write_quorum_size,
        }

    @property
    def rows(self) -> list[Facts]:
        return [
            {
                "first_offset": run.begin,
                "entries": run.end - run.begin,
                "ledgers": run.ledger_count,
                "bytes": run.length_bytes,
            }
            for run in self.runs
        ]


# --- compact command -----------------------------------------------------------------------------
# ``compact``: plan, rewrite all runs in parallel, report, and note the time.
#
# Rule. Each run is rewritten and replaced separately. So one run's problem delays no other run, and
# a killed compaction has finished some runs.


logger = logging.getLogger(__name__)

COMPACT = "compact"
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
    how: Execution = IN_THREADS,
    *,
    compact_all: SideBySide | None = None,
) -> Report:
    """Merge a log's small ledgers into large ledgers; offsets and their rows stay.

    Args:
        compact_all: runner of the rewriting; None for threads of this process.

    Raises:
        NoSuchLedgerError: no such log.
        UnauthorizedError: the log's password is missing or wrong; no run was rewritten.
    """
    began_ms = environment.now_ms()
    log = cluster.log(log_name).value
    make_digester(log.digest, wanted.password)
    plan = CompactPlan(log, wanted.target_bytes, tuple(runs_of(log, wanted.target_bytes)))
    if how.dry_run:
        return Report(COMPACT, plan.facts, details={"runs": plan.rows})
    at_once = len(plan.runs) if compact_all else min(AT_ONCE, len(plan.runs))
    rate = wanted.max_bytes_per_second
    tasks = [
        CompactRun(
            *(cluster.uri, cluster.cluster_id, log.name, log.generation, run),
            *(wanted.password, rate and rate / at_once),
        )
        for run in plan.runs
    ]
    report = _report(plan, (compact_all or _in_threads(how.progress))(tasks))
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
        COMPACT,
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


# --- retaining -----------------------------------------------------------------------------------
# ``retain``: delete the oldest entries of a log by its settings, or by the caller's limits.


RETAIN = "retain"


@dataclass(frozen=True, slots=True)
class RetainRequest:
    """Arguments of a retention run.

    Attributes:
        max_bytes, max_seconds: new settings, unless both are None.
        is_forever: whether the log keeps all entries from now on.
        respects_cursors: whether entries stay until every cursor has read them.
    """

    log: str
    max_bytes: int | None = None
    max_seconds: float | None = None
    is_forever: bool = False
    respects_cursors: bool = True

    @property
    def is_limited(self) -> bool:
        """Whether new limits are set; later rolls then delete too."""
        return self.max_bytes is not None or self.max_seconds is not None

    @property
    def changes_settings(self) -> bool:
        return self.is_limited or self.is_forever


def plan_of(cluster: Cluster, wanted: RetainRequest) -> TruncationPlan:
    """Return the deletions under the wanted settings; change nothing.

    Raises:
        NoSuchLedgerError: no such log.
        InvalidRequestError: a limit is no number, or negative.
    """
    from bkspark.log.log_handle import retention_of

    limits = retention_of(wanted.max_bytes, wanted.max_seconds)
    return truncation.plan_retention(
        cluster,
        wanted.log,
        limits if wanted.changes_settings else None,
        respects_cursors=wanted.respects_cursors,
    )


def retain(
    cluster: Cluster,
    wanted: RetainRequest,
    *,
    dry_run: bool = False,
    consent: Callable[[TruncationPlan], None] = lambda _plan: None,
) -> Report:
    """Change the settings of a log, if wanted, and delete entries outside the limits.

    Args:
        consent: receives the plan before any change, and raises to refuse.

    Raises:
        NoSuchLedgerError: no such log.
        InvalidRequestError: a limit is no number, or negative.
        MetadataVersionError: the log was overwritten, or deleted and recreated, meanwhile.
    """
    plan = plan_of(cluster, wanted)
    facts = {**facts_of(plan), "max_bytes": wanted.max_bytes, "max_seconds": wanted.max_seconds}
    if dry_run:
        return Report(RETAIN, facts)
    consent(plan)
    if wanted.changes_settings:
        from bkspark.log.log_handle import LogHandle

        handle = LogHandle(cluster, wanted.log, Password())
        handle.keep(max_bytes=wanted.max_bytes, max_seconds=wanted.max_seconds)
    done = truncation.retain(
        cluster, wanted.log, respects_cursors=wanted.respects_cursors, plan=plan
    )
    left = [
        Left(
            f"ledger {ledger_id}",
            "it is hidden, but could not be deleted now",
            "run it again",
        )
        for ledger_id in done.left
    ]
    counts = {
        "entries": max(0, done.first_offset - plan.first_offset),
        "ledgers": len(done.deleted),
    }
    details = {"logs": [facts_of_done(wanted.log, done)]}
    return Report(RETAIN, facts, counts, left, details=details)


def facts_of(plan: TruncationPlan) -> dict[str, Any]:
    """Return a truncation's plan in JSON values."""
    return {
        "log": plan.log_name,
        "entries": plan.entry_count,
        "first_offset": plan.first_offset,
        "before_offset": plan.before_offset,
        "ledgers": plan.ledgers,
        "bytes": plan.byte_count,
        "oldest": _time(plan.oldest_ms),
        "newest": _time(plan.newest_ms),
    }


def facts_of_done(log_name: str, done: Truncation) -> dict[str, Any]:
    """Return a truncation's result in JSON values."""
    return {
        "log": log_name,
        "first_offset": done.first_offset,
        "deleted": list(done.deleted),
        "left": list(done.left),
    }


def _time(milliseconds: int) -> str | None:
    when = timestamp(milliseconds) if milliseconds else None
    return None if when is None else f"{when:%Y-%m-%d %H:%M:%S}Z"
