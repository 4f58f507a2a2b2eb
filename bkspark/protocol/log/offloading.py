"""The changes of a log's tier, each from one version of the log's record to the next.

Rule 1. The record names the offsets of a copy before the copy begins: the *intent*. Every offload
that finds an intent works on the same offsets. Only ``finished`` and ``fenced`` end an intent. So
two offloads never copy the same offsets in two different commits.

Rule 2. A segment is recorded after its rows were read back from the table, and no ledger leaves the
list before its offsets are in segments. The table's transactions, versions and metrics prove
nothing.

Rule 3. Ledgers leave the list (``freed``) and are deleted (``released``) in two steps, each after a
look at the newest version of the table. In between they wait, and ``taken_back`` puts them on the
list again. So a commit that the table loses after it was verified costs no row.

Rule 4. Each change names the epoch that it belongs to. An offload of an older epoch, of an older
generation, or of a deleted log changes nothing. What was seen or fenced in a table counts for the
table at that address only: the table may move within an epoch.

Rule 5. What a truncation has hidden is not copied, and needs no look: it is not in the log.
"""

from dataclasses import replace

from bkspark.errors import InvalidRequestError, MetadataVersionError
from bkspark.protocol.log import ledger_list
from bkspark.protocol.log.ledger_list import LOST_ENTRIES
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import (
    FreedLedgers,
    Intent,
    TableVersion,
    Tier,
    TierSegment,
    TierTable,
)


def attached(
    log: LogRecord, table_url: str, table_id: str, epoch: str, intent: Intent
) -> LogRecord:
    """Return the log with a tier that begins where the log does, and its first intent.

    If the log has a tier of this epoch already, the log stays unchanged.

    Raises:
        MetadataVersionError: the log has another tier.
        InvalidRequestError: the offsets of the intent cannot be copied.
    """
    if log.tier is not None:
        tier_of(log, epoch)
        return log
    begin = log.stretches[0].first_offset if log.stretches else log.end_offset
    table = TierTable(table_url, table_id, TableVersion(intent.since_version))
    tier = Tier(table, epoch, begin=begin, freed=begin, copied=begin, of_freed=FreedLedgers(begin))
    return with_intent(log.with_tier(tier), epoch, intent)


def with_intent(log: LogRecord, epoch: str, intent: Intent) -> LogRecord:
    """Return the log with ``intent``, unless an intent is there: then the log stays unchanged.

    Raises:
        MetadataVersionError: the epoch has ended, or the intent begins elsewhere than the log's
            uncopied offsets.
        InvalidRequestError: the intent does not end where a closed ledger does, or a ledger in it
            is lost.
    """
    tier = tier_of(log, epoch)
    if tier.intent is not None:
        return log
    if intent.begin != next_begin(log):
        raise MetadataVersionError(
            f"log {log.name!r} was offloaded or truncated meanwhile, up to offset "
            f"{next_begin(log)}",
            hint="nothing was copied; run the command again",
        )
    if not is_border(log, intent.end):
        raise InvalidRequestError(
            f"offset {intent.end} of log {log.name} is not the end of a closed ledger"
        )
    if any(True for _ in log.lost_in(intent.begin, intent.end)):
        raise InvalidRequestError(f"log {log.name} has lost rows before offset {intent.end}")
    return log.with_tier(replace(tier, intent=intent))


def next_begin(log: LogRecord) -> int:
    """Return the first offset of the log that no segment has."""
    copied = 0 if log.tier is None else log.tier.copied
    return max(copied, log.first_offset)


def is_border(log: LogRecord, offset: int) -> bool:
    """Whether a closed ledger ends at ``offset``; reads one page per level."""
    return any(one.end_offset == offset for one in log.ledgers_in(offset - 1, offset))


def finished(
    log: LogRecord,
    epoch: str,
    attempt: str,
    segment: TierSegment,
    table: TierTable,
) -> LogRecord:
    """Return the log with the intent's rows recorded as ``segment`` (rule 2).

    If the intent was finished already, the log stays unchanged. A segment that a truncation has
    hidden meanwhile is forgotten.

    Args:
        table: the table where the rows were found.

    Raises:
        MetadataVersionError: the epoch has ended, or the table was moved.
        InvalidRequestError: the segment is not the intent's.
    """
    tier = tier_of(log, epoch, table.url)
    intent = tier.intent
    if intent is None or intent.attempt != attempt:
        return log
    is_clipped = intent.begin < segment.begin <= log.first_offset
    if segment.end != intent.end or not (segment.begin == intent.begin or is_clipped):
        raise InvalidRequestError(
            f"offsets {segment.begin} to {segment.end - 1} are not those that log {log.name} copies"
        )
    after = replace(
        tier,
        copied=intent.end,
        intent=None,
        segments=(*tier.segments, segment),
        table=table,
    )
    return log.with_tier(after.hidden_below(log.first_offset))


