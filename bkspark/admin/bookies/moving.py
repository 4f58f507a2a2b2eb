"""Change a bookie's URL in its record; no data is copied.

A bookie is identified by its cookie, so the new place must show the bookie's own cookie. The cookie
alone is not enough: a copied directory shows it too, and each of two copies would lack entries
accepted by the other. Writers with the old URL would get entries acknowledged by the old place,
while all other clients read the new place. So one of two conditions must hold: the old place surely
has no cookie or another bookie's cookie; or both places are the same storage, proved by creating a
file at one place and finding it at the other. If the old place does not answer, the move is
refused.

Writers with the old URL find no cookie or another cookie there, at the latest in the post-check
before each ack, and replace the bookie.

If a directory was copied during writes and its original is gone, the copy is storage rolled back in
time: initialise the bookie anew instead of moving it.
"""

from dataclasses import dataclass, replace

from bkspark.admin.bookies import places
from bkspark.admin.maintenance import Report, report_of
from bkspark.bookie.contract import BookieAddress, told_of
from bkspark.bookie.uri import storage
from bkspark.cluster import admission
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.log_messages import leave_out
from bkspark.errors import BookieUnavailableError, CorruptDataError, InvalidRequestError
from bkspark.format import cluster as cluster_format
from bkspark.format.cluster import BookieRecord
from bkspark.storage.address import shown_url, split_store, with_store


@dataclass(frozen=True, slots=True)
class _Move:
    """A bookie's record before and after the move."""

    before: BookieRecord
    after: BookieRecord


def move(
    cluster: Cluster,
    bookie_id: str,
    new_url: str,
    *,
    accepts_risk: bool = False,
    dry_run: bool = False,
    store: str = "",
) -> Report:
    """Register the place at ``new_url`` as the bookie's place; a repeated call changes nothing.

    Args:
        store: name of the object store that ``new_url`` is in; empty for the default of each
            process, whatever the store of the old place.
        accepts_risk: accept storage that may lose acknowledged entries; the record says so.

    Raises:
        InvalidRequestError: no such bookie; the new place does not show the bookie, belongs to
            another place of the cluster, or is unsuitable; the old place still shows the bookie;
            this machine does not know a store; or the record was changed meanwhile.
    """
    new_url = with_store(new_url, store)
    before = cluster.bookie(bookie_id).value
    if before.place == new_url:
        return report_of("move", before)
    after = _moved(cluster, before, new_url, accepts_risk=accepts_risk)
    plan = (f"move {bookie_id} from {shown_url(before.place)} to {shown_url(new_url)}",)
    if not dry_run:
        _store(cluster, _Move(before, after))
    return report_of("move", before, plan, is_done=not dry_run)


def _moved(
    cluster: Cluster, before: BookieRecord, new_url: str, *, accepts_risk: bool
) -> BookieRecord:
    """Return the record of the bookie at ``new_url``; raises the errors of ``move``."""
    known = cluster.bookies(leave_out)
    others = [record.place for name, record in known.items() if name != before.bookie_id]
    admission.require_outside(new_url, [cluster.store.uri, *others])
    risk = admission.storage_risk(new_url, cluster.store.uri, is_accepted=accepts_risk)
    url, store = split_store(new_url)
    after = replace(before, url=url, store=store, storage_risk=risk)
    _require_one_place(cluster.address(before), cluster.address(after))
    return replace(after, domain=storage(new_url).failure_domain())


def _require_one_place(old: BookieAddress, new: BookieAddress) -> None:
    """Return if the bookie is at ``new`` only; raise otherwise."""
    try:
        places.own_cookie(new)
    except BookieUnavailableError as error:
        raise InvalidRequestError(
            f"{shown_url(new.place)} is not {told_of(new.bookie_id, error.args[0])}",
            hint="move all of its storage there first; this command copies nothing",
        ) from error
    try:
        if _is_gone(old) or places.are_one(old, new):
            return
    except BookieUnavailableError as error:
        raise InvalidRequestError(
            f"it is not known whether bookie {old.bookie_id} is still at "
            f"{shown_url(old.place)}: {error.args[0]}",
            hint="unmount or remove the old storage, so that the bookie surely is not there "
            "any more",
        ) from error
    raise InvalidRequestError(
        f"bookie {old.bookie_id} is at {shown_url(old.place)} as well, in other storage: of two "
        "copies, each lacks what is written to the other only",
        hint="if both copies are complete and nothing writes to them, remove the COOKIE of "
        "the old copy; if the bookie was written to while it was copied, keep the old "
        "copy",
    )


def _is_gone(old: BookieAddress) -> bool:
    """Return whether the old place surely is not the bookie any more.

    Raises:
        BookieUnavailableError: no definite answer.
    """
    found = places.cookie_at(old)
    if found is None:
        return True
    try:
        cookie = cluster_format.decode_cookie(found)
    except CorruptDataError as error:
        raise BookieUnavailableError(f"it has an unreadable cookie: {error.args[0]}") from error
    there = (cookie.cluster_id, cookie.bookie_id, cookie.incarnation)
    return there != (old.cluster_id, old.bookie_id, old.incarnation)


def _store(cluster: Cluster, wanted: _Move) -> None:
    before, after = wanted.before, wanted.after

    def moved(now: BookieRecord | None) -> BookieRecord:
        if now is not None and (now.place, now.incarnation) == (before.place, before.incarnation):
            return replace(
                now,
                url=after.url,
                store=after.store,
                domain=after.domain,
                storage_risk=after.storage_risk,
            )
        raise InvalidRequestError(
            f"another command moved or initialised bookie {before.bookie_id} first",
            hint="`bkspark bookies` shows where it is now",
        )

    cluster.registrations.update(before.bookie_id, moved)
