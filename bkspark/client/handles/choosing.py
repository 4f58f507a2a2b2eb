"""The bookie that takes the place of one that failed, found without waiting long for any."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie
from bkspark.client.cluster import Cluster, draw
from bkspark.client.handles.asking import ask_all
from bkspark.client.placing import has_markers
from bkspark.client.runtime import Runtime
from bkspark.errors import BookieUnavailableError, NotEnoughBookiesError
from bkspark.protocol import placement
from bkspark.protocol.ledger import Member
from bkspark.protocol.placement import Candidate

ANSWER_SECONDS = 5.0
"""A bookie that needs longer to be opened would be no help to a writer that waits."""


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

    It costs ``ANSWER_SECONDS`` at most for each bookie that hangs, and each of them is among those
    that failed.
    """
    addresses = cluster.addresses()
    candidates, failed = _usable(cluster, runtime, addresses, vacancy)
    near = [Candidate(m, addresses[m].domain) for m in vacancy.staying if m in addresses]
    while True:
        exclude = set(vacancy.exclude) | set(failed)
        try:
            (chosen,) = placement.choose(
                candidates, 1, draw=draw, exclude=exclude, near=near, last=cluster.suspects()
            )
        except NotEnoughBookiesError:
            return None, failed
        address = addresses[chosen.member]
        if _joins(runtime, address, vacancy):
            return address, failed
        failed[address.bookie_id] = "it cannot be written to"
        cluster.note_failure(chosen.member)


def _usable(
    cluster: Cluster,
    runtime: Runtime,
    addresses: dict[Member, BookieAddress],
    vacancy: Vacancy,
) -> tuple[list[Candidate], dict[str, str]]:
    """Bookies that may be chosen and answer, and those that do not."""
    read_only = {r.bookie_id for r in cluster.bookies().values() if r.is_read_only}
    out = read_only | set(vacancy.exclude) | {member.bookie_id for member in vacancy.staying}
    open_ = {member: a for member, a in addresses.items() if member.bookie_id not in out}
    answers = ask_all(
        runtime,
        {address.bookie_id: _look(address) for address in open_.values()},
        seconds=ANSWER_SECONDS,
        name="look-at",
    )
    usable: list[Candidate] = []
    failed: dict[str, str] = {}
    for member, address in open_.items():
        answer = answers.get(member.bookie_id)
        if answer is None:
            failed[member.bookie_id] = f"bookie {member.bookie_id} does not answer"
            cluster.note_failure(member)
        elif (free_bytes := answer.result()) is not None:
            usable.append(Candidate(member, address.domain, free_bytes))
    return usable, failed


def _look(address: BookieAddress) -> Callable[[], int | None]:
    """Its free bytes, None if it cannot be used."""

    def look() -> int | None:
        try:
            with open_bookie(address).open_root() as root:
                return root.free_bytes()
        except BookieUnavailableError:
            return None

    return look


def _joins(runtime: Runtime, address: BookieAddress, vacancy: Vacancy) -> bool:
    """Whether the bookie takes the markers of the term, in time."""
    answers = ask_all(
        runtime,
        {address.bookie_id: lambda: has_markers(address, vacancy.ledger_id, vacancy.term)},
        seconds=ANSWER_SECONDS,
        name="put-markers-on",
    )
    answer = answers.get(address.bookie_id)
    return answer is not None and answer.result()
