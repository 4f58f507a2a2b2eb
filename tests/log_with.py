"""Versions of a log's record that differ in single fields, whichever group these are in."""

from collections import defaultdict
from dataclasses import fields, replace
from typing import Any

from bkspark.protocol.log.contents import Committed, LedgerList, Retention, Times
from bkspark.protocol.log.record import LogRecord

GROUPS = {
    field.name: group
    for group, kind in (("listed", LedgerList), ("committed", Committed), ("times", Times))
    for field in fields(kind)
}
RETENTION = {"retention_bytes": "byte_count", "retention_ms": "milliseconds"}
assert {field.name for field in fields(Retention)} == set(RETENTION.values())


def log_with(log: LogRecord, **changes: Any) -> LogRecord:
    """``log`` with these fields, its own and those of its groups."""
    own, of_groups = dict[str, Any](), defaultdict[str, dict[str, Any]](dict)
    for name, value in changes.items():
        if name in RETENTION:
            of_groups["retention"][RETENTION[name]] = value
        elif name in GROUPS:
            of_groups[GROUPS[name]][name] = value
        else:
            own[name] = value
    for group, found in of_groups.items():
        own[group] = replace(getattr(log, group), **found)
    return replace(log, **own)
