"""Declare a bookie lost: the operator states the bookie will never come back.

The declaration concerns one incarnation of a bookie. From then on no recovery waits for the bookie,
and no ensemble includes it. Its silence still proves nothing, nor does its missing data if the
bookie comes back. Copies on other bookies stay. Entries only lost bookies could prove are given up
only by a second statement, for one ledger (``accepts_loss`` of a recovery).

A readable bookie refusing writes may also be declared lost: fencing it is impossible, so recoveries
would never finish; its copies stay readable. A bookie refusing only the fence of a ledger
IN_RECOVERY may be declared lost too.
"""

from contextlib import suppress

from bkspark import environment
from bkspark.bookie.uri import open_bookie
from bkspark.cluster import bookie_client
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookieUnavailableError, InvalidRequestError
from bkspark.format import layout
from bkspark.format.cluster import BookieRecord
from bkspark.format.recovery import LostBookie
from bkspark.ledger.recovery.writer import LastWriter
from bkspark.protocol.ledger.metadata import LedgerState, Member


def declare_lost(cluster: Cluster, bookie_id: str, incarnation: str = "") -> Member:
    """Record for ever that a bookie is lost; a repeated call changes nothing.

    Args:
        incarnation: the lost incarnation; empty for the registered incarnation.

    Raises:
        InvalidRequestError: no such bookie; no ledger names the incarnation; or the bookie answers
            with the incarnation and accepts writes.
    """
    member = _known_member(cluster, layout.bookie_id(bookie_id), incarnation)
    if cluster.is_lost(member):
        return member
    if _answers(cluster, cluster.bookie(bookie_id).value, member):
        raise InvalidRequestError(
            f"bookie {bookie_id} is not lost: it answers, as incarnation {member.incarnation}",
            hint="to give up its disk, make the disk read-only first: readable data counts",
        )
    note_lost(cluster, member)
    return member


def note_lost(cluster: Cluster, member: Member) -> None:
    """Record a bookie as lost, even if the bookie answers."""

    def declared(before: LostBookie | None) -> LostBookie:
        known = () if before is None else before.incarnations
        if member.incarnation in known:
            return LostBookie(member.bookie_id, known)
        return LostBookie(member.bookie_id, (*known, member.incarnation))

    cluster.upkeep.lost.update(member.bookie_id, declared)


def _known_member(cluster: Cluster, bookie_id: str, incarnation: str) -> Member:
    record = cluster.bookie(bookie_id).value
    member = Member(bookie_id, layout.token(incarnation or record.incarnation))
    if member.incarnation != record.incarnation and not _is_named(cluster, member):
        raise InvalidRequestError(
            f"no ledger names bookie {bookie_id} with incarnation {member.incarnation}",
            hint=f"the registered one is {record.incarnation}",
        )
    return member


def _is_named(cluster: Cluster, member: Member) -> bool:
    """Return whether a fragment of any ledger includes ``member``."""
    seen = (cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids())
    fragments = (f for found in seen if found is not None for f in found.value.fragments)
    return any(member in fragment.ensemble for fragment in fragments)


def _answers(cluster: Cluster, record: BookieRecord, member: Member) -> bool:
    """Return whether the bookie answers in time and takes markers, as recoveries need."""
    address = cluster.address(
        BookieRecord(record.bookie_id, member.incarnation, record.url, record.domain)
    )
    fences = _fences(cluster, member)

    def is_there() -> bool:
        with open_bookie(address).open_root() as root:
            probe = f"probe-{environment.token()}"
            root.put_new(probe, b"")
            with suppress(BookieUnavailableError):
                root.delete(probe)
            for fence in fences:
                root.put_new(fence, b"")
            return True

    try:
        return BookieClient(address, is_patient=True).ask(is_there, bookie_client.ANSWER_SECONDS)
    except BookieUnavailableError:
        return False


def _fences(cluster: Cluster, member: Member) -> list[str]:
    """Return the fences ``member`` must take in ledgers IN_RECOVERY."""
    seen = (cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids())
    return [
        LastWriter.of(found.value).fence
        for found in seen
        if found is not None
        and found.value.state is LedgerState.IN_RECOVERY
        and member in found.value.last_fragment.ensemble
    ]
