"""An operator's word that a bookie will never come back.

It is about a bookie *as it was initialised*. From then on no recovery waits for it, and no ensemble
takes it in. Its silence still proves nothing, nor does what it lacks if it comes back: what other
bookies hold is kept as before, and entries that only lost bookies could tell of are given up only
by a second word, for one ledger (``accepts_loss`` of a recovery).

One that can be read and not be written to may be declared lost where it is: it cannot be fenced, so
no recovery gets on with it, but what it shows is kept. So may one that takes everything but the
fence of a ledger that is being recovered.
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
from bkspark.ledger.recovery.writer import Writer
from bkspark.protocol.ledger.metadata import LedgerState, Member


def declare_lost(cluster: Cluster, bookie_id: str, incarnation: str = "") -> Member:
    """Record for ever that a bookie is lost; again changes nothing, also if it came back.

    Args:
        incarnation: which initialisation of the bookie is meant; empty for the registered one.

    Raises:
        InvalidRequestError: there is no such bookie, nothing names this incarnation, or the bookie
            answers as it and can be written to.
    """
    member = _known_member(cluster, layout.bookie_id(bookie_id), incarnation)
    if member in cluster.lost_members():
        return member
    if _answers(cluster, cluster.bookies()[bookie_id], member):
        raise InvalidRequestError(
            f"bookie {bookie_id} is not lost: it answers, as incarnation {member.incarnation}",
            hint="if its disk is to be given up, make it read-only first: what can be read counts",
        )
    note_lost(cluster, member)
    return member


def note_lost(cluster: Cluster, member: Member) -> None:
    """Record it, whether the bookie answers or not."""

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
    """Whether a ledger's fragment has ``member`` in its ensemble."""
    seen = (cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids())
    fragments = (f for found in seen if found is not None for f in found.value.fragments)
    return any(member in fragment.ensemble for fragment in fragments)


def _answers(cluster: Cluster, record: BookieRecord, member: Member) -> bool:
    """Whether it does now and takes markers, as recoveries need; storage that hangs does not."""
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
    """The fences of ledgers that are being recovered, which ``member`` is to have."""
    seen = (cluster.ledgers.get(str(ledger_id)) for ledger_id in cluster.ledger_ids())
    return [
        Writer.of(found.value).fence
        for found in seen
        if found is not None
        and found.value.state is LedgerState.IN_RECOVERY
        and member in found.value.last_fragment.ensemble
    ]
