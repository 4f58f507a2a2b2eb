"""Records replacing records set aside."""

from collections.abc import Callable
from dataclasses import replace

from bkspark.admin.bookies import places
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import storage
from bkspark.cluster import admission
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.format import cookie as cookie_format
from bkspark.format import cursor_record, damage_record, gone_record, layout
from bkspark.format import recovery as recovery_format
from bkspark.format.cluster import BookieRecord
from bkspark.format.damage_record import DamagedCopies
from bkspark.format.recovery import LostBookie, StuckRecovery
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


def restored_bookie(cluster: Cluster, bookie_id: str, url: str) -> BookieRecord:
    """Return the record of the bookie at ``url``, from its cookie; read-only at first.

    Raises:
        InvalidRequestError: ``url`` is no place of the bookie.
    """
    if not url:
        raise InvalidRequestError(
            f"where bookie {bookie_id} is must be said", hint="give --url URL"
        )
    url = canonical(url)
    shown = shown_url(url)
    try:
        found = places.cookie_at(BookieAddress(cluster.cluster_id, bookie_id, "", url))
        cookie = None if found is None else cookie_format.decode(found)
    except BookKeeperError as error:
        raise InvalidRequestError(f"{shown} has no cookie to read: {error.args[0]}") from error
    whose = (cluster.cluster_id, bookie_id)
    if cookie is None or (cookie.cluster_id, cookie.bookie_id) != whose:
        raise InvalidRequestError(
            f"{shown} is not bookie {bookie_id} of this cluster",
            hint="give the place where its COOKIE is",
        )
    return BookieRecord(
        bookie_id,
        cookie.incarnation,
        url,
        storage(url).failure_domain(),
        is_read_only=True,
        storage_risk=admission.storage_risk(url, cluster.store.uri, is_accepted=True),
    )
