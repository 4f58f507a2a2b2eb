"""Records replacing records set aside."""

from collections.abc import Callable
from dataclasses import replace

from bkspark.admin.bookies import places
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import storage
from bkspark.cluster import admission
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError, CorruptDataError, InvalidRequestError
from bkspark.format import cluster as cluster_format
from bkspark.format import cookie as cookie_format
from bkspark.format import cursor_record, damage_record, gone_record, layout
from bkspark.format import recovery as recovery_format
from bkspark.format.cluster import BookieRecord, ClusterRecord
from bkspark.format.damage_record import DamagedCopies
from bkspark.format.recovery import LostBookie, StuckRecovery
from bkspark.metadata.contract import MetadataStore
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM
from bkspark.protocol.log.cursor import CursorRecord
from bkspark.protocol.log.record import LogRecord
from bkspark.storage.address import canonical
from bkspark.storage.shown import shown_url

UNSEEN_IDS = 2**32
"""Ids skipped after the highest id seen, so no ledger id is used twice."""

_SET_ASIDE = b"bkspark: this record was set aside\n"


def _cursor(name: str, nonce: str) -> bytes:
    log, _, cursor = name.partition("/")
    return cursor_record.encode(CursorRecord(log, cursor, 0, 0).deleted(), nonce)


def _gone(name: str, nonce: str) -> bytes:
    return gone_record.encode(layout.parse_ledger_key(name), frozenset(), nonce)


def _stuck(name: str, nonce: str) -> bytes:
    reason = "the record of the last recovery was set aside"
    number = layout.parse_ledger_key(name)
    stuck = StuckRecovery(number, 1, None, (), reason, "recover it again", 0)
    return recovery_format.encode_stuck(stuck, nonce)


IN_PLACE: dict[str, Callable[[str, str], bytes]] = {
    "cursors": _cursor,
    "damaged": lambda name, nonce: damage_record.encode(DamagedCopies(name), nonce),
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
        known = cluster_format.decode_bookie(cookie.bookie_id, stored.value) if stored else None
    except CorruptDataError:
        known = None
    if known is None or known.incarnation != cookie.incarnation:
        raise InvalidRequestError(
            f"{shown_url(canonical(url))} is not a bookie of the cluster at {shown_url(store.uri)}",
            hint="give the place of a bookie whose metadata record can be read",
        )
    risk = admission.storage_risk(store.uri, store.uri, is_accepted=True)
    return ClusterRecord(cookie.cluster_id, cookie.created_ms, risk, cookie.group)


def restored_bookie(cluster: Cluster, bookie_id: str, url: str) -> BookieRecord:
    """Return the record of the bookie at ``url``, from its cookie; read-only at first.

    Raises:
        InvalidRequestError: ``url`` is no place of the bookie.
    """
    url = canonical(url)
    cookie = _cookie_at(url, f"the place of bookie {bookie_id} is needed, to read its cookie")
    if (cookie.cluster_id, cookie.bookie_id) != (cluster.cluster_id, bookie_id):
        raise InvalidRequestError(
            f"{shown_url(url)} is not bookie {bookie_id} of this cluster",
            hint="give the URL of the place that has the bookie's COOKIE",
        )
    return BookieRecord(
        bookie_id,
        cookie.incarnation,
        url,
        storage(url).failure_domain(),
        is_read_only=True,
        storage_risk=admission.storage_risk(url, cluster.store.uri, is_accepted=True),
    )


def _cookie_at(url: str, unless: str) -> cookie_format.Cookie:
    """Return the cookie at ``url``; if ``url`` is empty, raise an error that begins ``unless``."""
    if not url:
        raise InvalidRequestError(unless, hint="give --url URL")
    try:
        found = places.cookie_at(BookieAddress("", "", "", url))
        cookie = cookie_format.decode(found or b"")
    except BookKeeperError as error:
        raise InvalidRequestError(
            f"{shown_url(url)} has no cookie to read: {error.args[0]}"
        ) from error
    return cookie
