"""Make the report of a call about one bookie."""

from collections.abc import Sequence

from bkspark.admin.maintenance import Left, Report
from bkspark.format.cluster import BookieRecord


def report_of(
    verb: str,
    record: BookieRecord,
    steps: Sequence[str] = (),
    *,
    is_done: bool = False,
    left: Sequence[Left] = (),
) -> Report:
    """Return the report of the steps for a bookie.

    Args:
        steps: in order; empty without work.
        is_done: whether the steps were taken; False in a dry run.
    """
    plan = {"bookie_id": record.bookie_id, "incarnation": record.incarnation, "steps": list(steps)}
    return Report(verb, plan, {"steps": len(steps)} if is_done and steps else {}, left)
