"""Choosing the bookies of a new ledger, and what makes bookies members.

A bookie takes the writer's permission before the metadata names it. So a member without it has lost
data of the ledger, and no recovery takes what else it lacks for absent (R18). A bookie
that did not surely take it is not asked again for this writer: a request that is still on its way
could make the permission anew where it was lost (R19).

Bookies are asked all at once, and one that does not answer in time is not chosen: one disk that
hangs keeps nobody from writing. Only where there is no other is it given more time.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex

from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie
from bkspark.client import asking, ensemble_log
from bkspark.client.channel import Channel
from bkspark.client.cluster import Cluster, draw
from bkspark.client.fan_out import Timeouts, ask_all
from bkspark.client.runtime import THREADS, Runtime
from bkspark.errors import BookieUnavailableError, NotEnoughBookiesError
from bkspark.format import layout
from bkspark.protocol import placement
from bkspark.protocol.ledger import FIRST_TERM, Member
from bkspark.protocol.quorum import Quorum

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


def place(cluster: Cluster, ledger_id: int, quorum: Quorum) -> Placed:
    """Choose ensemble and spares of a new ledger, and who writes it.

    Raises:
        NotEnoughBookiesError: too few usable bookies.
    """
    addresses = cluster.addresses()
    found = cluster.candidates(needed=quorum.ensemble_size)
    candidates = [c for c in found if c.member in addresses]
    refused: set[str] = set()
    while True:
        with _naming(refused):
            chosen = placement.choose(
                candidates,
                quorum.ensemble_size,
                draw=draw,
                exclude=refused,
                last=cluster.suspects(),
            )
        ensemble = [addresses[candidate.member] for candidate in chosen]
        others = len(candidates) - len(refused) - len(ensemble)
        needed = len(ensemble) - others
        # Anew each time: who refused may still take it, late, and is a spare of this writer then.
        token = token_hex(16)
        permission = layout.permission(ledger_id, FIRST_TERM, token)
        taken = joined(THREADS, ensemble, permission, needed=needed)
        failed = {address.bookie_id for address in ensemble} - taken
        if not failed:
            break
        refused |= failed
        for candidate in chosen:
            if candidate.member.bookie_id in failed:
                cluster.note_failure(candidate.member)
                why = "it takes no marker"
                ensemble_log.given_up(logger, ledger_id, candidate.member.bookie_id, why)
    rest = len(candidates) - len(chosen) - len(refused)
    spares = placement.choose(
        candidates,
        min(rest, SPARES_MAX),
        draw=draw,
        exclude=refused,
        near=chosen,
        last=cluster.suspects(),
    )
    return Placed(tuple(ensemble), tuple(_located(addresses, spares)), token)


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


def spares_of(cluster: Cluster, ensemble: Sequence[BookieAddress]) -> list[BookieAddress]:
    """Bookies that may step in for those of ``ensemble``, in order of preference.

    They are nice to have: who does not answer soon is none of them.
    """
    addresses = cluster.addresses()
    found = cluster.candidates(enough=len(ensemble))
    candidates = [c for c in found if c.member in addresses]
    used = {address.bookie_id for address in ensemble}
    free = [c for c in candidates if c.member.bookie_id not in used]
    near = [c for c in candidates if c.member.bookie_id in used]
    count = min(len(free), SPARES_MAX)
    chosen = placement.choose(
        candidates, count, draw=draw, exclude=used, near=near, last=cluster.suspects()
    )
    return _located(addresses, chosen)


def joined(
    runtime: Runtime,
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
        return lambda: has_joined(address, permission)

    answers = ask_all(
        {Channel(address, runtime): taking(address) for address in addresses},
        Timeouts(asking.ANSWER_SECONDS),
        needed=needed,
        runtime=runtime,
    )
    return {channel.address.bookie_id for channel, has in answers.items() if has is True}


def has_joined(address: BookieAddress, permission: str) -> bool:
    """Make ``permission`` on a bookie that no metadata names for it; whether it is durable."""
    try:
        with open_bookie(address).open_root() as root:
            root.put_new(permission, b"")
        return True
    except BookieUnavailableError:
        return False


def _located(
    addresses: dict[Member, BookieAddress], chosen: Sequence[placement.Candidate]
) -> list[BookieAddress]:
    return [addresses[candidate.member] for candidate in chosen]
