"""List unreadable metadata records, their dependents, and the way out; set records aside.

Rule 1. An unreadable record is unknown, never absent. Only an operator's command makes the record
absent.

Rule 2. Setting a record aside deletes no data. The record's bytes are first stored durably under
another key. Copies of rows on bookies stay: a collection frees no files because of the missing
record.

Rule 3. The record is changed by compare-and-set from the unreadable bytes. A record stored by
another client meanwhile stays.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from bkspark import environment
from bkspark.admin import restored_records
from bkspark.admin.restored_records import (
    IN_PLACE,
    restored_bookie,
    restored_cluster,
    restored_counter,
    restored_log,
)
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.log_messages import tell
from bkspark.cluster.records import UNREAD
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    InvalidRequestError,
    MetadataVersionError,
)
from bkspark.format import cluster as cluster_format
from bkspark.format import (
    layout,
    ledger_metadata,
    log_page,
    log_record,
    strict_json,
    tier_record,
    upkeep_records,
)
from bkspark.format import recovery as recovery_format
from bkspark.metadata import uri as metadata_stores
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.protocol.log.ledger_list import LogPage, PageSource, pages_of
from bkspark.protocol.log.record import LogRecord
from bkspark.storage.address import shown_url

# --- damaged pages -------------------------------------------------------------------------------
# Describe an unreadable page of a log, and find out whether the log names the page.


_BRING_BACK = "bring it back from a copy of the metadata store"


@dataclass(frozen=True, slots=True)
class PageDescription:
    """What depends on an unreadable page, and what to do.

    Attributes:
        is_unnamed: whether the log surely does not name the page.
    """

    rests: str
    way_out: str
    is_unnamed: bool = False


def describe_page(cluster: Cluster, log_name: str, name: str) -> PageDescription:
    """Describe the unreadable page ``name`` of a log by the log's record and its other pages."""
    unsure = PageDescription(
        "the older ledgers of the log",
        f"{_BRING_BACK}; once the other records of log {log_name} can be read, `bkspark metadata "
        "damaged` says more",
    )
    with suppress(BookKeeperError):  # the log's record is unreadable, and listed itself
        log = cluster.log(log_name).value
        page, is_sure = _found(pages_of(log.older), log.source, name)
        if page is not None:
            return PageDescription(
                f"offsets {page.first_offset} to {page.end_offset - 1} of log {log_name}",
                f"{_BRING_BACK}, or give up all rows of log {log_name} up to the end of the page: "
                f"`bkspark log truncate {log_name} --before {page.end_offset}`",
            )
        page, is_dropped_sure = _found(log.dropped_pages, log.source, name)
        if page is not None:
            return PageDescription(
                f"which dropped ledgers of log {log_name} are freed", _BRING_BACK
            )
        if is_sure and is_dropped_sure:
            return _unnamed(log_name, name)
    with suppress(BookKeeperError):
        if cluster.logs.get(log_name) is None:
            return _unnamed(log_name, name)
    return unsure


def require_unnamed(cluster: Cluster, log_name: str, name: str) -> None:
    """Make sure that no record of the log names the page, now or later.

    The unchanged record is stored by compare-and-set: a client that made the page before then loses
    its own change.

    Raises:
        InvalidRequestError: the log may name the page.
        MetadataVersionError: another client has changed the log meanwhile.
    """
    seen = cluster.logs.get(log_name)
    if seen is None:
        return
    if not _is_unnamed(seen.value, name):
        raise InvalidRequestError(
            f"log {log_name} may name page {name}",
            hint="`bkspark metadata damaged` says what to do",
        )
    cluster.logs.replace(log_name, seen.value, seen)


def _is_unnamed(log: LogRecord, name: str) -> bool:
    pages = (*pages_of(log.older), *log.dropped_pages)
    return _found(pages, log.source, name) == (None, True)


def _unnamed(log_name: str, name: str) -> PageDescription:
    key = f"pages/{log_name}/{name}"
    return PageDescription(
        f"nothing: log {log_name} does not name the page",
        f"`bkspark metadata set-aside {key}`",
        is_unnamed=True,
    )


def _found(pages: Iterable[LogPage], source: PageSource, name: str) -> tuple[LogPage | None, bool]:
    """Return the reference to the page, if any of ``pages`` is or has it; and whether all others
    could be read.
    """
    is_sure = True
    for page in pages:
        if page.name == name:
            return page, True
        if page.may_have_pages:
            try:
                found, is_below_sure = _found(source.contents(page).pages, source, name)
            except UNREAD:
                found, is_below_sure = None, False
            if found is not None:
                return found, True
            is_sure = is_sure and is_below_sure
    return None, is_sure


