"""Which bookies a ledger is on: the ensemble of a new one, its spares, and who replaces whom.

Rule 1. A bookie takes the writer's permission before the metadata names it (``enlist``). So a
member without it has lost data of the ledger, and no recovery takes what else it lacks for absent
(R18). A bookie that did not surely take it is not asked again for this writer: a request that is
still on its way could make the permission anew where it was lost (R19).

Rule 2. Bookies are asked all at once, and one that does not answer in time is not chosen: one disk
that hangs keeps nobody from writing. Only where there is no other is it given more time.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie
from bkspark.cluster import bookie_client, ensemble_log
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import Timeouts, ask_all
from bkspark.errors import BookieUnavailableError, NotEnoughBookiesError
from bkspark.format import layout
from bkspark.protocol.ledger import placement
from bkspark.protocol.ledger.metadata import FIRST_TERM, LedgerMetadata, Member
from bkspark.protocol.ledger.placement import Candidate
from bkspark.protocol.ledger.quorum import Quorum

logger = logging.getLogger(__name__)

SPARES_MAX = 4
"""More bookies than this do not fail during one write, other than all together."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a new ledger is to be.

    Attributes:
        ensemble: its members; each holds the permission of ``token``.
        spares: bookies that may step in, preferred first.
        token: of its writer; nobody else was ever asked to take this permission.
    """

    ensemble: tuple[BookieAddress, ...]
    spares: tuple[BookieAddress, ...]
    token: str


@dataclass(frozen=True, slots=True)
class Vacancy:
    """A place in the ensemble of a ledger.

    Attributes:
        permission: of the ledger's writer.
        staying: the members that remain; the new one is chosen for the best spread beside them.
        exclude: bookie ids that must not be chosen.
    """

    ledger_id: int
    permission: str
    staying: Sequence[Member]
    exclude: Collection[str]


def choose(cluster: Cluster, ledger_id: int, quorum: Quorum) -> Placed:
    """Choose ensemble and spares of a new ledger, and who writes it.

    Raises:
        NotEnoughBookiesError: too few usable bookies.
    """
    pool = _Pool(cluster, needed=quorum.ensemble_size)
    refused: set[str] = set()
    while True:
        with _naming(refused):
            ensemble = pool.choose(quorum.ensemble_size, exclude=refused)
        others = pool.size - len(refused) - len(ensemble)
        # Anew each time: who refused may still take it, late, and is a spare of this writer then.
        token = environment.token()
        permission = layout.permission(ledger_id, FIRST_TERM, token)
        taken = enlist(ensemble, permission, needed=len(ensemble) - others)
        failed = [address for address in ensemble if address.bookie_id not in taken]
        if not failed:
            break
        for address in failed:
            refused.add(address.bookie_id)
            _give_up(cluster, ledger_id, address, "it takes no marker")
    return Placed(tuple(ensemble), tuple(pool.spares(ensemble, refused)), token)


def spares_of(cluster: Cluster, ensemble: Sequence[BookieAddress]) -> list[BookieAddress]:
    """Bookies that may step in for those of ``ensemble``, in order of preference.

    They are nice to have: who does not answer soon is none of them.
    """
    return _Pool(cluster, enough=len(ensemble)).spares(ensemble)


def replace(cluster: Cluster, vacancy: Vacancy) -> tuple[BookieAddress | None, dict[str, str]]:
    """A bookie that holds the permission, None if there is none; and those that failed.

    It costs ``ANSWER_SECONDS`` at most for all bookies that hang when they are looked at, and again
    for each that hangs when it is to take the permission.
    """
    used = set(vacancy.exclude) | {member.bookie_id for member in vacancy.staying}
    pool = _Pool(cluster, exclude=used)
    near = [pool.addresses[m] for m in vacancy.staying if m in pool.addresses]
    failed: dict[str, str] = {}
    while True:
        try:
            [address] = pool.choose(1, exclude=used | failed.keys(), near=near)
        except NotEnoughBookiesError:
            return None, failed
        if enlist([address], vacancy.permission):
            return address, failed
        failed[address.bookie_id] = why = "it cannot be written to"
        _give_up(cluster, vacancy.ledger_id, address, why)


def enlist(
    addresses: Collection[BookieAddress],
    permission: str,
    *,
    needed: int = 0,
) -> set[str]:
    """Bookie ids of those that have taken ``permission``, durably and in time.

    Args:
        needed: if fewer have, those that are silent get more time.
    """

    def taking(address: BookieAddress) -> Callable[[], bool]:
        return lambda: take_permission(address, permission)

    answers = ask_all(
        {BookieClient(address): taking(address) for address in addresses},
        Timeouts(bookie_client.ANSWER_SECONDS),
        needed=needed,
    )
    return {client.address.bookie_id for client, has in answers.items() if has is True}


def take_permission(address: BookieAddress, permission: str) -> bool:
    """Make ``permission`` on a bookie that no metadata names for it; whether it is durable."""
    try:
        with open_bookie(address).open_root() as root:
            root.put_new(permission, b"")
        return True
    except BookieUnavailableError:
        return False


def ensemble_of(cluster: Cluster, ledger: LedgerMetadata) -> list[BookieAddress] | None:
    """Where the members of the last fragment are; None if one was initialised anew since."""
    addresses = cluster.addresses()
    members = ledger.last_fragment.ensemble
    if any(member not in addresses for member in members):
        return None
    return [addresses[member] for member in members]


class _Pool:
    """Bookies that may get into an ensemble now (``Cluster.candidates``).

    Attributes:
        addresses: of all that are registered.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        exclude: Collection[str] = (),
        enough: int | None = None,
        needed: int = 0,
    ) -> None:
        self.addresses = cluster.addresses()
        found = cluster.candidates(exclude=exclude, enough=enough, needed=needed)
        self._candidates = [c for c in found if c.member in self.addresses]
        self._suspects = cluster.suspects

    @property
    def size(self) -> int:
        return len(self._candidates)

    def choose(
        self,
        count: int,
        *,
        exclude: Collection[str] = (),
        near: Collection[BookieAddress] = (),
    ) -> list[BookieAddress]:
        """So many bookies, for the best spread beside ``near``.

        Raises:
            NotEnoughBookiesError: there are fewer.
        """
        beside = [Candidate(address.member, address.domain) for address in near]
        chosen = placement.choose(
            self._candidates,
            count,
            draw=environment.draw,
            exclude=exclude,
            near=beside,
            last=self._suspects(),
        )
        return [self.addresses[candidate.member] for candidate in chosen]

    def spares(
        self, ensemble: Collection[BookieAddress], refused: Collection[str] = ()
    ) -> list[BookieAddress]:
        """Those that may step in for bookies of ``ensemble``, in order of preference."""
        used = {address.bookie_id for address in ensemble} | set(refused)
        free = [c for c in self._candidates if c.member.bookie_id not in used]
        return self.choose(min(len(free), SPARES_MAX), exclude=refused, near=ensemble)


def _give_up(cluster: Cluster, ledger_id: int, address: BookieAddress, why: str) -> None:
    cluster.note_failure(address.member)
    ensemble_log.given_up(logger, ledger_id, address.bookie_id, why)


@contextmanager
def _naming(refused: Collection[str]) -> Iterator[None]:
    """Who is short of bookies is told which ones seemed usable and were not."""
    try:
        yield
    except NotEnoughBookiesError as error:
        if not refused:
            raise
        names = ", ".join(sorted(refused))
        raise NotEnoughBookiesError(
            f"{error.args[0]}: {names} could not be written to just now", hint=error.hint
        ) from error
