"""The bookie that takes the place of one that failed, found without waiting long for any."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bkspark.bookie.contract import BookieAddress
from bkspark.client.cluster import Cluster, draw
from bkspark.client.placing import joined
from bkspark.client.runtime import Runtime
from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol import placement
from bkspark.protocol.ledger import Member
from bkspark.protocol.placement import Candidate


@dataclass(frozen=True, slots=True)
class Vacancy:
    """A place in the ensemble of a ledger in one term.

    Attributes:
        staying: the members that remain; the new one is chosen for the best spread beside them.
        exclude: bookie ids that must not be chosen.
    """

    ledger_id: int
    term: int
    staying: Sequence[Member]
    exclude: Collection[str]


def choose(
    cluster: Cluster, runtime: Runtime, vacancy: Vacancy
) -> tuple[BookieAddress | None, dict[str, str]]:
    """A bookie that holds the markers of the term, None if there is none; and those that failed.

    It costs ``asking.ANSWER_SECONDS`` at most for all bookies that hang when they are looked at,
    and again for each that hangs when it is to join.
    """
    out = set(vacancy.exclude) | {member.bookie_id for member in vacancy.staying}
    addresses = cluster.addresses()
    found = cluster.candidates(exclude=out, runtime=runtime)
    candidates = [c for c in found if c.member in addresses]
    near = [Candidate(m, addresses[m].domain) for m in vacancy.staying if m in addresses]
    failed: dict[str, str] = {}
    while True:
        try:
            (chosen,) = placement.choose(
                candidates,
                1,
                draw=draw,
                exclude=out | set(failed),
                near=near,
                last=cluster.suspects(),
            )
        except NotEnoughBookiesError:
            return None, failed
        address = addresses[chosen.member]
        if joined(runtime, [address], vacancy.ledger_id, vacancy.term):
            return address, failed
        failed[address.bookie_id] = "it cannot be written to"
        cluster.note_failure(chosen.member)
