"""The bookie that takes the place of one that failed, found without waiting long for any."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bkspark.bookie.contract import BookieAddress
from bkspark.client import ensemble_log
from bkspark.client.cluster import Cluster, draw
from bkspark.client.placing import joined
from bkspark.client.runtime import Runtime
from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol import placement
from bkspark.protocol.ledger import Member
from bkspark.protocol.placement import Candidate

logger = logging.getLogger(__name__)


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


def choose(
    cluster: Cluster, runtime: Runtime, vacancy: Vacancy
) -> tuple[BookieAddress | None, dict[str, str]]:
    """A bookie that holds the permission, None if there is none; and those that failed.

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
        if joined(runtime, [address], vacancy.permission):
            return address, failed
        failed[address.bookie_id] = why = "it cannot be written to"
        ensemble_log.given_up(logger, vacancy.ledger_id, address.bookie_id, why)
        cluster.note_failure(chosen.member)
