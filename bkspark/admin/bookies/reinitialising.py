"""Initialise a bookie anew under its own id after the loss of all its data.

The bookie's place gets a cookie with a new incarnation. Ledgers name bookies by id and incarnation,
so for earlier ledgers the bookie is a stranger: clients do not ask it for earlier entries, and its
missing data proves nothing (RB-09, RB-10). New ledgers use the bookie normally.

The record is stored first, the cookie afterwards. In between the place is no bookie, as before, so
no client uses it. A repeated call after a crash overwrites the record with a newer incarnation. In
the opposite order, a cookie found at the place could belong to an old disk still named by ledgers.
"""

import os
from collections.abc import Callable
from dataclasses import replace

from bkspark import environment
from bkspark.admin.bookies import places
from bkspark.admin.maintenance import Report, report_of
from bkspark.admin.views import all_ledgers
from bkspark.bookie.posix_place import domain_of, path_of
from bkspark.bookie.uri import storage
from bkspark.cluster import admission
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import cluster as cluster_format
from bkspark.format.cluster import BookieRecord, Cookie
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.storage.address import shown_url


def reinit(
    cluster: Cluster,
    bookie_id: str,
    *,
    accepts_risk: bool = False,
    makes_folder: bool = False,
    dry_run: bool = False,
) -> Report:
    """Initialise a bookie with an empty place anew, with an unused incarnation.

    Args:
        accepts_risk: accept storage that may lose acknowledged entries, even if the old storage was
            safe.
        makes_folder: accept a place whose disk seems not mounted.

    Raises:
        InvalidRequestError: no such bookie; or its place has a cookie, has other files, is
            unsuitable, is missing, or does not answer (nothing was changed); or another client
            changed the record meanwhile.
    """
    before = cluster.bookie(bookie_id).value
    _require_wiped(cluster, before)
    if not makes_folder:
        _require_mounted(cluster, before)
    place = storage(before.place)
    is_accepted = accepts_risk or bool(before.storage_risk)
    risk = admission.storage_risk(before.url, cluster.store.uri, is_accepted=is_accepted)
    after = replace(
        before,
        incarnation=environment.token(),
        domain=place.failure_domain(),
        storage_risk=risk,
        is_full=False,
    )
    plan = _plan(cluster, before, after)
    if dry_run:
        return report_of("reinit", before, plan)
    cookie = Cookie(
        cluster.cluster_id, bookie_id, after.incarnation, environment.now_ms(), cluster.group
    )
    cluster.registrations.update(bookie_id, _instead_of(before, after))
    place.format(cluster_format.encode_cookie(cookie))
    if cluster.bookie(bookie_id).value.incarnation != after.incarnation:
        raise _changed(bookie_id)
    return report_of("reinit", after, plan, is_done=True)


def naming(cluster: Cluster, bookie_id: str) -> list[LedgerMetadata]:
    """Return the ledgers naming a bookie in any incarnation, except deleted ledgers."""
    return [
        ledger
        for ledger in all_ledgers(cluster, None)
        if ledger.state is not LedgerState.DELETING and Locations(ledger).names_bookie((bookie_id,))
    ]


def _plan(cluster: Cluster, before: BookieRecord, after: BookieRecord) -> tuple[str, ...]:
    bookie_name, count = before.bookie_id, len(naming(cluster, before.bookie_id))
    ledgers = "1 ledger names" if count == 1 else f"{count:,} ledgers name"
    elsewhere = ""
    if before.domain != after.domain:
        elsewhere = f"; its place is on {after.domain} now, and was on {before.domain}"
    return (
        f"initialise {bookie_name} again at {shown_url(before.place)}, in place of incarnation "
        f"{before.incarnation}{elsewhere}",
        f"count its former data as lost, which {ledgers}",
    )


def _require_wiped(cluster: Cluster, record: BookieRecord) -> None:
    shown, address = shown_url(record.place), cluster.address(record)
    try:
        found = places.cookie_at(address)
        if found is None:
            place = storage(record.place)
            places.ask(address, lambda: place.require_suitable(None, cluster.group))
    except BookieUnavailableError as error:
        raise InvalidRequestError(
            f"it is not known whether {shown} is empty: {error.args[0]}",
            hint="repair its disk; if the bookie will never come back, declare it lost "
            f"(`bkspark bookie lost {record.bookie_id}`)",
        ) from error
    if found is not None:
        raise InvalidRequestError(
            f"{shown} has a cookie: it still is a bookie, and was not wiped",
            hint="to give up the bookie and its data, empty its directory first",
        )


def _require_mounted(cluster: Cluster, record: BookieRecord) -> None:
    """Refuse a place whose disk seems not mounted: the bookie would be on the root disk."""
    if not record.url.startswith("file://"):
        return
    path = path_of(record.url)
    try:
        problem = places.ask(cluster.address(record), lambda: _why_unmounted(path, record.domain))
    except OSError as error:
        problem = error.strerror or "its folder cannot be looked up"
    if problem:
        raise InvalidRequestError(
            f"{shown_url(record.url)}, the place of {record.bookie_id}, {problem}",
            hint="mount its disk first; to make the bookie there nevertheless, give "
            "`--make-folder`",
        )


def _why_unmounted(path: str, domain: str) -> str:
    """Return why the disk at ``path`` seems not mounted; empty if it seems mounted."""
    if not os.path.isdir(path):
        return "is missing"
    root = domain_of(os.stat("/").st_dev)
    if root == domain_of(os.stat(path).st_dev) != domain:
        return "is on the root disk, and was on another"
    return ""


def _instead_of(
    before: BookieRecord, after: BookieRecord
) -> Callable[[BookieRecord | None], BookieRecord]:
    def changed(now: BookieRecord | None) -> BookieRecord:
        if now is None or (now.place, now.incarnation) != (before.place, before.incarnation):
            raise _changed(before.bookie_id)
        return replace(
            now,
            incarnation=after.incarnation,
            domain=after.domain,
            storage_risk=after.storage_risk,
            is_full=False,
        )

    return changed


def _changed(bookie_id: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"another command moved or initialised bookie {bookie_id} first",
        hint="`bkspark bookies` shows what it is now",
    )