def fenced(log: LogRecord, epoch: str, new_epoch: str) -> LogRecord:
    """Return the log in a new epoch, without an intent; its segments stay.

    Call this after the table has fenced the old epoch, or where no offload of it can write.

    Raises:
        MetadataVersionError: the epoch has ended.
    """
    return log.with_tier(replace(tier_of(log, epoch), epoch=new_epoch, intent=None))


def freed(log: LogRecord, epoch: str, end: int, verified: TableVersion, now_ms: int) -> LogRecord:
    """Return the log whose ledgers below ``end`` left its list for the table (rule 3).

    Call this after a look has found the rows below ``end`` in this version of the table.

    If ledgers wait already, or have left the list, the log stays unchanged.

    Raises:
        MetadataVersionError: the epoch has ended.
        InvalidRequestError: no segment ends at ``end``.
    """
    tier = tier_of(log, epoch)
    if tier.of_freed.waiting or end <= max(tier.freed, log.first_offset):
        return log
    if all(one.end != end for one in tier.segments) or not is_border(log, end):
        raise InvalidRequestError(f"no segment of log {log.name} ends at offset {end}")
    stretches = ledger_list.opened_at(log.stretches, end, log.source)
    waiting = tuple(one for one in stretches if one.end_offset <= end)
    listed = log.listed.with_stretches(stretches[len(waiting) :])
    version = listed.first_version + ledger_list.versions_of(waiting)
    of_freed = FreedLedgers(waiting[0].first_offset, now_ms, waiting, waiting[-1].last_ms)
    after = replace(
        tier,
        freed=end,
        of_freed=of_freed,
        table=replace(tier.table, verified=verified),
        length_bytes=tier.length_bytes + sum(one.length_bytes for one in waiting),
    )
    return replace(log, listed=replace(listed, first_version=version, tier=after))


def released(log: LogRecord, epoch: str, end: int, verified: TableVersion) -> LogRecord:
    """Return the log whose waiting ledgers are to be deleted (rule 3).

    Call this after a second look has found the rows below ``end`` in this version of the table.
    If other ledgers wait, or none, the log stays unchanged.

    Raises:
        MetadataVersionError: the epoch has ended.
    """
    tier = tier_of(log, epoch)
    if tier.freed != end or not tier.of_freed.waiting:
        return log
    after = replace(
        tier,
        of_freed=replace(tier.of_freed, released=tier.freed, waiting=()),
        table=replace(tier.table, verified=verified),
    )
    dropped = log.dropped.with_more_to_delete(tier.waiting_ids, tier.waiting_pages)
    return replace(log, dropped=dropped, listed=replace(log.listed, tier=after))


def taken_back(log: LogRecord, epoch: str) -> LogRecord:
    """Return the log with the waiting ledgers on its list again, at their places (rule 3).

    Their segments are forgotten, and an intent ends: a look did not find their rows.

    Raises:
        MetadataVersionError: the epoch has ended.
    """
    tier = tier_of(log, epoch)
    waiting = tier.of_freed.waiting
    if not waiting:
        return log
    begin = tier.released
    listed = log.listed.with_stretches((*waiting, *log.stretches))
    version = listed.first_version - ledger_list.versions_of(waiting)
    after = replace(
        tier,
        freed=begin,
        copied=begin,
        of_freed=FreedLedgers(begin, tier.of_freed.ms),
        segments=tuple(one for one in tier.segments if one.end <= begin),
        missing=tuple(one for one in tier.missing if one[1] <= begin),
        length_bytes=tier.length_bytes - sum(one.length_bytes for one in waiting),
        intent=None,
    )
    return replace(log, listed=replace(listed, first_version=version, tier=after))


def forgotten(log: LogRecord, epoch: str) -> LogRecord:
    """Return the log without a tier, if all readable rows are in ledgers.

    Raises:
        MetadataVersionError: the epoch has ended.
        InvalidRequestError: some rows are only in the table.
    """
    tier = tier_of(log, epoch)
    if log.first_offset < tier.freed or tier.of_freed.waiting:
        raise InvalidRequestError(
            f"rows of log {log.name!r} are only in the table {tier.table_url}, up to offset "
            f"{tier.freed - 1}"
        )
    return log.with_tier(None)


def moved(log: LogRecord, seen: Tier, table_url: str, verified: TableVersion) -> LogRecord:
    """Return the log whose tier's table is at another URL.

    Call this after a look has found all rows of the tier there, in a table of the same id. The
    intent stays: the next offload appends its rows to the table there, unless they are there.

    Args:
        seen: the tier whose rows were looked at.

    Raises:
        MetadataVersionError: the tier is another one now.
    """
    require_seen(log, seen)
    table = replace(seen.table, url=table_url, verified=verified)
    return log.with_tier(replace(seen, table=table))


