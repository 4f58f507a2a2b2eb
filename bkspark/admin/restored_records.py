"""Ways out of unreadable records: records that replace them, and logs without their last ledger."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from bkspark import environment
from bkspark.admin.bookies import places
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import storage
from bkspark.cluster import admission
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Versioned
from bkspark.errors import BookKeeperError, CorruptDataError, InvalidRequestError, NoSuchLedgerError
from bkspark.format import cluster as cluster_format
from bkspark.format import layout, strict_json, upkeep_records
from bkspark.format import recovery as recovery_format
from bkspark.format.cluster import BookieRecord, ClusterRecord, Cookie
from bkspark.format.recovery import LostBookie, StuckRecovery
from bkspark.format.upkeep_records import DamagedCopies
from bkspark.metadata.contract import MetadataStore
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM
from bkspark.protocol.log.cursor import CursorRecord
from bkspark.protocol.log.record import LogRecord, with_lost
from bkspark.storage.address import canonical, shown_url, split_store

# --- restored records ----------------------------------------------------------------------------
# Records replacing records set aside.


UNSEEN_IDS = 2**32
"""Ids skipped after the highest id seen, so no ledger id is used twice."""

_SET_ASIDE = b"bkspark: this record was set aside\n"


def _cursor(name: str, nonce: str) -> bytes:
    log, _, cursor = name.partition("/")
    return upkeep_records.encode_cursor(CursorRecord(log, cursor, 0, 0).deleted(), nonce)


def _gone(name: str, nonce: str) -> bytes:
    return upkeep_records.encode_gone(layout.parse_ledger_key(name), frozenset(), nonce)


def _stuck(name: str, nonce: str) -> bytes:
    reason = "the record of the last recovery was set aside"
    number = layout.parse_ledger_key(name)
    stuck = StuckRecovery(number, 1, None, (), reason, "recover it again", 0)
    return recovery_format.encode_stuck(stuck, nonce)


IN_PLACE: dict[str, Callable[[str, str], bytes]] = {
    "cursors": _cursor,
    "damaged": lambda name, nonce: upkeep_records.encode_damage(DamagedCopies(name), nonce),
    "gone": _gone,
    "ledgers": lambda _name, _nonce: _SET_ASIDE,
    "pages": lambda _name, _nonce: _SET_ASIDE,
    "lost": lambda name, nonce: recovery_format.encode_lost(LostBookie(name, ()), nonce),
    "recoveries": _stuck,
}
"""Makes the emptiest valid record, by kind of record; takes the last part of the key and a
nonce.
"""


def restored_log(cluster: Cluster, name: str) -> LogRecord:
    """Return a deleted log whose ledgers never count as garbage.

    The new generation is higher than any generation of a log with so many ledgers, so no cursor has
    it.
    """
    before_id = cluster.new_ledger_id()
    empty = LogRecord.tombstone(name, DEFAULT_QUORUM)
    # A query's rows may be in the log and counted as written by its checkpoint.
    known = replace(empty.committed, transactions={"#stream/": 1}, strays_below=before_id)
    return replace(empty, committed=known, generation=min(before_id, 2**30) + 2**20)


def restored_counter(cluster: Cluster) -> int:
    """Return an id no ledger can have had yet."""
    ids = list(map(layout.parse_ledger_key, cluster.store.list(layout.LEDGERS_PREFIX)))
    pages = map(layout.parse_ledger_key, cluster.store.list(layout.GONE_PREFIX))
    ids += [(page + 1) * layout.GONE_PAGE_LENGTH for page in pages]
    return max(ids, default=0) + UNSEEN_IDS


def restored_cluster(store: MetadataStore, url: str) -> ClusterRecord:
    """Return the record of the cluster, from the cookie of its bookie at ``url``.

    Raises:
        InvalidRequestError: no bookie with a readable record is at ``url``.
        OutcomeUnknownError: the store gave no definite answer.
    """
    cookie = _cookie_at(
        canonical(url), "the place of a bookie is needed, to read the cluster's id from its cookie"
    )
    stored = store.get(layout.bookie_key(cookie.bookie_id))
    try:
        known = _bookie_of(cookie, stored.value) if stored else None
    except CorruptDataError:
        known = None
    if known is None or known.incarnation != cookie.incarnation:
        raise InvalidRequestError(
            f"{shown_url(canonical(url))} is not a bookie of the cluster at {shown_url(store.uri)}",
            hint="give the place of a bookie whose metadata record can be read",
        )
    risk = admission.storage_risk(store.uri, store.uri, is_accepted=True)
    return ClusterRecord(cookie.cluster_id, cookie.created_ms, risk, cookie.group)


def _bookie_of(cookie: Cookie, data: bytes) -> BookieRecord:
    """Return the bookie's record in ``data``, if it is of the cookie's cluster."""
    known = cluster_format.decode_bookie(cookie.bookie_id, data)
    strict_json.require_own(cookie.cluster_id, layout.bookie_key(cookie.bookie_id), data)
    return known


def restored_bookie(cluster: Cluster, bookie_id: str, url: str) -> BookieRecord:
    """Return the record of the bookie at ``url``, from its cookie; read-only at first.

    Raises:
        InvalidRequestError: ``url`` is no place of the bookie.
    """
    url = canonical(url)
    plain, store = split_store(url)
    cookie = _cookie_at(url, f"the place of bookie {bookie_id} is needed, to read its cookie")
    if (cookie.cluster_id, cookie.bookie_id) != (cluster.cluster_id, bookie_id):
        raise InvalidRequestError(
            f"{shown_url(url)} is not bookie {bookie_id} of this cluster",
            hint="give the URL of the place that has the bookie's COOKIE",
        )
    return BookieRecord(
        bookie_id,
        cookie.incarnation,
        plain,
        storage(url).failure_domain(),
        is_read_only=True,
        storage_risk=admission.storage_risk(url, cluster.store.uri, is_accepted=True),
        store=store,
    )


def _cookie_at(url: str, unless: str) -> Cookie:
    """Return the cookie at ``url``; if ``url`` is empty, raise an error that begins ``unless``."""
    if not url:
        raise InvalidRequestError(unless, hint="give --url URL")
    try:
        plain, store = split_store(url)
        found = places.cookie_at(BookieAddress("", "", "", plain, store=store))
        cookie = cluster_format.decode_cookie(found or b"")
    except BookKeeperError as error:
        raise InvalidRequestError(
            f"{shown_url(url)} has no cookie to read: {error.args[0]}"
        ) from error
    return cookie


# --- lost ends -----------------------------------------------------------------------------------
# Let a log go on after its last ledger has lost its metadata record.
#
# The rows of the ledger are lost, because only the record tells where they are and which count. One
# compare-and-set of the log's record gives the ledger a lost place (``protocol.log.lost``). Then
# older rows can be read, and new rows follow.


Ends = Mapping[int, Versioned[LogRecord]]
"""The record of the log that ends in a ledger, by the id of the ledger."""


def read_ends(cluster: Cluster) -> Ends:
    """Read all logs; unreadable ones are left out."""
    return {ledger_id: seen for seen in _readable_logs(cluster) for ledger_id in seen.value.tail}


def find_missing_ends(cluster: Cluster, ends: Ends) -> Iterator[int]:
    """Yield the id of each ledger without a record in which a log ends."""
    for ledger_id, seen in ends.items():
        with suppress(BookKeeperError):  # unreadable, and listed as that
            is_missing = cluster.ledgers.get(str(ledger_id)) is None
            if is_missing and cluster.logs.is_current(seen.value.name, seen):
                yield ledger_id


def log_in(ends: Ends, ledger_id: int) -> str:
    """Return the name of the log that ends in the ledger; empty without such a log."""
    return ends[ledger_id].value.name if ledger_id in ends else ""


def require_end_can_be_lost(cluster: Cluster, log_name: str, ledger_id: int) -> None:
    """Check that ``give_lost_place`` will find no obstacle.

    Raises:
        InvalidRequestError: an earlier ledger of the log's tail has to be closed first.
    """
    _with_lost_end(cluster, cluster.log(log_name).value, ledger_id)


def give_lost_place(cluster: Cluster, log_name: str, ledger_id: int) -> int:
    """Give the ledger a lost place in the log; return the offset at which the log goes on.

    Raises:
        InvalidRequestError: the ledger has a record again, or an earlier ledger of the log's tail
            has to be closed first.
        OutcomeUnknownError: the metadata store gave no definite answer; a second call is harmless.
    """

    def changed(record: LogRecord | None) -> LogRecord:
        if record is None:
            raise NoSuchLedgerError(f"there is no log {log_name!r}")
        if ledger_id not in record.tail:
            return record
        # Read after the log's record, which named the ledger: so the record was not freed.
        if cluster.ledgers.get(str(ledger_id)) is not None:
            raise InvalidRequestError(
                f"ledger {ledger_id} has a metadata record, so log {log_name!r} was not changed",
                hint="look at it again: `bkspark metadata damaged`",
            )
        return _with_lost_end(cluster, record, ledger_id).stamped(environment.now_ms())

    return cluster.logs.update(log_name, changed).value.end_offset


def _with_lost_end(cluster: Cluster, log: LogRecord, ledger_id: int) -> LogRecord:
    if ledger_id in log.tail[1:]:
        with suppress(NoSuchLedgerError):
            first = cluster.ledger(log.tail[0]).value
            log = log.with_closed(first) if first.state is LedgerState.CLOSED else log
    return with_lost(log, ledger_id)


def _readable_logs(cluster: Cluster) -> Iterator[Versioned[LogRecord]]:
    for name in cluster.log_names():
        with suppress(BookKeeperError):  # unreadable, and listed as that
            seen = cluster.logs.get(name)
            if seen is not None:
                yield seen
