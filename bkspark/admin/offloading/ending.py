"""Ends an offload, and accepts what an operator changed in the table on purpose.

Rule 1. The table fences the old epoch before the record ends it: an append that comes late adds no
row.

Rule 2. A tier is forgotten only if all readable rows are in ledgers. Ledgers that wait come back to
the list.
"""

from enum import Enum

from bkspark import environment
from bkspark.admin.maintenance import Report, noted
from bkspark.admin.offloading.checking import digests_there, table_view
from bkspark.admin.offloading.copier import Copier
from bkspark.admin.offloading.refusals import application_of
from bkspark.admin.offloading.tier_pages import SpentTierPages
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, MetadataVersionError, NoSuchTableError
from bkspark.format import layout
from bkspark.format.tier_record import DigestsPage
from bkspark.protocol.log import offloading
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import Tier, TierSegment


class Ending(Enum):
    """What an offload does before it copies, or instead."""

    NONE = "it copies"
    RESTART = "it forgets the table, and copies to another one"
    STOP = "it copies no more"
    ACCEPT = "it takes the rows as the table has them"

    @classmethod
    def of(cls, *, restart: bool, stop: bool, accept_changes: bool) -> "Ending":
        """Return what the options say.

        Raises:
            InvalidRequestError: two of them are given.
        """
        given = ((restart, cls.RESTART), (stop, cls.STOP), (accept_changes, cls.ACCEPT))
        found = [one for is_given, one in given if is_given]
        if len(found) > 1:
            raise InvalidRequestError(
                "restart, stop and accept_changes exclude each other", hint="give one of them"
            )
        return found[0] if found else cls.NONE


def stop(cluster: Cluster, log_name: str, copier: Copier, *, may_keep: bool) -> Report:
    """End the offload of a log; the log forgets its table, if all rows are in ledgers.

    Args:
        may_keep: whether to end it also if some rows are only in the table.

    Raises:
        NoSuchLedgerError: no such log.
        InvalidRequestError: the log has no table, or some rows are only there.
        TableUnavailableError: the table gives no certain answer, so it cannot be fenced.
    """
    began_ms = environment.now_ms()
    log = cluster.log(log_name).value
    tier = _tier_of(log)
    if not may_keep:
        offloading.forgotten(offloading.taken_back(log, tier.epoch), tier.epoch)
    _fence(cluster, log, tier, copier)
    new_epoch = environment.token()

    def stopped(record: LogRecord | None) -> LogRecord:
        if record is None:
            raise MetadataVersionError(f"log {log_name!r} was deleted meanwhile")
        now = record.still_of(log.generation)
        offloading.tier_of(now, tier.epoch, tier.table_url)  # the table that was fenced
        if not may_keep or _is_all_in_ledgers(now):
            return offloading.forgotten(offloading.taken_back(now, tier.epoch), tier.epoch)
        return offloading.fenced(now, tier.epoch, new_epoch)

    after = cluster.logs.update(log_name, stopped).value
    if after.tier is None:
        pages = SpentTierPages(cluster)
        for name, spent in pages.found([log_name]).items():
            pages.free(name, spent)
    facts = {"log": log_name, "table": tier.table_url, "is_forgotten": after.tier is None}
    return noted(cluster, Report("offload", facts, {"stopped": 1}), began_ms)


def accept_changes(cluster: Cluster, log_name: str, *, dry_run: bool = False) -> Report:
    """Take the rows of the log as its table has them now.

    Raises:
        NoSuchLedgerError: no such log.
        InvalidRequestError: the log has no table.
        TableChangedError: an offset is there twice, or it is another table.
    """
    began_ms = environment.now_ms()
    log = cluster.log(log_name).value
    tier = _tier_of(log)
    view = table_view(tier.table_url, tier.columns)
    if view.snapshot.table_id != tier.table_id:
        raise InvalidRequestError(
            f"another table is at the place of the table of log {log_name!r}",
            hint="put the former table back",
        )
    pages = cluster.logs.tier_pages(log_name)
    missing, windows = list(tier.missing), 0
    segments = list[tuple[TierSegment, DigestsPage | None]]()
    for segment in pages.every_segment(tier):
        if segment.end <= log.first_offset:
            break
        page, changed = digests_there(view, pages.digests(segment.digests), missing)
        windows += changed
        segments.insert(0, (segment, page if changed else None))
    gaps = tuple(missing)
    lost = sum(end - begin for begin, end in gaps) - sum(b - a for a, b in tier.missing)
    facts = {"log": log_name, "table": tier.table_url, "windows": windows, "missing": lost}
    if dry_run:
        return Report("offload", facts)

    def accepted(record: LogRecord | None) -> LogRecord:
        if record is None:
            raise MetadataVersionError(f"log {log_name!r} was deleted meanwhile")
        offloading.require_seen(record.still_of(log.generation), tier)
        named = [  # pages are made after the record was read that will name them
            segment if page is None else with_page(cluster, log, segment, page)
            for segment, page in segments
        ]
        return offloading.accepted(record, tier, tuple(named), gaps, view.version)

    cluster.logs.update(log_name, accepted)
    done = {"windows": windows, "offsets given up": lost}
    return noted(cluster, Report("offload", facts, done), began_ms)


def with_page(
    cluster: Cluster, log: LogRecord, segment: TierSegment, page: DigestsPage
) -> TierSegment:
    """Store the digests of a segment on a new page; return the segment that names it."""
    name = layout.log_page_name(log.generation, environment.token())
    cluster.logs.tier_pages(log.name).make_digests(name, page)
    return offloading.with_digests(segment, name)


def _tier_of(log: LogRecord) -> Tier:
    if log.tier is None:
        raise InvalidRequestError(f"log {log.name!r} has no table", hint="nothing is to be done")
    return log.tier


def _is_all_in_ledgers(log: LogRecord) -> bool:
    """Whether the log can forget its table, perhaps after ledgers came back that wait."""
    return log.tier is not None and log.tier.released <= max(log.tier.begin, log.first_offset)


def _fence(cluster: Cluster, log: LogRecord, tier: Tier, copier: Copier) -> None:
    try:
        found = table_view(tier.table_url, tier.columns).snapshot
    except NoSuchTableError:
        return
    if found.table_id == tier.table_id:
        copier.fence(tier.table_url, application_of(cluster.cluster_id, log, tier.epoch))
