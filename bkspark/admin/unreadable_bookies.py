"""Let maintenance go on without bookies whose metadata records cannot be read.

A bookie has a record, and another one if an operator declared it lost. If one of the two cannot be
read, the bookie is unknown: it may have all that it had. So it is not asked, and counts neither as
gone nor as lost. Ledgers that name it are left as they are.
"""

from collections.abc import Collection, Mapping

from bkspark.admin.maintenance import Left
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.stepping_over import leave_out
from bkspark.errors import BookKeeperError, CorruptDataError
from bkspark.format import layout
from bkspark.protocol.ledger.deletion import members_of
from bkspark.protocol.ledger.metadata import LedgerMetadata

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
    named = {member.bookie_id for member in members_of(ledger)}.intersection(unreadable)
    names = ", ".join(sorted(named))
    return f"it names {names}, whose metadata record cannot be read" if named else ""


def left_records(unreadable: Mapping[str, str]) -> list[Left]:
    """Return the unreadable records, by key, as left."""
    return [
        Left(f"metadata record {key}", reason, "`bkspark metadata damaged` says what to do")
        for key, reason in sorted(unreadable.items())
    ]
