"""``retain``: delete the oldest entries of a log by its settings, or by the caller's limits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bkspark.admin.maintenance import Left, Report
from bkspark.admin.views import timestamp
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.log import truncation
from bkspark.log.log_handle import LogHandle, retention_of
from bkspark.log.truncation import Truncation, TruncationPlan

VERB = "retain"


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
        return Report(VERB, facts)
    consent(plan)
    if wanted.changes_settings:
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
    return Report(VERB, facts, counts, left, details=details)


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
