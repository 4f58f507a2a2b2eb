"""Chooses the bookies of a ledger: a new ensemble, its spares, and replacements of members.

Rule 1. A bookie is enlisted before the metadata names it (``enlisting``); a bookie that was not
enlisted for certain and in time is not asked again for this writer (R18, R19).

Rule 2. Bookies are asked concurrently, and a bookie that does not answer in time is not chosen: a
hanging disk stops no writer. A bookie gets more time only if there is no other.

Rule 3. If fewer bookies than wanted are usable after that, a new ledger is smaller ("quorum", rule
4), unless its maker refuses. A bookie that answered but did not take a request counts as usable
until a request for a second writer has failed too: one lost answer makes no ledger smaller.

Rule 4. A ledger may insist on labels that differ in each write set (``protocol.apart``). Then no
other ensemble is chosen, and no replacement that would leave a write set with fewer. A recovery
alone prefers such bookies and takes others: a ledger that cannot be closed is worse.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster import log_messages
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun, Joining, enlist
from bkspark.cluster.log_messages import leave_out, leave_out_into, leave_out_unless
from bkspark.errors import NotEnoughBookiesError
from bkspark.format.digest import Digester
from bkspark.metadata import freshness
from bkspark.protocol import bookies
from bkspark.protocol.apart import NOTHING, Apart, Distinct, choose_ensemble, choose_stand_ins
from bkspark.protocol.bookies import Candidate, Labels
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import FIRST_TERM, LedgerMetadata, Member
from bkspark.protocol.ledger.quorum import Quorum

# --- refusals ------------------------------------------------------------------------------------
# What a writer notes and says of bookies that did not join.


logger = logging.getLogger(__name__)


def give_up(
    cluster: Cluster, ledger_id: int, refused: Collection[BookieAddress], begun: Begun
) -> dict[str, str]:
    """Note that bookies did not join, and return the reasons.

    Raises:
        NothingSentError: this process could not ask, which is no bookie's fault.
    """
    begun.require_asked()
    reasons = {address.bookie_id: begun.failed[address.bookie_id] for address in refused}
    for address in refused:
        cluster.note_failure(address.member)
        log_messages.given_up(logger, ledger_id, address.bookie_id, reasons[address.bookie_id])
    return reasons


@contextmanager
def naming(refused: Mapping[str, str]) -> Iterator[None]:
    """Add to a ``NotEnoughBookiesError`` the bookies that seemed usable and refused."""
    try:
        yield
    except NotEnoughBookiesError as error:
        if not refused:
            raise
        names, reasons = ", ".join(sorted(refused)), "; ".join(dict.fromkeys(refused.values()))
        raise NotEnoughBookiesError(
            f"{error.args[0]}: writes to {names} failed just now ({reasons})",
            hint=error.hint,
        ) from error


# --- ensembles -----------------------------------------------------------------------------------


SPARES_MAX = 4
"""More bookies do not fail during one write, unless all fail together."""

DRAWN_MIN = 16
"""Bookies that a writer looks at, drawn by chance, in a cluster that has more."""

DRAWN_TIMES = 4
"""It looks at so many times the bookies that it needs, if that is more."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The bookies of a new ledger.

    Attributes:
        quorum: smaller than wanted if too few bookies are usable.
        ensemble: the members, enlisted for ``token``.
        spares: possible replacements, preferred first.
        token: of the ledger's writer; no bookie outside ``ensemble`` was asked to join for this
            token.
        begun: the journals of the members.
    """

    quorum: Quorum
    ensemble: tuple[BookieAddress, ...]
    spares: tuple[BookieAddress, ...]
    token: str
    begun: Begun


@dataclass(frozen=True, slots=True)
class Vacancy:
    """A place in the ensemble of a ledger that needs a bookie.

    Attributes:
        ensemble_index: the place.
        joining: the files that the new member takes for the ledger's writer.
        staying: the members that remain; the new member is chosen for the best spread beside them.
        exclude: bookie ids that must not be chosen.
        ensemble: the members that the metadata names.
        wanted: what the ledger insists on (rule 4).
        among: the bookies to choose from, preferred first; None for any bookie.
        held: returned, unused journals of bookies.
    """

    ledger_id: int
    ensemble_index: int
    joining: Joining
    staying: Sequence[Member]
    exclude: Collection[str]
    ensemble: Sequence[Member]
    wanted: Apart
    among: Sequence[BookieAddress] | None = None
    held: Begun | None = None


def choose(
    cluster: Cluster,
    ledger_id: int,
    quorum: Quorum,
    digester: Digester | None = None,
    *,
    is_strict: bool = True,
    distinct: Distinct = NOTHING,
) -> Placed:
    """Choose ensemble, spares and writer of a new ledger.

    Args:
        digester: None if another process will write and make the journals.
        is_strict: whether the ledger must have the sizes ``quorum``, and no smaller sizes (rule 3).
        distinct: labels that must differ (rule 4).

    Raises:
        NotEnoughBookiesError: too few usable bookies.
    """
    size = quorum.ensemble_size
    pool = _Pool(cluster, size, needed=size)
    place = partial(_place, cluster, pool, ledger_id, Apart(quorum, distinct), digester)
    least = quorum.ensemble_size if is_strict else quorum.ack_quorum_size
    least = max(least, *distinct.values(), 1)
    refused: dict[str, str] = {}
    try:
        return place(refused, max(least, min(pool.size, quorum.ensemble_size)))
    except NotEnoughBookiesError:
        if not refused:
            raise
    # Enlisting sends each request once, so one lost answer refuses. Another writer may ask again.
    return place({}, least)


def _place(
    cluster: Cluster,
    pool: "_Pool",
    ledger_id: int,
    wanted: Apart,
    digester: Digester | None,
    refused: dict[str, str],
    least: int,
) -> Placed:
    """Enlist bookies until the ensemble is complete; add refusals with reasons to ``refused``.

    Args:
        least: minimum ensemble size.
    """
    while True:
        size = max(least, min(pool.size - len(refused), wanted.quorum.ensemble_size))
        quorum = wanted.quorum.on_fewer(size)
        with naming(refused):
            ensemble = pool.choose_ensemble(Apart(quorum, wanted.distinct), exclude=refused)
        others = pool.size - len(refused) - len(ensemble)
        # A new token each time: a refusing bookie may still take the old request late, and is a
        # spare of this writer.
        token = environment.token()
        joining = Joining.of(ledger_id, quorum, term=FIRST_TERM, token=token, digester=digester)
        needed = len(ensemble) - others
        begun = enlist(dict(enumerate(ensemble)), joining, needed=needed, are_found=True)
        failed = [address for address in ensemble if address.bookie_id not in begun.bookie_ids]
        if not failed:
            spares = tuple(pool.spares(ensemble, refused))
            return Placed(quorum, tuple(ensemble), spares, token, begun)
        begun.close()
        refused |= give_up(cluster, ledger_id, failed, begun)


def spares_of(cluster: Cluster, ensemble: Sequence[BookieAddress]) -> list[BookieAddress]:
    """Possible replacements for bookies of ``ensemble``, preferred first.

    Spares are optional, so a bookie that does not answer soon is left out.
    """
    size = len(ensemble)
    return _Pool(cluster, size, enough=size).spares(ensemble)


@dataclass(frozen=True, slots=True)
class Vacant:
    """Places of an ensemble for which a recovery needs other bookies.

    Attributes:
        wanted: what the ledger insists on, and a recovery prefers (rule 4).
        ensemble: the members now.
        places: indexes of the members to replace.
    """

    wanted: Apart
    ensemble: Sequence[Member]
    places: Sequence[int]


def stand_ins(
    cluster: Cluster,
    count: int,
    *,
    exclude: Collection[str],
    near: Collection[Member],
    vacant: Vacant | None = None,
) -> list[BookieAddress]:
    """Up to ``count`` bookies for a recovery to write to, with the best spread beside ``near``.

    None is asked in advance: if a bookie fails, recovery takes the next. A bookie that is full by
    its mark, or failed often lately, is better than none.
    """
    unknown = set[str]()
    lost = cluster.lost_members(leave_out_into(unknown))
    known = cluster.bookies(leave_out).values()
    addresses = {address.member: address for address in map(cluster.address, known)}
    records = [r for r in known if r.bookie_id not in unknown and not r.is_read_only]
    full = frozenset(record.bookie_id for record in records if record.is_full)
    used = {member.bookie_id for member in near}.union(exclude)
    found = [_candidate(cluster.address(r)) for r in records]
    free = [c for c in found if c.member not in lost and c.member.bookie_id not in used]
    how: dict[str, Any] = {"draw": environment.draw, "last": cluster.suspects() | full}
    beside = [_candidate(addresses[m]) for m in near if m in addresses]
    if vacant is None or not vacant.wanted.distinct:
        chosen = bookies.choose(free, min(len(free), count), near=beside, **how)
    else:
        labels = [addresses[m].labels if m in addresses else {} for m in vacant.ensemble]
        chosen = choose_stand_ins(free, vacant.wanted, labels, vacant.places, beside, **how)
    return [addresses[candidate.member] for candidate in chosen]


@dataclass(frozen=True, slots=True)
class Replacement:
    """The result of a search for a replacement.

    Attributes:
        address: of the enlisted bookie; None if there is none.
        begun: its journal.
        failed: bookies tried before, each with the reason.
    """

    address: BookieAddress | None
    begun: Begun
    failed: dict[str, str]


def replace(cluster: Cluster, vacancy: Vacancy) -> Replacement:
    """Find a bookie for a place, and enlist it.

    Bookies that hang when looked at cost ``ANSWER_SECONDS`` together; each bookie that hangs when
    enlisted costs ``ANSWER_SECONDS`` again.
    """
    failed: dict[str, str] = {}
    for address in _suited(cluster, vacancy, failed):
        begun = enlist({vacancy.ensemble_index: address}, vacancy.joining, held=vacancy.held)
        if begun.bookie_ids:
            return Replacement(address, begun, failed)
        failed |= give_up(cluster, vacancy.ledger_id, [address], begun)
    return Replacement(None, Begun(), failed)


def _suited(cluster: Cluster, vacancy: Vacancy, failed: Collection[str]) -> Iterator[BookieAddress]:
    """Yield bookies for the place, preferred first; ``failed`` grows between the yields."""
    used = set(vacancy.exclude) | {member.bookie_id for member in vacancy.staying}
    fits = _fitting(cluster, vacancy.wanted, vacancy.ensemble, vacancy.ensemble_index)
    if vacancy.among is not None:
        free = (address for address in vacancy.among if address.bookie_id not in used)
        yield from (address for address in free if fits(address.labels))
        return
    pool = _Pool(cluster, 1, exclude=used, near=vacancy.staying)
    near = [pool.addresses[m] for m in vacancy.staying if m in pool.addresses]
    with suppress(NotEnoughBookiesError):
        while True:
            yield from pool.choose(1, exclude=used.union(failed), near=near, fits=fits)


def _fitting(
    cluster: Cluster, wanted: Apart, ensemble: Sequence[Member], index: int
) -> Callable[[Labels], bool]:
    """Return which labels a bookie may have that takes the place ``index`` (rule 4)."""
    if not wanted.distinct:
        return _any_labels
    return partial(wanted.fits, _labels_of(cluster, ensemble), index)


def _labels_of(cluster: Cluster, members: Sequence[Member]) -> list[Labels]:
    """Return the labels of each member; none of a member that is not registered."""
    known = cluster.addresses_of(members, leave_out)
    return [known[member].labels if member in known else {} for member in members]


def _any_labels(_labels: Labels) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Regrouping:
    """A writer's request for the ensemble of a new fragment.

    Attributes:
        joining: the files that new members take for the writer.
        ensemble: the members now.
        failed: indexes of the members that cannot stay.
        exclude: bookie ids that must not be chosen.
        held: returned, unused journals of bookies.
        wanted: what the ledger insists on (rule 4).
    """

    ledger_id: int
    joining: Joining
    ensemble: tuple[Member, ...]
    failed: Collection[int]
    exclude: Collection[str]
    held: Begun
    wanted: Apart


@dataclass(frozen=True, slots=True)
class Regrouped:
    """The ensemble of a new fragment.

    Attributes:
        ensemble: enlisted and staying members by place; empty if there are too few.
        addresses: of all bookies looked at.
        begun: journals of the enlisted members.
        failed: bookies that were tried, each with the reason.
    """

    ensemble: tuple[Member, ...]
    addresses: Mapping[Member, BookieAddress]
    begun: Begun
    failed: dict[str, str]


def regroup(cluster: Cluster, wanted: Regrouping) -> Regrouped:
    """Choose a new fragment's ensemble as if there were none yet, and enlist new members.

    If there are too few bookies to choose from, present members stay although not chosen.
    """
    pool = _Pool(cluster, len(wanted.ensemble), exclude=wanted.exclude, near=wanted.ensemble)
    begun, failed, size = Begun(), dict[str, str](), len(wanted.ensemble)
    while True:
        unwanted = {*wanted.exclude, *failed}
        places = _places(cluster, wanted, pool, unwanted)
        asked = {
            index: pool.addresses[member]
            for index, member in places.items()
            if member != wanted.ensemble[index] and member.bookie_id not in begun.bookie_ids
        }
        begun.add(enlist(asked, wanted.joining, held=wanted.held))
        refused = [a for a in asked.values() if a.bookie_id not in begun.bookie_ids]
        if not refused:
            ensemble = tuple(places[index] for index in sorted(places))
            return Regrouped(ensemble if len(places) == size else (), pool.addresses, begun, failed)
        if begun.own_fault is not None:  # whom it asked, it does not ask again (R19)
            return Regrouped((), pool.addresses, begun, failed | begun.failed)
        failed |= give_up(cluster, wanted.ledger_id, refused, begun)


def _places(
    cluster: Cluster, wanted: Regrouping, pool: "_Pool", exclude: Collection[str]
) -> dict[int, Member]:
    """Return the members of a new fragment by place; places without a bookie are missing."""
    before, failed = wanted.ensemble, wanted.failed
    chosen = [one.member for one in pool.choose_up_to(len(before), exclude=exclude, near=())]
    places = bookies.in_place(before, failed, chosen)
    if not wanted.wanted.distinct or len(places) < len(before):
        return places
    labels = _labels_of(cluster, before)
    after = _labels_of(cluster, [places[index] for index in sorted(places)])
    if wanted.wanted.is_kept(labels, after):
        return places
    # The usual choice brings write sets too near together: replace what has failed, one by one.
    places = {index: member for index, member in enumerate(before) if index not in failed}
    for index in sorted(failed):
        now = [places.get(k, member) for k, member in enumerate(before)]
        near = [pool.addresses[m] for m in places.values() if m in pool.addresses]
        fits = _fitting(cluster, wanted.wanted, now, index)
        used = {*exclude, *(member.bookie_id for member in now)}
        for address in pool.choose_up_to(1, exclude=used, near=near, fits=fits):
            places[index] = address.member
    return places


class Successors:
    """Replacement bookies for closed ledgers: all bookies are looked at once, on first use."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pool: _Pool | None = None

    def beside(
        self,
        staying: Collection[Member],
        exclude: Collection[str],
        only: str = "",
        fits: Callable[[Labels], bool] = _any_labels,
    ) -> BookieAddress | None:
        """The bookie with the best spread beside the staying members; None if there is none.

        Args:
            only: id of the only bookie that may be chosen; empty for any.
            fits: which labels the bookie may have.
        """
        pool = self._pool = self._pool or _Pool(self._cluster, None)
        known = pool.addresses
        near = [known[member] for member in staying if member in known]
        used = {member.bookie_id for member in staying}.union(exclude)
        if only:
            used |= {member.bookie_id for member in known if member.bookie_id != only}
        return next(iter(pool.choose_up_to(1, exclude=used, near=near, fits=fits)), None)

    def fitting(
        self, ledger: LedgerMetadata, ensemble: Sequence[Member], index: int
    ) -> Callable[[Labels], bool]:
        """Return which labels a bookie may have that takes a place of ``ledger``."""
        return _fitting(self._cluster, Apart.of(ledger), ensemble, index)


