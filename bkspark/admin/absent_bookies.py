"""Bookies that cannot be asked: with an unreadable record, declared lost, or silent."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace

from bkspark import environment
from bkspark.admin.sweep import answers
from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie
from bkspark.cluster import bookie_client
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.log_messages import leave_out
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    CorruptDataError,
    InvalidRequestError,
)
from bkspark.format import layout
from bkspark.format.cluster import BookieRecord
from bkspark.format.recovery import AwayBookie, LostBookie
from bkspark.ledger.recovery.fencing import LastWriter
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.recovery.steps import Silence

# --- unreadable bookies --------------------------------------------------------------------------
# Let maintenance go on without bookies whose metadata records cannot be read.
#
# A bookie has a record, and another one if an operator declared it lost. If one of the two cannot
# be read, the bookie is unknown: it may have all that it had. So it is not asked, and counts
# neither as gone nor as lost. Ledgers that name it are left as they are.


_OF_BOOKIES = (layout.BOOKIES_PREFIX, layout.LOST_PREFIX)


def leave_out_unreadable(cluster: Cluster) -> dict[str, str]:
    """Let ``cluster`` leave out the bookies that are unreadable now; return the faults by key."""
    found: dict[str, str] = {}

    def note(key: str, error: BookKeeperError) -> None:
        if not isinstance(error, CorruptDataError):
            raise error
        found[key] = str(error.args[0])

    cluster.bookies(note)
    cluster.lost_members(note)
    if found:
        leave_out_bookies(cluster, found)
    return found


def leave_out_bookies(cluster: Cluster, keys: Collection[str]) -> None:
    """Let ``cluster`` leave out the bookies that these records are about.

    A record that becomes unreadable later is still an error.
    """
    unreadable = frozenset(keys)

    def step_over(key: str, error: BookKeeperError) -> None:
        if key not in unreadable:
            raise error
        leave_out(key, error)

    cluster.left_out = ids_in(unreadable)
    cluster.registrations.step_over = step_over
    cluster.upkeep.lost.step_over = step_over


def ids_in(keys: Collection[str]) -> frozenset[str]:
    """Return the ids of the bookies that records with these keys are about."""
    split = (key.partition("/") for key in keys)
    return frozenset(name for prefix, _, name in split if prefix in _OF_BOOKIES)


def why_left(ledger: LedgerMetadata, unreadable: Collection[str]) -> str:
    """Return why the ledger is left as it is; empty if it names no unreadable bookie."""
    named = {member.bookie_id for member in Locations(ledger).members}.intersection(unreadable)
    names = ", ".join(sorted(named))
    return f"it names {names}, whose metadata record cannot be read" if named else ""


SEE_DAMAGED = "`bkspark metadata damaged` says what to do"


# --- lost bookies --------------------------------------------------------------------------------
# Declare a bookie lost: the operator states the bookie will never come back.
#
# The declaration concerns one incarnation of a bookie. From then on no recovery waits for the
# bookie, and no ensemble includes it. Its silence still proves nothing, nor does its missing data
# if the bookie comes back. Copies on other bookies stay. Entries only lost bookies could prove are
# given up only by a second statement, for one ledger (``accepts_loss`` of a recovery).
#
# A readable bookie refusing writes may also be declared lost: fencing it is impossible, so
# recoveries would never finish; its copies stay readable. A bookie refusing only the fence of a
# ledger IN_RECOVERY may be declared lost too.


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
    """Return whether any ledger names ``member``."""
    seen = cluster.ledgers.present(map(str, cluster.ledger_ids()))
    return any(Locations(found.value).names(member) for found in seen)


def _answers(cluster: Cluster, record: BookieRecord, member: Member) -> bool:
    """Return whether the bookie answers in time and takes markers, as recoveries need."""
    address = cluster.address(replace(record, incarnation=member.incarnation))
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
    seen = cluster.ledgers.present(map(str, cluster.ledger_ids()))
    return [
        LastWriter.of(found.value).fence
        for found in seen
        if found.value.state is LedgerState.IN_RECOVERY
        and member in Locations(found.value).last.members
    ]


# --- silent --------------------------------------------------------------------------------------
# The bookies that give no answer now.


@dataclass(frozen=True, slots=True)
class LookForCookie:
    """Look for the cookie of one bookie; picklable."""

    address: BookieAddress

    def run(self, beat: Heartbeat = no_heartbeat) -> bool | Silence:
        """Return True if it is there. Runs on: driver thread | executor."""
        try:
            with open_bookie(self.address).open_root():
                beat()
        except BookieUnavailableError as error:
            return Silence(str(error))
        return True


def silent_bookies(cluster: Cluster, run: Runner) -> dict[str, str]:
    """Ask each bookie for its cookie; return the reasons of those that do not show it, by id."""
    looks = [LookForCookie(address) for address in cluster.addresses().values()]
    found = answers(run, looks)
    return {x.address.bookie_id: a.reason for x, a in found if isinstance(a, Silence)}


# --- away ----------------------------------------------------------------------------------------
# Note since when bookies are silent, as seen by repairs.
#
# Rule. The time a bookie was away proves nothing about its data. If an operator has set a limit,
# the time only decides when copies are made elsewhere to replace the bookie. A wrong clock makes
# the replacement earlier or later. A bookie that comes back later was replaced by one with the
# copies. So a note may be lost: the bookie's time away then starts now.


def note_silent(cluster: Cluster, silent: Collection[str]) -> None:
    """Note the bookies silent now, and the bookies no longer silent."""
    known = set(cluster.store.list(layout.AWAY_PREFIX))
    for member in cluster.addresses():
        if member.bookie_id in silent or member.bookie_id in known:
            since_ms = environment.now_ms() if member.bookie_id in silent else 0
            seen = cluster.upkeep.away.get(member.bookie_id)
            before = None if seen is None else seen.value
            after = _noted(member, since_ms, before)
            if after != before:
                cluster.upkeep.away.try_to_note(member.bookie_id, after)


def away_for(cluster: Cluster, silent: Collection[str], seconds: float) -> frozenset[Member]:
    """Return silent members first seen silent at least ``seconds`` ago."""
    now_ms = environment.now_ms()
    found = set()
    for member in cluster.addresses():
        seen = cluster.upkeep.away.get(member.bookie_id) if member.bookie_id in silent else None
        if seen is not None and _is_since(seen.value, member, now_ms - seconds * 1000):
            found.add(member)
    return frozenset(found)


def _is_since(away: AwayBookie, member: Member, then_ms: float) -> bool:
    return away.incarnation == member.incarnation and 0 < away.since_ms <= then_ms


def _noted(member: Member, since_ms: int, before: AwayBookie | None) -> AwayBookie:
    """Return the record of a bookie: silent since ``since_ms`` or earlier, or not silent if 0."""
    is_known = before is not None and before.incarnation == member.incarnation
    if before is not None and is_known and since_ms and before.since_ms:
        return before
    return AwayBookie(member.bookie_id, member.incarnation, since_ms)