# --- damaged records -----------------------------------------------------------------------------


logger = logging.getLogger(__name__)

_MISSING = "it is missing"
_WRITTEN_OVER = "nothing: the next run that notes something there replaces it"
_RESTS = {
    "bookies": "each ledger with copies on the bookie, and all commands that place or move copies",
    "counters": "each new ledger",
    "cursors": "the next offset of a reader of the log, and what retention keeps for the reader",
    "damaged": "the list of damaged copies on the bookie; the next scrub finds them again",
    "gone": "whether files of deleted ledgers may be removed",
    "ledgers": "the rows of the ledger, and whether a bookie that it may name can be removed",
    "logs": "the order of the log's ledgers",
    "lost": "whether recoveries wait for the bookie",
    "pages": "the older ledgers of the log",
    "recoveries": "nothing: it says why a recovery could not close the ledger",
    "tierpages": "the checks of the log's rows that are in a table",
}
_NOTES = ("away", "leases", "open", "reports", "settled")
_TWO_LEVELS = ("cursors", "pages", "tierpages")
_REMOVED = (layout.LEDGERS_PREFIX, layout.LOG_PAGES_PREFIX)


@dataclass(frozen=True, slots=True)
class DamagedRecord:
    """An unreadable record.

    Attributes:
        key: its key in the metadata store.
        reason: the fault, in one line.
        rests: what depends on the record.
        way_out: what to do.
    """

    key: str
    reason: str
    rests: str
    way_out: str
    can_be_set_aside: bool = field(default=True)


def find_damaged(cluster: Cluster) -> Iterator[DamagedRecord]:
    """Yield each unreadable record; reads all records.

    Raises:
        OutcomeUnknownError: the metadata store does not list its records.
    """
    ends = restored_records.read_ends(cluster)
    for key in _all_keys(cluster):
        reason = _reason(cluster, key)
        if reason:
            yield _described(cluster, key, reason, restored_records.log_in(ends, _ledger_id(key)))
    for ledger_id in restored_records.find_missing_ends(cluster, ends):
        log = restored_records.log_in(ends, ledger_id)
        yield _described(cluster, layout.ledger_key(ledger_id), _MISSING, log)


def look_at(cluster: Cluster, key: str) -> DamagedRecord | None:
    """Return what ``find_damaged`` says of this record; None if the record can stay."""
    if not _is_key(key):
        return None
    number = _ledger_id(key)
    log = (
        restored_records.log_in(restored_records.read_ends(cluster), number) if number >= 0 else ""
    )
    is_missing_end = bool(log) and cluster.store.get(key) is None
    reason = _MISSING if is_missing_end else _reason(cluster, key)
    return _described(cluster, key, reason, log) if reason else None


def set_aside(cluster: Cluster, key: str, *, url: str = "") -> str:
    """Move an unreadable record's bytes to another key and replace or delete the record.

    A log that ends in the ledger of the record goes on after the ledger (``lost_ends``).

    Args:
        url: the bookie's URL, for a bookie record: the record is restored from the cookie there.

    Returns:
        The key of the kept bytes.

    Raises:
        InvalidRequestError: the record is readable, missing, or cannot be replaced.
        MetadataVersionError: another client has changed the record meanwhile.
        OutcomeUnknownError: the store does not return the record's bytes, or gave no definite
            answer.
    """
    if not _is_key(key):
        raise _no_key(key)
    ledger_id = _ledger_id(key)
    log = (
        restored_records.log_in(restored_records.read_ends(cluster), ledger_id)
        if ledger_id >= 0
        else ""
    )
    if log:
        restored_records.require_end_can_be_lost(cluster, log, ledger_id)
    stored = cluster.store.get(key)
    if stored is not None:
        kept = _moved_aside(cluster, key, stored, url)
    elif log:
        kept = _marked_aside(cluster, key)
    else:
        raise InvalidRequestError(
            f"there is no metadata record {key!r}",
            hint="`bkspark metadata damaged` lists the unreadable records",
        )
    if log:
        end = restored_records.give_lost_place(cluster, log, ledger_id)
        tell(
            logger,
            "log %s continues at offset %d, after ledger %d, whose rows are lost",
            log,
            end,
            ledger_id,
        )
    return kept


