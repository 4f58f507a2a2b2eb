"""Moves the table of a log to another address, where a copy of its folder is.

Rule 1. The copy is the table only if it has the same id, names this log, and has each row of the
tier, by the digests that the offload stored. Else nothing changes.

Rule 2. The compare-and-set that follows the look wants the very tier that was looked at. So a
segment that was recorded meanwhile is looked at, too.
"""

from functools import partial
from typing import TYPE_CHECKING

from bkspark import environment
from bkspark.admin.maintenance import Report, noted
from bkspark.admin.offloading import refusals
from bkspark.admin.offloading.checking import TableView, require_segments, table_view
from bkspark.admin.offloading.freeing import change_seen
from bkspark.admin.offloading.offload import VERB, OffloadRequest, require_durable
from bkspark.cluster.cluster import Cluster
from bkspark.errors import (
    InvalidRequestError,
    MetadataVersionError,
    NoSuchTableError,
    TableChangedError,
)
from bkspark.protocol.log import offloading
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import Tier
from bkspark.storage.address import shown_url
from bkspark.storage.folders import folder_url

if TYPE_CHECKING:
    from bkspark.table.snapshot import Snapshot

LOOKS_MAX = 5


def is_move(cluster: Cluster, log_name: str, wanted: OffloadRequest) -> bool:
    """Whether the request names another address than that of the log's table."""
    if not wanted.table:
        return False
    tier = cluster.log(log_name).value.tier
    return tier is not None and folder_url(wanted.table) != tier.table_url


def move(
    cluster: Cluster, log_name: str, wanted: OffloadRequest, *, dry_run: bool = False
) -> Report:
    """Record that the table of a log is at another address, after a look at all its rows there.

    Raises:
        NoSuchLedgerError: no such log.
        InvalidRequestError: the place is not good enough, or the table there is another one.
        NoSuchTableError: there is no table.
        TableChangedError: the table there does not have all rows as they were written.
        MetadataVersionError: the tier was changed during each of several looks.
    """
    began_ms = environment.now_ms()
    for _ in range(LOOKS_MAX):
        log = cluster.log(log_name).value
        tier = log.tier
        if tier is None:
            raise InvalidRequestError(
                f"log {log_name!r} has no table any more", hint="run the command again"
            )
        url = refusals.require_place(
            log,
            wanted.table,
            accepts_single_copy=wanted.accepts_single_copy,
            accepts_unprotected=wanted.accepts_unprotected,
        )
        facts = {"log": log_name, "moved_from": tier.table_url, "table": url}
        view = _view_of(cluster, log, tier, url)
        if dry_run:
            return Report(VERB, facts)
        require_segments(cluster, log, tier, view)
        require_durable(view, tier.begin, tier.copied, since=-1)
        try:
            after = partial(
                offloading.moved,
                seen=tier,
                table_url=url,
                verified=view.version,
            )
            change_seen(cluster, log, tier, after)
        except MetadataVersionError:  # rule 2
            continue
        rows = tier.copied - max(tier.begin, min(log.first_offset, tier.copied))
        return noted(cluster, Report(VERB, facts, {"entries": rows}), began_ms)
    raise MetadataVersionError(
        f"log {log_name!r} was changed {LOOKS_MAX} times during a look at its table",
        hint="run the command again",
    )


def _view_of(cluster: Cluster, log: LogRecord, tier: Tier, url: str) -> TableView:
    """Look at the table there, which must be a copy of the log's (rule 1)."""
    try:
        view = table_view(url, tier.columns)
    except NoSuchTableError as error:
        raise NoSuchTableError(
            error.args[0],
            hint=f"the table of log {log.name!r} is at {shown_url(tier.table_url)}: copy its "
            "folder to the new address first; to begin anew with another table: --restart",
        ) from error
    found = view.snapshot
    _require_same(log, tier, url, found)
    if not refusals.epoch_in(cluster.cluster_id, log, found):
        raise InvalidRequestError(
            f"the table at {shown_url(url)} does not say that it is of log {log.name!r}: it has "
            f"no property {refusals.LOG_PROPERTY}",
            hint="copy the folder of the table again, with its _delta_log",
        )
    refusals.require_table(log, found)
    return view


def _require_same(log: LogRecord, tier: Tier, url: str, found: "Snapshot") -> None:
    if found.table_id != tier.table_id:
        raise TableChangedError(
            f"the table at {shown_url(url)} is not the one of log {log.name!r}, which is at "
            f"{shown_url(tier.table_url)}: its id is {found.table_id}, not {tier.table_id}",
            hint="copy the folder of the table; to begin anew with another table: --restart",
        )