def verified_again(log: LogRecord, epoch: str, verified: TableVersion) -> LogRecord:
    """Return the log whose tier's rows were all found unchanged in this version of the table.

    Raises:
        MetadataVersionError: the epoch has ended.
    """
    tier = tier_of(log, epoch)
    table = replace(tier.table, verified=verified)
    return log.with_tier(replace(tier, table=table))


def accepted(
    log: LogRecord,
    seen: Tier,
    segments: tuple[TierSegment, ...],
    missing: tuple[tuple[int, int], ...],
    verified: TableVersion,
) -> LogRecord:
    """Return the log that takes the rows as this version of the table has them.

    Args:
        seen: the tier whose rows were looked at.
        segments: all its segments, with digests of the rows that are there now.
        missing: the offsets that are not there.

    Raises:
        MetadataVersionError: the tier is another one now.
    """
    require_seen(log, seen)
    table = replace(seen.table, verified=verified)
    return log.with_tier(replace(seen, table=table, segments=segments, older="", missing=missing))


def require_seen(log: LogRecord, seen: Tier) -> None:
    """Check that the log's tier is the one that was looked at.

    Raises:
        MetadataVersionError: it is another one now.
    """
    if log.tier != seen:
        raise MetadataVersionError(
            f"log {log.name!r} was offloaded, truncated or freed meanwhile",
            hint="nothing was changed; run the command again",
        )


def tier_of(log: LogRecord, epoch: str, table_url: str = "") -> Tier:
    """Return the log's tier, if it is of this epoch (rule 4).

    Args:
        table_url: where the table must be; empty for anywhere.

    Raises:
        MetadataVersionError: it is not.
    """
    if log.tier is None or log.tier.epoch != epoch:
        raise MetadataVersionError(
            f"the offload of log {log.name!r} was ended by another command, or the log was "
            "overwritten or deleted",
            hint="nothing was changed; run the command again if it is still wanted",
        )
    if table_url and log.tier.table_url != table_url:
        raise MetadataVersionError(
            f"the table of log {log.name!r} was moved by another command",
            hint="nothing was changed; run the command again",
        )
    return log.tier


def eligible_end(
    log: LogRecord,
    *,
    closed_before_ms: int | None = None,
    keep_bytes: int = 0,
    most_bytes: int = 0,
    upto: int | None = None,
) -> int:
    """Return the end of the offsets that the next intent may have; its begin if there are none.

    Reads the pages of the ledgers in it.

    Args:
        closed_before_ms: only ledgers closed before; None for all.
        keep_bytes: payload that stays in ledgers only.
        most_bytes: payload of one segment, which has at least one ledger; 0 for no limit.
        upto: no later ledger; None for the log's end.
    """
    begin = end = next_begin(log)
    behind, taken = log.bytes_in(begin, log.end_offset), 0
    for place in log.ledgers_in(begin, log.end_offset):
        behind -= place.length_bytes
        taken += place.length_bytes
        is_young = closed_before_ms is not None and not 0 < place.closed_ms < closed_before_ms
        is_full = most_bytes and end > begin and taken > most_bytes
        is_later = upto is not None and place.end_offset > upto
        is_kept = is_young or is_later or behind < keep_bytes
        if place.entry_count >= LOST_ENTRIES or is_kept or is_full:
            break
        end = place.end_offset
    return end


def with_digests(segment: TierSegment, name: str) -> TierSegment:
    """Return the segment with the page of digests of this name."""
    return replace(segment, digests=name)


def freeable_end(log: LogRecord, copied_before_ms: int) -> int:
    """Return up to which offset the log's list may lose ledgers; ``freed`` if nothing is due.

    Args:
        copied_before_ms: segments copied later stay.
    """
    if log.tier is None or log.tier.of_freed.waiting:
        return log.freed
    end = log.freed
    for segment in log.tier.segments:
        if segment.begin >= end and segment.copied_ms > copied_before_ms:
            break
        end = max(end, segment.end)
    return end


def segment_of(log: LogRecord, begin: int, end: int, digests: str, now_ms: int) -> TierSegment:
    """Return the segment of the offsets ``[begin, end)``, which are in closed ledgers."""
    places = tuple(log.ledgers_in(begin, end))
    closed = [place.closed_ms for place in places]
    return TierSegment(
        *(begin, end, log.bytes_in(begin, end), now_ms, digests),
        closed_ms=max(closed) if closed and all(closed) else 0,
        first_ms=places[0].first_ms if places else 0,
        last_ms=places[-1].last_ms if places else 0,
    )
