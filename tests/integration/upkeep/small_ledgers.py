"""Logs of many small ledgers, and their compaction."""

from typing import Any

from bkspark import verbs
from bkspark.admin.maintenance import Report
from tests.integration.rig import LOG, Rig, flat, partitions_of


def compacted(rig: Rig, log_name: str = LOG, **options: Any) -> Report:
    report = verbs.compact(rig.uri, log=log_name, **options)
    assert not report.left
    return report


def filled(rig: Rig, count: int = 5, **options: Any) -> list[tuple[Any, ...]]:
    """As many writes of two partitions each; all rows."""
    rows = []
    for number in range(count):
        partitions = partitions_of(3, 4, first=10 * number)
        rig.write(partitions, **options)
        rows += flat(partitions)
    return rows


def ids(rig: Rig) -> tuple[int, ...]:
    log = rig.log()
    assert log is not None
    return log.listed_ids
