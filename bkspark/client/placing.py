"""Choosing the bookies of a new ledger, and making them members of its term.

Bookies are asked all at once, and one that does not answer in time is not chosen: one disk that
hangs keeps nobody from writing. Only where there is no other is it given more time.
"""

from collections.abc import Callable, Collection, Sequence

from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie
from bkspark.client import asking
from bkspark.client.cluster import Cluster, draw
from bkspark.client.runtime import THREADS, Runtime
from bkspark.errors import BookieUnavailableError
from bkspark.format import layout
from bkspark.protocol import placement
from bkspark.protocol.ledger import FIRST_TERM, Member
from bkspark.protocol.quorum import Quorum

SPARES_MAX = 4
"""More bookies than this do not fail during one write, other than all together."""


def place(
    cluster: Cluster, ledger_id: int, quorum: Quorum
) -> tuple[list[BookieAddress], list[BookieAddress]]:
    """Choose ensemble and spares; every member of the ensemble holds the first term's marker."""
    addresses = cluster.addresses()
    found = cluster.candidates(needed=quorum.ensemble_size)
    candidates = [c for c in found if c.member in addresses]
    refused: set[str] = set()
    while True:
        chosen = placement.choose(
            candidates, quorum.ensemble_size, draw=draw, exclude=refused, last=cluster.suspects()
        )
        ensemble = [addresses[candidate.member] for candidate in chosen]
        others = len(candidates) - len(refused) - len(ensemble)
        needed = len(ensemble) - others
        taken = joined(THREADS, ensemble, ledger_id, FIRST_TERM, needed=needed)
        failed = {address.bookie_id for address in ensemble} - taken
        if not failed:
            break
        refused |= failed
        for candidate in chosen:
            if candidate.member.bookie_id in failed:
                cluster.note_failure(candidate.member)
    rest = len(candidates) - len(chosen) - len(refused)
    spares = placement.choose(
        candidates,
        min(rest, SPARES_MAX),
        draw=draw,
        exclude=refused,
        near=chosen,
        last=cluster.suspects(),
    )
    return _located(addresses, chosen), _located(addresses, spares)


def spares_of(cluster: Cluster, ensemble: Sequence[BookieAddress]) -> list[BookieAddress]:
    """Bookies that may step in for those of ``ensemble``, in order of preference."""
    addresses = cluster.addresses()
    candidates = [c for c in cluster.candidates() if c.member in addresses]
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
    ledger_id: int,
    term: int,
    *,
    needed: int = 0,
) -> set[str]:
    """Bookie ids of those that have taken all markers up to ``term``, in time.

    Args:
        needed: if fewer have, those that are silent get more time.
    """

    def taking(address: BookieAddress) -> Callable[[], bool]:
        return lambda: has_markers(address, ledger_id, term)

    answers = asking.ask_all(
        runtime,
        {address.bookie_id: taking(address) for address in addresses},
        seconds=asking.ANSWER_SECONDS,
        name="put-markers-on",
        needed=needed,
    )
    return {bookie_id for bookie_id, answer in answers.items() if answer.result()}


def has_markers(address: BookieAddress, ledger_id: int, term: int) -> bool:
    """Create all markers up to ``term`` on a bookie, ascending; whether they are durable (H3)."""
    try:
        with open_bookie(address).open_root() as root:
            for number in range(FIRST_TERM, term + 1):
                root.put_new(layout.term_marker(ledger_id, number), b"")
        return True
    except BookieUnavailableError:
        return False


def _located(
    addresses: dict[Member, BookieAddress], chosen: Sequence[placement.Candidate]
) -> list[BookieAddress]:
    return [addresses[candidate.member] for candidate in chosen]
