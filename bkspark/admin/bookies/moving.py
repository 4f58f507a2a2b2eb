"""The same bookie at another place: its record says another URL, and nothing is copied.

What makes a bookie itself is its cookie, so the new place must show this very one. That is not
enough: a copy of a directory shows it too, and of two copies each would take what the other one
lacks. Writers who have the old URL would have entries acknowledged by the old place, while
everybody else looked for them at the new one. So the old place must be gone, which means that it
surely has no cookie, or another bookie's; or it must be the same storage, which is seen by making a
name at one and finding it at the other. A place that does not answer may be anything, and nothing
is moved.

Writers who have the old URL find nothing there, or another cookie, at the latest in the post-check
that each ack needs, and put another bookie in its place.

A directory that was copied while somebody wrote to it, and whose original is gone, is storage that
has gone back in time: it must be initialised anew, and not moved.
"""

from dataclasses import dataclass, replace

from bkspark.admin.bookies import places
from bkspark.admin.bookies.report import report_of
from bkspark.admin.maintenance import Report
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.messages import told_of
from bkspark.bookie.uri import storage
from bkspark.cluster import admission
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookieUnavailableError, CorruptDataError, InvalidRequestError
from bkspark.format import cookie as cookie_format
from bkspark.format.cluster import BookieRecord
from bkspark.storage.address import canonical
from bkspark.storage.shown import shown_url


@dataclass(frozen=True, slots=True)
class _Move:
    """A bookie, where it is by its record, and where it is to be."""

    before: BookieRecord
    after: BookieRecord


def move(
    cluster: Cluster,
    bookie_id: str,
    new_url: str,
    *,
    accepts_risk: bool = False,
    dry_run: bool = False,
) -> Report:
    """Register the place at ``new_url`` as where a bookie is from now on; again changes nothing.

    Args:
        accepts_risk: takes storage that might lose what it has; the record says so.

    Raises:
        InvalidRequestError: there is no such bookie; the new place is not it, is another place of
            the cluster or unsuitable; the old one still is it as well; or its record was changed
            meanwhile.
    """
    new_url = canonical(new_url)
    before = cluster.bookie(bookie_id).value
    if before.url == new_url:
        return report_of("move", before)
    others = [record.url for name, record in cluster.bookies().items() if name != bookie_id]
    admission.require_outside(new_url, [cluster.store.uri, *others])
    risk = admission.storage_risk(new_url, cluster.store.uri, is_accepted=accepts_risk)
    wanted = _Move(before, replace(before, url=new_url, storage_risk=risk))
    _require_one_place(cluster.address(wanted.before), cluster.address(wanted.after))
    after = replace(wanted.after, domain=storage(new_url).failure_domain())
    plan = (f"move {bookie_id} from {shown_url(before.url)} to {shown_url(new_url)}",)
    if not dry_run:
        _store(cluster, _Move(before, after))
    return report_of("move", before, plan, is_done=not dry_run)


def _require_one_place(old: BookieAddress, new: BookieAddress) -> None:
    """Return if the bookie is at ``new``, and nowhere else."""
    try:
        places.own_cookie(new)
    except BookieUnavailableError as error:
        raise InvalidRequestError(
            f"{shown_url(new.url)} is not {told_of(new.bookie_id, error.args[0])}",
            hint="bring its storage there first, whole; nothing is copied by this",
        ) from error
    try:
        if _is_gone(old) or places.are_one(old, new):
            return
    except BookieUnavailableError as error:
        raise InvalidRequestError(
            f"whether bookie {old.bookie_id} still is at {shown_url(old.url)} cannot be told: "
            f"{error.args[0]}",
            hint="unmount or remove it there, so that the place is surely not the bookie any more",
        ) from error
    raise InvalidRequestError(
        f"bookie {old.bookie_id} is at {shown_url(old.url)} as well, and that is another storage: "
        "of two copies each lacks what only the other one takes",
        hint="if both are whole and nobody writes to them, remove the COOKIE of the old one; if it "
        "was copied while somebody wrote, keep the old one",
    )


def _is_gone(old: BookieAddress) -> bool:
    """Whether the place surely is not the bookie any more.

    Raises:
        BookieUnavailableError: it cannot be told.
    """
    found = places.cookie_at(old)
    if found is None:
        return True
    try:
        cookie = cookie_format.decode(found)
    except CorruptDataError as error:
        raise BookieUnavailableError(f"it has an unreadable cookie: {error.args[0]}") from error
    there = (cookie.cluster_id, cookie.bookie_id, cookie.incarnation)
    return there != (old.cluster_id, old.bookie_id, old.incarnation)


def _store(cluster: Cluster, wanted: _Move) -> None:
    before, after = wanted.before, wanted.after

    def moved(now: BookieRecord | None) -> BookieRecord:
        if now is not None and (now.url, now.incarnation) == (before.url, before.incarnation):
            return replace(now, url=after.url, domain=after.domain, storage_risk=after.storage_risk)
        raise InvalidRequestError(
            f"bookie {before.bookie_id} was moved or initialised by somebody else meanwhile",
            hint="`bkspark bookies` shows where it is now",
        )

    cluster.registrations.update(before.bookie_id, moved)
