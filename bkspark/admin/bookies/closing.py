"""Change what an operator says of a bookie: whether it takes new ledgers, its marks, its labels.

No client chooses a closed or full bookie for a new ledger or as a replacement. Its data stays
readable. Writers with the bookie in their ensemble continue to use it, and recoveries fence the
bookie and write copies there as a member of a ledger being closed. A recovery uses a full bookie if
no other bookie is free, but never a read-only bookie. Labels count for new ledgers and for later
changes of ensembles; no label moves a copy.
"""

from collections.abc import Callable
from dataclasses import replace

from bkspark.admin.maintenance import Report, report_of
from bkspark.cluster import arguments
from bkspark.cluster.arguments import require_number
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError
from bkspark.format.cluster import BookieRecord
from bkspark.protocol.bookies import Labels, Marks, labels_after


def set_read_only(
    cluster: Cluster, bookie_id: str, *, off: bool = False, dry_run: bool = False
) -> Report:
    """Keep new ledgers off a bookie, or admit them again; a repeated call changes nothing.

    Args:
        off: admit new ledgers again.

    Raises:
        InvalidRequestError: no such bookie.
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
    """Set the fill levels of a bookie's disk that stop and resume new placements.

    Args:
        high, low: used fractions of the disk; None keeps the old value. Above ``high`` nothing new
            is placed on the bookie until less than ``low`` is used. 1 is never exceeded.

    Raises:
        InvalidRequestError: no such bookie, or not 0 < low <= high <= 1.
    """
    before = cluster.bookie(bookie_id).value
    marks = _marks(before.marks, high, low)
    plan = () if marks == before.marks else (f"set the marks of {bookie_id} to {marks.shown}",)
    if plan and not dry_run:
        _update(cluster, bookie_id, lambda record: replace(record, marks=marks))
    return report_of("marks", before, plan, is_done=not dry_run)


def set_labels(
    cluster: Cluster,
    bookie_id: str,
    *,
    labels: object = (),
    remove: object = (),
    dry_run: bool = False,
) -> Report:
    """Set and remove labels of a bookie; a repeated call changes nothing.

    Args:
        labels: new labels and new values, as ``arguments.labels`` takes them.
        remove: names of labels to remove; a name without a label is no error.

    Raises:
        InvalidRequestError: no such bookie, a label is not valid or both set and removed, or the
            bookie would have too many.
    """
    given, removed = arguments.labels(labels), arguments.label_names(remove)
    both = sorted(given.keys() & set(removed))
    if both:
        raise InvalidRequestError(
            f"label {both[0]} is to be set and to be removed", hint="do one of the two"
        )

    def changed(record: BookieRecord) -> BookieRecord:
        try:
            return replace(record, labels=labels_after(record.labels, given, removed))
        except ValueError as error:
            raise InvalidRequestError(
                f"bookie {bookie_id} cannot have these labels: {error}",
                hint="remove labels by `--remove NAME`",
            ) from None

    before = cluster.bookie(bookie_id).value
    plan = _label_steps(bookie_id, before.labels, changed(before).labels)
    if plan and not dry_run:
        _update(cluster, bookie_id, changed)
    return report_of("label", before, plan, is_done=not dry_run)


def _label_steps(bookie_id: str, before: Labels, after: Labels) -> tuple[str, ...]:
    new = (name for name, value in after.items() if before.get(name) != value)
    return (
        *(f"set label {name} of {bookie_id} to {after[name]}" for name in new),
        *(f"remove label {name} of {bookie_id}" for name in before if name not in after),
    )


def _marks(before: Marks, high: float | None, low: float | None) -> Marks:
    upper = before.high_permille if high is None else _permille("high", high)
    lower = before.low_permille if low is None else _permille("low", low)
    try:
        return Marks(upper, lower)
    except ValueError:
        raise InvalidRequestError(
            f"a disk cannot have the marks {upper / 1000:g} and {lower / 1000:g}",
            hint="give fractions with 0 < low <= high <= 1; if you give only one, the other "
            "stays as it is",
        ) from None


def _permille(what: str, fraction: float) -> int:
    require_number(what, fraction, hint="give a fraction of the disk, such as 0.95")
    return round(min(fraction, 2.0) * 1000)


def _closed(record: BookieRecord, *, off: bool) -> BookieRecord:
    """Return the new record; reopening also cancels a removal, and the removal notices."""
    return replace(record, is_read_only=not off, is_leaving=record.is_leaving and not off)


def _told(bookie_id: str, *, off: bool) -> str:
    if off:
        return f"place new ledgers on {bookie_id} again"
    return f"place no new ledgers on {bookie_id}; its data stays readable"


def _update(
    cluster: Cluster, bookie_id: str, change: Callable[[BookieRecord], BookieRecord]
) -> None:
    def changed(record: BookieRecord | None) -> BookieRecord:
        assert record is not None  # registrations are never removed
        return change(record)

    cluster.registrations.update(bookie_id, changed)