def set_cluster_aside(metadata_uri: str, url: str) -> str:
    """Make the unreadable record of a cluster anew, from the cookie of the bookie at ``url``.

    Returns:
        The key of the kept bytes.

    Raises:
        InvalidRequestError: the record is readable or missing, or no registered bookie is at
            ``url``.
        MetadataVersionError: another client has changed the record meanwhile.
        OutcomeUnknownError: the store gave no definite answer; a second call is harmless.
    """
    store = metadata_stores.open_store(metadata_uri)
    try:
        stored = store.get(layout.CLUSTER_KEY)
        if stored is None or not _malformation("", layout.CLUSTER_KEY, stored.value):
            raise InvalidRequestError(
                f"the cluster record at {shown_url(store.uri)} "
                f"{'is missing' if stored is None else 'can be read'}, so it is not set aside"
            )
        record = restored_cluster(store, url)
        instead = cluster_format.encode_cluster(record, environment.token())
        return _exchanged(store, layout.CLUSTER_KEY, stored, instead)
    finally:
        store.close()


def _moved_aside(cluster: Cluster, key: str, stored: VersionedBytes, url: str) -> str:
    # The very bytes that are replaced are checked (rule 3).
    reason = _malformation(cluster.cluster_id, key, stored.value)
    if not reason:
        raise InvalidRequestError(
            f"metadata record {key!r} can be read, so it is not set aside",
            hint="`bkspark metadata damaged` lists the unreadable records",
        )
    found = _described(cluster, key, reason)
    if not found.can_be_set_aside:
        raise InvalidRequestError(f"metadata record {key!r} was not changed", hint=found.way_out)
    if _kind(key) == layout.LOG_PAGES_PREFIX:
        require_unnamed(cluster, *key.split("/")[1:])
    kept = _exchanged(cluster.store, key, stored, _replacement(cluster, key, url))
    if _kind(key) in _REMOVED:
        cluster.store.delete(key)  # the number of a ledger is never used again
    return kept


def _exchanged(store: MetadataStore, key: str, stored: VersionedBytes, instead: bytes) -> str:
    """Keep the record's bytes under another key, and store others; return that key."""
    kept = _new_key(key)
    store.put(kept, stored.value, None)  # rule 2
    try:
        store.put(key, instead, stored.version)  # rule 3
    except MetadataVersionError as error:
        raise MetadataVersionError(
            f"another client changed metadata record {key!r} first",
            hint="look at it again: `bkspark metadata damaged`",
        ) from error
    tell(logger, "metadata record %s was set aside; its bytes are %s", key, kept)
    return kept


def _marked_aside(cluster: Cluster, key: str) -> str:
    """Note that a missing record counts as set aside; return the note's key, or its bytes'."""
    for name in cluster.store.list(f"{layout.ASIDE_PREFIX}/{key}"):
        return f"{layout.ASIDE_PREFIX}/{key}/{name}"
    kept = _new_key(key)
    cluster.store.put(kept, b"bkspark: this record was missing\n", None)
    return kept


def _is_key(key: str) -> bool:
    """Return whether a record that can be set aside may have this key."""
    return bool(key.partition("/")[2]) and _kind(key) in {*_RESTS, *_NOTES}


def _ledger_id(key: str) -> int:
    """Return the id of the ledger whose record has this key; -1 for other keys."""
    if _kind(key) == layout.LEDGERS_PREFIX:
        with suppress(InvalidRequestError):  # a stray key, which the decoder reports
            return layout.parse_ledger_key(key.partition("/")[2])
    return -1


def _new_key(key: str) -> str:
    return f"{layout.ASIDE_PREFIX}/{key}/{environment.token(8)}"


def _kind(key: str) -> str:
    return key.partition("/")[0]


def _described(cluster: Cluster, key: str, reason: str, log: str = "") -> DamagedRecord:
    kind = _kind(key)
    back = "bring it back from a copy of the metadata store"
    aside = f"or `bkspark metadata set-aside {key}"
    if kind in _NOTES:
        return DamagedRecord(key, reason, _WRITTEN_OVER, "nothing needs to be done", False)
    if kind == layout.LOG_PAGES_PREFIX:
        return _described_page(cluster, key, reason)
    if kind == layout.TIER_PAGES_PREFIX:
        return DamagedRecord(key, reason, _RESTS[kind], back, False)
    if kind == layout.BOOKIES_PREFIX:
        aside += " --url URL`, which makes it again from the bookie's cookie"
    else:
        aside += "`"
    rests = _RESTS.get(kind, "all that needs it")
    if log:
        rests = (
            f"all of log {log}, which ends in the ledger: once it is set aside, the rows of the "
        )
        rests += "ledger are lost, and the log continues after them"
    return DamagedRecord(key, reason, rests, f"{back}, {aside}")


