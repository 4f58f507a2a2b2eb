"""What a call about one bookie says of itself: a report like that of all verbs."""

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
    """The report of what was to be done with a bookie.

    Args:
        steps: in order; empty if nothing is to be done.
        is_done: whether they were; not in a dry run.
    """
    plan = {"bookie_id": record.bookie_id, "incarnation": record.incarnation, "steps": list(steps)}
    return Report(verb, plan, {"steps": len(steps)} if is_done and steps else {}, left)