def ensemble_of(cluster: Cluster, ledger: LedgerMetadata) -> list[BookieAddress] | None:
    """The addresses of the last fragment's members; None if a member was initialised anew since."""
    members = Locations(ledger).last.members
    named = leave_out_unless({member.bookie_id for member in members})
    with freshness.from_begin():
        addresses = cluster.addresses_of(members, named, is_anew=True)
    if any(member not in addresses for member in members):
        return None
    return [addresses[member] for member in members]


def _candidate(address: BookieAddress) -> Candidate:
    return Candidate(address.member, address.domain, labels=address.labels)


def _is_spread(addresses: Collection[BookieAddress]) -> bool:
    """Return whether no two of the bookies share a failure domain."""
    return len({address.domain for address in addresses}) == len(addresses)


class _Pool:
    """Bookies that may join an ensemble now (``Cluster.refresh_candidates``).

    A large cluster is not looked at as a whole: some bookies are drawn by chance. The others are
    looked at only if those drawn are too few. If those drawn share failure domains, bookies of
    other domains are looked at, as far as this process knows of any.

    Attributes:
        addresses: of the bookies looked at, and of ``near``.

    Args:
        wanted: how many bookies the caller wants; None to look at all bookies.
        exclude, enough, needed: see ``Cluster.probe``.
        near: members whose addresses are needed too.
    """

    def __init__(
        self,
        cluster: Cluster,
        wanted: int | None,
        *,
        exclude: Collection[str] = (),
        enough: int | None = None,
        needed: int = 0,
        near: Iterable[Member] = (),
    ) -> None:
        self._look = partial(
            cluster.refresh_candidates, exclude=exclude, enough=enough, needed=needed
        )
        self._suspects = cluster.suspects
        self._elsewhere = cluster.in_other_domains
        self._has_searched = False
        at_most = self._at_most = None if wanted is None else max(DRAWN_MIN, DRAWN_TIMES * wanted)
        with freshness.from_begin():
            self._candidates = self._look(at_most=at_most)
            if self._candidates.others and len(self._candidates) < (wanted or 0):
                self._candidates = self._look()
            known = cluster.addresses_of(near, leave_out)
        self.addresses = {**known, **self._candidates.addresses}

    @property
    def size(self) -> int:
        return len(self._candidates)

    def choose(
        self,
        count: int,
        *,
        exclude: Collection[str] = (),
        near: Collection[BookieAddress] = (),
        fits: Callable[[Labels], bool] = _any_labels,
    ) -> list[BookieAddress]:
        """Choose ``count`` bookies for the best spread beside ``near``.

        Args:
            fits: which labels they may have.

        Raises:
            NotEnoughBookiesError: there are fewer.
        """
        beside = [_candidate(address) for address in near]

        def chosen() -> list[Candidate]:
            fitting = [one for one in self._candidates if fits(one.labels)]
            return bookies.choose(fitting, count, exclude=exclude, near=beside, **self._how)

        return self._chosen(chosen, near)

    def choose_ensemble(self, wanted: Apart, *, exclude: Collection[str]) -> list[BookieAddress]:
        """Choose the members of a new ensemble, in ring order.

        Raises:
            NotEnoughBookiesError: there are too few, or they are not apart as wanted.
        """
        return self._chosen(
            lambda: choose_ensemble(self._candidates, wanted, exclude=exclude, **self._how)
        )

    @property
    def _how(self) -> dict[str, Any]:
        problem = self._candidates.problem
        return {"draw": environment.draw, "last": self._suspects(), "problem": problem}

    def _chosen(
        self, choose: Callable[[], list[Candidate]], near: Collection[BookieAddress] = ()
    ) -> list[BookieAddress]:
        """Choose among the bookies looked at, and look at others if these are not good enough."""
        with suppress(NotEnoughBookiesError):
            while self._candidates.others:
                chosen = [self.addresses[one.member] for one in choose()]
                if _is_spread([*chosen, *near]) or not self._look_elsewhere():
                    return chosen
        if self._candidates.others:
            self._candidates = self._look()
            self.addresses = {**self.addresses, **self._candidates.addresses}
        return [self.addresses[one.member] for one in choose()]

    def _look_elsewhere(self) -> bool:
        """Look at some bookies of other failure domains, once; False if none is known."""
        known = self._candidates
        if self._has_searched:
            return False
        self._has_searched = True
        used = {address.domain for address in known.addresses.values()}
        names = self._elsewhere(known.others, used)
        if not names:
            return False
        found = self._look(at_most=self._at_most, among=names)
        known.extend(found)
        known.addresses |= found.addresses
        self.addresses = {**self.addresses, **found.addresses}
        asked = set(names).difference(found.others)
        known.others = [name for name in known.others if name not in asked]
        return True

    def spares(
        self, ensemble: Collection[BookieAddress], refused: Collection[str] = ()
    ) -> list[BookieAddress]:
        """Possible replacements for bookies of ``ensemble``, preferred first."""
        return self.choose_up_to(SPARES_MAX, exclude=refused, near=ensemble)

    def choose_up_to(
        self,
        count: int,
        *,
        exclude: Collection[str],
        near: Collection[BookieAddress],
        fits: Callable[[Labels], bool] = _any_labels,
    ) -> list[BookieAddress]:
        """Choose ``count`` bookies, or all if there are fewer."""
        used = {address.bookie_id for address in near}.union(exclude)
        free = [c for c in self._candidates if c.member.bookie_id not in used and fits(c.labels)]
        return self.choose(min(len(free), count), exclude=exclude, near=near, fits=fits)