def _described_page(cluster: Cluster, key: str, reason: str) -> DamagedRecord:
    _, log, name = key.split("/")
    found = describe_page(cluster, log, name)
    return DamagedRecord(key, reason, found.rests, found.way_out, found.is_unnamed)


def _all_keys(cluster: Cluster) -> Iterator[str]:
    for kind in sorted({*_RESTS, *_NOTES}):
        names = cluster.log_names() if kind in _TWO_LEVELS else [""]
        for prefix in (f"{kind}/{name}".rstrip("/") for name in names):
            yield from (f"{prefix}/{name}" for name in cluster.store.list(prefix))


def _reason(cluster: Cluster, key: str) -> str:
    """Return the record's fault in one line; empty if readable or missing."""
    try:
        stored = cluster.store.get(key)
    except UNREAD as error:
        return str(error.args[0])
    return "" if stored is None else _malformation(cluster.cluster_id, key, stored.value)


def _malformation(cluster_id: str, key: str, data: bytes) -> str:
    """Return the fault of ``data`` in one line; empty if decodable, and of the cluster if any."""
    try:
        _decoder(key)(data)
        if cluster_id:
            strict_json.require_own(cluster_id, key, data)
    except (CorruptDataError, InvalidRequestError) as error:
        return str(error.args[0])
    return ""


def _decoder(key: str) -> Callable[[bytes], object]:
    """Return the record's decoder.

    Raises:
        InvalidRequestError: no record has such a key.
    """
    kind, _, name = key.partition("/")
    by_name: dict[str, Callable[[str, bytes], object]] = {
        "away": recovery_format.decode_away,
        "bookies": cluster_format.decode_bookie,
        "damaged": upkeep_records.decode_damage,
        "leases": upkeep_records.decode_lease,
        "logs": log_record.decode,
        "lost": recovery_format.decode_lost,
        "reports": upkeep_records.decode_report,
        "settled": upkeep_records.decode_settled,
    }
    by_number: dict[str, Callable[[int, bytes], object]] = {
        "gone": upkeep_records.decode_gone,
        "ledgers": ledger_metadata.decode,
        "recoveries": recovery_format.decode_stuck,
    }
    by_key: dict[str, Callable[[str, bytes], object]] = {
        "counters": cluster_format.decode_counter,
        "open": upkeep_records.decode_sightings,
    }
    of_log: dict[str, Callable[[str, str, bytes], object]] = {
        "cursors": upkeep_records.decode_cursor,
        "pages": log_page.decode,
        "tierpages": tier_record.decode_any_page,
    }
    if key == layout.CLUSTER_KEY:
        return cluster_format.decode_cluster
    if kind in by_name:
        return partial(by_name[kind], name)
    if kind in by_number:
        return partial(by_number[kind], layout.parse_ledger_key(name))
    if kind in by_key:
        return partial(by_key[kind], key)
    log, slash, own = name.partition("/")
    if kind in of_log and slash:
        return partial(of_log[kind], log, own)
    raise _no_key(key)


def _no_key(key: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{key[:80]!r} is not the key of a metadata record that can be set aside",
        hint="`bkspark metadata damaged` lists records that cannot be read, such as logs/NAME",
    )


def _replacement(cluster: Cluster, key: str, url: str) -> bytes:
    """Return the bytes replacing the record."""
    kind, _, name = key.partition("/")
    if url and kind != layout.BOOKIES_PREFIX:
        raise InvalidRequestError(
            f"metadata record {key!r} is not of a bookie",
            hint="leave --url out",
        )
    nonce = environment.token(8)
    if kind == layout.BOOKIES_PREFIX:
        data = cluster_format.encode_bookie(restored_bookie(cluster, name, url), nonce)
    elif kind == layout.LOGS_PREFIX:
        data = log_record.encode(restored_log(cluster, name), nonce)
    elif kind == "counters":
        data = cluster_format.encode_counter(key, restored_counter(cluster), nonce)
    else:
        data = IN_PLACE[kind](name, nonce)
    if kind in _REMOVED:
        return data
    try:
        _decoder(key)(data)
    except BookKeeperError as error:
        raise InvalidRequestError(f"{key} was not changed: {error.args[0]}") from error
    return strict_json.of_cluster(cluster.cluster_id, key, data)
