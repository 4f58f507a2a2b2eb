"""Checks before a place becomes a bookie of a cluster: every check precedes every change.

A cookie makes a place a bookie, and then a record registers the bookie with the cluster. The order
matters: where a record exists there was a bookie, and missing data is lost data. A client killed
between the two steps leaves a cookie without a record and no other file. No client has used such a
bookie; the same command, run again, registers the bookie named by the cookie.
"""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from urllib.parse import unquote

from bkspark import environment
from bkspark.bookie.contract import BookieStorage
from bkspark.bookie.posix_place import path_of
from bkspark.bookie.uri import storage
from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import cluster as cluster_format
from bkspark.format import layout
from bkspark.format.cluster import BookieRecord, Cookie
from bkspark.storage.address import (
    is_in_object_store,
    parse,
    require_fit,
    shown_url,
    split_store,
)
from bkspark.storage.file_systems import why_unsafe
from bkspark.storage.kinds import open_objects

_MEMORY = "memory://"

_Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster, reduced to the facts that a new place is checked against.

    Attributes:
        metadata_uri: as the store writes it.
        bookies: the registered bookies, by id.
        removed: ids of removed bookies; never given out again.
        unreadable: ids whose records cannot be read; taken, and their places are unknown.
        group: of users that share the cluster.
        places: of the metadata store and of all bookies, each looked up once.
    """

    cluster_id: str
    metadata_uri: str
    bookies: Mapping[str, BookieRecord]
    removed: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()
    group: int | None = None
    places: "TakenPlaces" = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        known = (record.place for record in self.bookies.values())
        object.__setattr__(self, "places", TakenPlaces([self.metadata_uri, *known]))


@dataclass(frozen=True, slots=True)
class NewBookie:
    """A place that may become a bookie.

    Attributes:
        cookie: makes the place a bookie; stored already if a client was killed after storing it.
        record: registers the bookie after the cookie is stored.
    """

    place: BookieStorage
    cookie: bytes
    record: BookieRecord


class TakenPlaces:
    """Places that are known to be distinct, and where another one may not be.

    Each URL is looked up once, so that the cost grows with the places and not with their pairs.

    Args:
        urls: of the metadata store and of bookies, with their stores.
    """

    def __init__(self, urls: Iterable[str]) -> None:
        self._at: defaultdict[_Parts, list[str]] = defaultdict(list)
        self._inside: defaultdict[_Parts, list[str]] = defaultdict(list)
        for url in urls:
            self._add(url, _parts(url))

    def _add(self, url: str, place: _Parts) -> None:
        self._at[place].append(url)
        for length in range(len(place)):
            self._inside[place[:length]].append(url)

    def add(self, url: str) -> None:
        """Note a further place.

        Raises:
            InvalidRequestError: as ``require_free``.
        """
        place = _parts(url)
        self._require_free(url, place)
        self._add(url, place)

    def require_free(self, url: str) -> None:
        """Return if ``url`` is none of the places, and neither contains the other.

        Two bookies there would be one disk (H39), and each would see the other's files as its own.

        Raises:
            InvalidRequestError: the places overlap, or may overlap in a store that is not known
                here.
        """
        self._require_free(url, _parts(url))

    def _require_free(self, url: str, place: _Parts) -> None:
        around = (self._at.get(place[:length], ()) for length in range(len(place) + 1))
        others = chain(*around, self._inside.get(place, ()))
        for other in others:
            if not _are_in_one_store(url, other):
                continue
            there = _parts(other)
            inner, outer = (url, other) if len(place) > len(there) else (other, url)
            if place == there:
                raise InvalidRequestError(
                    f"{shown_url(url)} is given twice",
                    hint="two URLs name the same place: give each place once",
                )
            raise InvalidRequestError(
                f"{shown_url(inner)} lies inside {shown_url(outer)}",
                hint="give the metadata store and each bookie an own directory, with nothing "
                "else in it",
            )

    def has(self, url: str) -> bool:
        """Whether ``url`` is one of the places."""
        return any(_are_in_one_store(url, other) for other in self._at.get(_parts(url), ()))


def require_apart(urls: Iterable[str]) -> None:
    """Return if all places of a cluster are distinct, and none lies inside another.

    Args:
        urls: of the metadata store and of bookies, with their stores.

    Raises:
        InvalidRequestError: two places overlap, or a URL names no place; or this machine does not
            know the store of a place that may overlap another.
    """
    known = TakenPlaces(())
    for url in urls:
        require_fit(unquote(url))
        known.add(url)


def require_outside(url: str, others: Iterable[str]) -> None:
    """Return if ``url`` equals none of the ``others``, and neither contains the other.

    Raises:
        InvalidRequestError: as ``TakenPlaces.require_free``.
    """
    TakenPlaces(others).require_free(url)


def _are_in_one_store(url: str, other: str) -> bool:
    """Whether two places, which overlap but for their stores, are on the same server."""
    if not is_in_object_store(url):
        return True
    one, two = parse(url), parse(other)
    is_named_alike = (one.store, one.host) == (two.store, two.host)
    return is_named_alike or open_objects(one).server() == open_objects(two).server()


def _parts(url: str) -> _Parts:
    """The leading path parts shared by all places inside this place, but for the store; links are
    followed.
    """
    scheme, _, rest = url.partition("://")
    match scheme:
        case "file":
            return ("file", *Path(os.path.realpath(path_of(url))).parts)
        case _ if is_in_object_store(url):
            place = parse(url)
            return (scheme, place.bucket, *place.prefix.split("/")[: len(place.prefix)])
        case _:
            return (scheme, rest)


def storage_risk(url: str, metadata_uri: str, *, is_accepted: bool) -> str:
    """The reason why data at ``url`` might be lost, if the risk is accepted; empty if there is
    none.

    Raises:
        InvalidRequestError: data might be lost, and the risk is not accepted.
    """
    risk = ""
    if url.startswith("file://"):
        risk = why_unsafe(path_of(url))
    elif url.startswith(_MEMORY) and not metadata_uri.startswith(_MEMORY):
        risk = f"{shown_url(url)} ends with this process, and the metadata store does not"
    if risk and not is_accepted:
        raise InvalidRequestError(
            risk,
            hint="use a local disk (ext4, xfs, btrfs), or a bucket; `--accept-storage-risk` "
            "uses it nevertheless",
        )
    return risk


def admit(site: Site, url: str, bookie_id: str, *, accepts_risk: bool = False) -> NewBookie:
    """Check the place at ``url``, and leave nothing in it.

    Args:
        url: in its one spelling; may name a store.
        bookie_id: empty for the id in an unregistered cookie, or else the next free id.
        accepts_risk: allow storage that might lose data.

    Raises:
        InvalidRequestError: the id or the place is taken, or unsuitable.
    """
    require_fit(unquote(url))
    place = storage(url)
    found = place.read_cookie()
    begun = None if found is None else _begun(site, url, found, bookie_id)
    if begun is None:
        _require_new_place(site, url)
    wanted = begun.bookie_id if begun else bookie_id
    if wanted in site.unreadable:
        raise InvalidRequestError(
            f"the metadata record of {wanted} cannot be read",
            hint="`bkspark metadata damaged` says what to do",
        )
    if wanted in site.removed:
        raise InvalidRequestError(
            f"{wanted} is the id of a removed bookie",
            hint="give another id and an empty place; an id is used for one bookie only",
        )
    if begun is None and bookie_id and layout.bookie_id(bookie_id) in site.bookies:
        raise InvalidRequestError(
            f"there is a bookie {bookie_id!r} already", hint="`bkspark bookies` lists them"
        )
    site.places.require_free(url)
    place.require_suitable(found, site.group)
    risk = storage_risk(url, site.metadata_uri, is_accepted=accepts_risk)
    new_id = bookie_id or _free_id(site.bookies.keys() | site.removed | site.unreadable)
    cookie = begun or Cookie(
        site.cluster_id, new_id, environment.token(), environment.now_ms(), site.group
    )
    plain, store = split_store(url)
    record = BookieRecord(
        cookie.bookie_id,
        cookie.incarnation,
        plain,
        place.failure_domain(),
        storage_risk=risk,
        store=store,
    )
    return NewBookie(place, found or cluster_format.encode_cookie(cookie), record)


def admit_each(site: Site, wanted: Mapping[str, str], *, accepts_risk: bool) -> list[NewBookie]:
    """Check all places, given by bookie id, before the first of them is changed; see ``admit``."""
    return [
        admit(site, url, bookie_id, accepts_risk=accepts_risk) for bookie_id, url in wanted.items()
    ]


def _require_new_place(site: Site, url: str) -> None:
    """Refuse the place of a registered bookie whose cookie is gone: emptied, or another disk.

    Raises:
        InvalidRequestError: a bookie is registered there; names the command that begins it anew.
    """
    if not site.places.has(url):
        return
    for bookie_id, record in site.bookies.items():
        if _parts(url) == _parts(record.place) and _are_in_one_store(url, record.place):
            raise InvalidRequestError(
                f"{shown_url(url)} is the place of {bookie_id}, but its cookie is missing",
                hint="if the disk is mounted, and was emptied or replaced, initialise the "
                f"bookie again: `bkspark bookie reinit {bookie_id}`",
            )


def _free_id(known: Collection[str]) -> str:
    return next(name for number in count(1) if (name := f"bookie-{number}") not in known)


def _begun(site: Site, url: str, cookie: bytes, bookie_id: str) -> Cookie:
    """The cookie of a bookie of this cluster that was begun but is not registered.

    Raises:
        InvalidRequestError: the cookie is unreadable, of another cluster or id, or registered.
    """
    shown = shown_url(url)
    try:
        found = cluster_format.decode_cookie(cookie)
    except CorruptDataError as error:
        raise InvalidRequestError(
            f"{shown} has an unreadable cookie: {error.args[0]}",
            hint="give another place; the data was not touched",
        ) from error
    registered = site.bookies.get(found.bookie_id)
    if found.cluster_id != site.cluster_id:
        raise InvalidRequestError(
            f"{shown} is a bookie already, {found.bookie_id} of cluster {found.cluster_id}",
            hint="give another place; the data was not touched",
        )
    if registered is not None and registered.incarnation == found.incarnation:
        raise InvalidRequestError(
            f"{shown} is {found.bookie_id} of this cluster already",
            hint="nothing to do; `bkspark bookies` shows it",
        )
    if registered is not None:
        raise InvalidRequestError(
            f"{shown} was to become {found.bookie_id}, which has another place now",
            hint="if nothing else is in it, remove its COOKIE, then add it again",
        )
    if bookie_id not in ("", found.bookie_id):
        raise InvalidRequestError(
            f"{shown} was to become {found.bookie_id}, but the command was killed",
            hint=f"`bkspark bookie add {shown} --id {found.bookie_id}` finishes it",
        )
    return found
