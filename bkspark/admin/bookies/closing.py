"""Keeping new ledgers off a bookie: by an operator's word, or by how full its disk is.

Either is a matter of placement: nobody chooses such a bookie for a new ledger or in place of
another. What it has is read. Whoever has it in his ensemble already goes on with it, and recoveries
fence it and give it copies, as a member of what they close. A recovery takes one that is full where
there is no other; one that is read-only by an operator's word it does not.
"""

from collections.abc import Callable
from dataclasses import replace

from bkspark.admin.bookies.report import report_of
from bkspark.admin.maintenance import Report
from bkspark.cluster.arguments import require_number
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError
from bkspark.format.cluster import BookieRecord
from bkspark.protocol.bookies.fullness import Marks


def set_read_only(
    cluster: Cluster, bookie_id: str, *, off: bool = False, dry_run: bool = False
) -> Report:
    """Keep new ledgers off a bookie, or no more if ``off``; again changes nothing.

    Raises:
        InvalidRequestError: there is no such bookie.
    """
    before = cluster.bookie(bookie_id).value
    plan = () if before.is_read_only is not off else (_told(bookie_id, off=off),)
    if plan and not dry_run:
        _update(cluster, bookie_id, lambda record: _closed(record, off=off))
    return report_of("readonly", before, plan, is_done=not dry_run)


def set_marks(
    cluster: Cluster,
    bookie_id: str,
    *,
    high: float | None = None,
    low: float | None = None,
    dry_run: bool = False,
) -> Report:
    """Set how full a bookie's disk may get before nothing new is placed on it.

    Args:
        high, low: fractions of the disk that are used; None leaves one as it is. Above ``high``
            nothing new is placed there until less than ``low`` is used. 1 is never passed.

    Raises:
        InvalidRequestError: there is no such bookie, or not 0 < low <= high <= 1.
    """
    before = cluster.bookie(bookie_id).value
    marks = _marks(before.marks, high, low)
    plan = () if marks == before.marks else (f"set the marks of {bookie_id} to {marks.shown}",)
    if plan and not dry_run:
        _update(cluster, bookie_id, lambda record: replace(record, marks=marks))
    return report_of("marks", before, plan, is_done=not dry_run)


def _marks(before: Marks, high: float | None, low: float | None) -> Marks:
    upper = before.high_permille if high is None else _permille("high", high)
    lower = before.low_permille if low is None else _permille("low", low)
    try:
        return Marks(upper, lower)
    except ValueError:
        raise InvalidRequestError(
            f"a disk cannot have the marks {upper / 1000:g} and {lower / 1000:g}",
            hint="give fractions with 0 < low <= high <= 1; the one not given stays as it is",
        ) from None


def _permille(what: str, fraction: float) -> int:
    require_number(what, fraction, hint="give a fraction of the disk, such as 0.95")
    return round(min(fraction, 2.0) * 1000)


def _closed(record: BookieRecord, *, off: bool) -> BookieRecord:
    """Who opens one again that was to be removed takes that back too; a removal notices."""
    return replace(record, is_read_only=not off, is_leaving=record.is_leaving and not off)


def _told(bookie_id: str, *, off: bool) -> str:
    if off:
        return f"place new ledgers on {bookie_id} again"
    return f"place no new ledgers on {bookie_id}; what it has is read as before"


def _update(
    cluster: Cluster, bookie_id: str, change: Callable[[BookieRecord], BookieRecord]
) -> None:
    def changed(record: BookieRecord | None) -> BookieRecord:
        assert record is not None  # registrations are never removed
        return change(record)

    cluster.registrations.update(bookie_id, changed)
